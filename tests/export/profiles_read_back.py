# SPDX-License-Identifier: Apache-2.0
"""profiles_read_back.py SYNCLINE FOLDER: what the report and the Parquet tables say of the devices
in FOLDER's profiles is what follows from their JSON, computed here anew, in another way: of every
nanosecond between two begins or ends it is asked which events hold it."""

import collections
import decimal
import glob
import gzip
import json
import os
import subprocess
import sys
import tempfile

import duckdb

COPIES = ("gpu_memcpy", "gpu_memset")
PARTS = ("computing", "exposed_communication", "exposed_copies")


def load(path):
    """Complete events with begin and end in whole ns, of their own time."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        profile = json.load(file, parse_float=decimal.Decimal)
    events = [event for event in profile["traceEvents"] if event.get("ph") == "X"]
    for event in events:
        event["begin"] = int(decimal.Decimal(event["ts"]) * 1000)
        event["end"] = event["begin"] + int(decimal.Decimal(event["dur"]) * 1000)
    return profile.get("distributedInfo", {}).get("rank"), events


def part_of(work, begin, end):
    kinds = {kind for kind, event in work if event["begin"] <= begin and event["end"] >= end}
    return next((part for part in PARTS if part in kinds), None)


def idle_parts(calls, work, begin, end):
    """Of an idle interval: before and after the launch of what begins at its end."""
    first = next(event for _, event in work if event["begin"] == end)
    call = calls.get(first["args"]["correlation"])
    if call is None:
        return {"idle_launch_unknown": end - begin}
    launched = min(max(call["begin"], begin), end)
    return {"idle_before_launch": launched - begin, "idle_after_launch": end - launched}


def device_steps(events):
    """{step's name: its times in ns}, of the one device."""
    calls = {}
    for event in events:
        if event["cat"] in ("cuda_runtime", "cuda_driver"):
            calls.setdefault(event["args"]["correlation"], event)
    work = []
    for event in sorted(events, key=lambda event: event["begin"]):
        if event["cat"] in COPIES:
            work.append(("exposed_copies", event))
        elif event["cat"] == "kernel":
            nccl = "nccl" in event["name"].lower()
            work.append(("exposed_communication" if nccl else "computing", event))
    marks = [
        event
        for event in events
        if event["cat"] == "user_annotation" and event["name"].startswith("ProfilerStep#")
    ]
    of_step = collections.defaultdict(list)
    for _, event in work:
        call = calls.get(event["args"]["correlation"])
        for mark in marks if call else []:
            if mark["begin"] <= call["begin"] < mark["end"]:
                of_step[mark["name"]].append(event)
    if not marks:
        of_step[""] = [event for _, event in work]
    ordered = sorted(of_step, key=lambda name: of_step[name][0]["begin"])
    found = {}
    for i, name in enumerate(ordered):
        begin = of_step[name][0]["begin"]
        last = max(event["end"] for event in of_step[name])
        end = of_step[ordered[i + 1]][0]["begin"] if i + 1 < len(ordered) else last
        edges = {edge for _, event in work for edge in (event["begin"], event["end"])}
        edges = sorted(edge for edge in edges | {begin, end} if begin <= edge <= end)
        times = collections.Counter()
        for left, right in zip(edges, edges[1:]):
            part = part_of(work, left, right)
            times.update({part: right - left} if part else idle_parts(calls, work, left, right))
        found[name] = {"length": end - begin, **times}
    return found


def operators(events):
    """{operator: (count, total ns)} by External id, which Syncline does not read."""
    names = {
        event["args"]["External id"]: event["name"] for event in events if event["cat"] == "cpu_op"
    }
    found = collections.defaultdict(lambda: [0, 0])
    for event in events:
        if event["cat"] in ("kernel", *COPIES):
            one = found[names.get(event["args"].get("External id"), "")]
            one[0] += 1
            one[1] += event["end"] - event["begin"]
    return {name: tuple(one) for name, one in found.items()}


def same(step, times, where):
    """A step as the report or a table has it."""
    assert step["end_ns"] - step["begin_ns"] == times["length"], (where, step, times)
    keys = (*PARTS, "idle_before_launch", "idle_after_launch", "idle_launch_unknown")
    for key in keys:
        assert step[key + "_ns"] == times.get(key, 0), (where, key, step, times)


def check(device, events, where):
    steps = device_steps(events)
    assert len(device["steps"]) == len(steps) > 0, (where, steps)
    for step in device["steps"]:
        same(step, steps[step["name"]], where)
    found = {one["name"]: (one["count"], one["total_ns"]) for one in device["operators"]}
    assert found == operators(events), where
    return len(steps)


def rows(path, name):
    files = glob.glob(os.path.join(path, name, "*.parquet"))
    cursor = duckdb.execute(f"select * from read_parquet({files!r})")
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor.fetchall()]


def check_tables(out, devices):
    """The tables are the report's; `process` is a track."""
    tracks = {row["track"]: row["name"] for row in rows(out, "tracks")}
    listed = collections.defaultdict(list)
    for row in rows(out, "device_steps"):
        listed[tracks[row["process"]], row["device"]].append(row)
    assert len(listed) == len(devices)
    for device in devices:
        found = sorted(listed[device["process"], device["device"]], key=lambda row: row["begin_ns"])
        assert [row["step"] or "" for row in found] == [step["name"] for step in device["steps"]]
        for row, step in zip(found, device["steps"]):
            for key, value in step.items():
                assert key in ("name", "idle_ns") or row[key] == value, (key, row, step)
    total = sum(one["total_ns"] for device in devices for one in device["operators"])
    assert sum(row["total_ns"] for row in rows(out, "device_operators")) == total


def main():
    syncline, folder = sys.argv[1:]
    graph = os.path.join(folder, "graph.json.gz")
    ranks = sorted(glob.glob(os.path.join(folder, "rank*.json.gz")))
    environment = {**os.environ, "SYNCLINE_PYTHON": sys.executable}
    compared = 0
    for files in (ranks, [graph]):
        with tempfile.TemporaryDirectory() as scratch:
            out = os.path.join(scratch, "out")
            command = [syncline, "merge", *files, "--out", out, "--format", "parquet"]
            subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
            with open(os.path.join(out, "report.json"), encoding="utf-8") as file:
                devices = json.load(file)["devices"]
            assert len(devices) == len(files)
            for device, path in zip(devices, files):
                rank, events = load(path)
                assert rank is None or device["node"] == f"rank {rank}"
                compared += check(device, events, path)
            check_tables(os.path.join(out, "parquet"), devices)
    print(f"{compared} steps of devices are what the profiles say")


if __name__ == "__main__":
    main()
