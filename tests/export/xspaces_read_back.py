# SPDX-License-Identifier: Apache-2.0
"""xspaces_read_back.py SYNCLINE FILE...: the events, times and devices that Syncline reads of the
XSpaces in FILEs (packed with gzip) are what their bytes say, decoded here anew."""

import collections
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile

COPIES = ("memcpy_details", "memset_details")
INSTRUCTIONS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of a message; of 8 and 4 fixed bytes no value is wanted here."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            value, at = None, at + {1: 8, 5: 4}[kind]
        yield tag >> 3, value


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def names(plane, number):
    found = {}
    for field, value in plane:
        if field == number:
            entry = dict(fields(value))
            found[entry.get(1, 0)] = dict(fields(entry[2])).get(2, b"").decode()
    return found


def stats(pairs, stat_names):
    """{name: value} of XStats; a reference is the text that it points to."""
    found = {}
    for data in pairs:
        stat = list(fields(data))
        name = stat_names.get(next((value for field, value in stat if field == 1), 0))
        for field, value in stat:
            if field in (3, 4):
                found[name] = value
            elif field == 5:
                found[name] = value.decode()
            elif field == 7:
                found[name] = stat_names.get(value)
    return found


def load(path):
    """Events with plane, line, name, begin and duration in ns, and stats."""
    with gzip.open(path) as file:
        planes = [list(fields(value)) for field, value in fields(file.read()) if field == 1]
    start, found = None, []
    for plane in planes:
        name = next((value.decode() for field, value in plane if field == 2), "")
        if name == "Task Environment":
            own = [value for field, value in plane if field == 6]
            start = stats(own, names(plane, 5))["profile_start_time"]
    for plane in planes:
        name = next((value.decode() for field, value in plane if field == 2), "")
        event_names, stat_names = names(plane, 4), names(plane, 5)
        for line in (list(fields(value)) for field, value in plane if field == 3):
            about = {field: value for field, value in line if field != 4}
            for event in (list(fields(value)) for field, value in line if field == 4):
                head = {field: value for field, value in event if field != 4}
                offset_ps = signed(head.get(2, 0))
                found.append(
                    {
                        "plane": name,
                        "line": about.get(1, 0),
                        "name": event_names[head.get(1, 0)],
                        "begin": start + signed(about.get(3, 0)) + offset_ps // 1000,
                        "duration_ps": head.get(3, 0),
                        "stats": stats([value for field, value in event if field == 4], stat_names),
                    }
                )
    for event in found:
        event["end"] = event["begin"] + event["duration_ps"] // 1000
    return found


def kind_of(event):
    if any(key in event["stats"] for key in COPIES):
        return "exposed_copies"
    instruction = event["stats"].get("hlo_op", event["name"])
    collective = "nccl" in event["name"].lower() or instruction.startswith(INSTRUCTIONS)
    return "exposed_communication" if collective else "computing"


def operator_of(event, launch, host):
    own = event["stats"]
    if "hlo_op" in own:
        return "/".join(own[key] for key in ("hlo_module", "hlo_op") if key in own)
    inside = [
        one
        for one in host
        if one["line"] == launch["line"]
        and one["begin"] <= launch["begin"] < one["end"]
        and "correlation_id" not in one["stats"]
        and "step_num" not in one["stats"]
    ]
    return max(inside, key=lambda one: (one["begin"], -one["end"]))["name"] if inside else ""


def check_devices(events, devices, where):
    work = collections.defaultdict(list)
    host = [event for event in events if event["plane"].startswith("/host:")]
    calls = {one["stats"].get("correlation_id"): one for one in host}
    for event in events:
        if event["plane"].startswith("/device:"):
            work[event["plane"].removeprefix("/device:").replace(":", " ")].append(event)
    marks = sorted(
        (one for one in host if "step_num" in one["stats"]), key=lambda one: one["begin"]
    )
    assert sorted(device["device"] for device in devices) == sorted(work), where
    steps = 0
    for device in devices:
        mine = sorted(work[device["device"]], key=lambda event: event["begin"])
        totals = collections.defaultdict(lambda: [0, 0])
        of_step = collections.defaultdict(list)
        for event in mine:
            launch = calls[event["stats"]["correlation_id"]]
            one = totals[operator_of(event, launch, host)]
            one[0] += 1
            one[1] += event["end"] - event["begin"]
            for mark in marks:
                if mark["begin"] <= launch["begin"] < mark["end"]:
                    of_step[f"{mark['name']} {mark['stats']['step_num']}"].append(event)
        found = {one["name"]: [one["count"], one["total_ns"]] for one in device["operators"]}
        assert found == dict(totals), (where, found, dict(totals))
        assert [step["name"] for step in device["steps"]] == list(of_step), where
        for step, after in zip(device["steps"], [*device["steps"][1:], None]):
            begin = of_step[step["name"]][0]["begin"]
            end = (
                of_step[after["name"]][0]["begin"]
                if after
                else max(event["end"] for event in of_step[step["name"]])
            )
            assert step["end_ns"] - step["begin_ns"] == end - begin, (where, step)
            times = collections.Counter()
            edges = {edge for event in mine for edge in (event["begin"], event["end"])}
            edges = sorted(edge for edge in edges | {begin, end} if begin <= edge <= end)
            for left, right in zip(edges, edges[1:]):
                kinds = {
                    kind_of(event)
                    for event in mine
                    if event["begin"] <= left and event["end"] >= right
                }
                for kind in ("computing", "exposed_communication", "exposed_copies"):
                    if kind in kinds:
                        times[kind] += right - left
                        break
                else:
                    times["idle"] += right - left
            for key in ("computing", "exposed_communication", "exposed_copies", "idle"):
                assert step[key + "_ns"] == times[key], (where, key, step, times)
            steps += 1
    return steps


def main():
    syncline, *paths = sys.argv[1:]
    count = steps = 0
    for path in paths:
        events = load(path)
        command = [syncline, "events", path, "--format", "jsonl"]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        read = [json.loads(line) for line in text.splitlines()]
        seen = collections.Counter(
            (one["event"], one["clock_ns"], one["fields"]["duration_ps"]) for one in read
        )
        said = collections.Counter(
            (one["name"], one["begin"], one["duration_ps"]) for one in events
        )
        assert seen == said, (path, list(seen - said)[:3], list(said - seen)[:3])
        count += len(events)
        report = [syncline, "report", path, "--json"]
        text = subprocess.run(report, check=True, stdout=subprocess.PIPE).stdout
        steps += check_devices(events, json.loads(text).get("devices", []), path)
        with tempfile.TemporaryDirectory() as scratch:  # as the profiler writes it: not packed
            plain = os.path.join(scratch, os.path.basename(path).removesuffix(".gz"))
            with gzip.open(path) as packed, open(plain, "wb") as file:
                shutil.copyfileobj(packed, file)
            command = [syncline, "events", plain, "--format", "jsonl"]
            again = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
            assert len(again.splitlines()) == len(read), path
    print(f"{count} events and {steps} steps of devices are what {len(paths)} XSpaces say")


if __name__ == "__main__":
    main()
