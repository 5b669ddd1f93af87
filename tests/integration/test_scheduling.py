# SPDX-License-Identifier: Apache-2.0
"""When threads ran, waited and slept, of hosts with PID and time namespaces of their own: a program
that knows its processor time by its own clock, beside one that takes its CPU."""

import collections
import glob
import json
import os
import subprocess

import pytest

from tests.integration import perfetto
from tests.integration.fleet import Fleet, load
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import BUILD, REPOSITORY

PROGRAM = "/opt/hot/shares"
TRACEFS = "/sys/kernel/tracing"
SECONDS = 5


@pytest.fixture(scope="module")
def bed():
    specs = [HostSpec("left", users=("ann",))]
    binds = {PROGRAM: os.path.join(BUILD, "bin", "syncline-hot-shares")}
    with Testbed(specs, seed=11, binds=binds) as made:
        yield made


def used(lines, node):
    """(ns of processor time in the functions of the program, ns between the two lines)"""
    rows = [[int(word) for word in line.split()] for line in lines]
    begin_ns = node["start"]["gate_end_monotonic_ns"]
    end_ns = node["stop"]["gate_begin_monotonic_ns"]
    inside = [row for row in rows if len(row) == len(rows[0]) and begin_ns <= row[0] <= end_ns]
    first, last = inside[0], inside[-1]
    return sum(last[1:]) - sum(first[1:]), last[0] - first[0]


def sums_in_parquet(folder):
    """{state: ns} of all lanes"""
    sql = f"""select state, sum(end_ns - begin_ns)::bigint
              from read_parquet('{folder}/scheduling/*/*.parquet') group by 1"""
    script = f"import duckdb, json; print(json.dumps(duckdb.sql({sql!r}).fetchall()))"
    python = os.path.join(REPOSITORY, ".venv-parquet", "bin", "python")
    result = subprocess.run([python, "-c", script], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return dict(json.loads(result.stdout))


def sums_in_chrome(folder):
    found = collections.Counter()
    for path in glob.glob(os.path.join(folder, "**", "*.json"), recursive=True):
        for event in load(path)["traceEvents"]:
            if event.get("cat") == "scheduling" and event.get("ph") == "X":
                found["running" if event["name"].startswith("CPU ") else event["name"]] += (
                    event["dur"] * 1000
                )
    return found


def sums_in_perfetto(timeline):
    try:
        rows = perfetto.query(
            timeline,
            "select case when name glob 'CPU *' then 'running' else name end, sum(dur) "
            "from slice where category = 'scheduling' group by 1",
        )
    except pytest.skip.Exception as skipped:
        print(f"Perfetto was not asked: {skipped}")
        return None
    return {name: int(ns) for name, ns in rows}


def check_pictures(out, process):
    """All show the same times as the report."""
    for found in (
        sums_in_parquet(os.path.join(out, "parquet")),
        sums_in_chrome(os.path.join(out, "chrome")),
        sums_in_perfetto(os.path.join(out, "timeline.perfetto-trace")),
    ):
        for state in ("running", "ready"):
            if found is not None:
                # The lanes also have what the agent watched before the window.
                assert abs(found[state] - process[f"{state}_ns"]) <= 30e6, (state, found)


def test_times_are_those_of_the_programs_own_clock(bed, tmp_path):
    left = bed["left"]
    left.run(["mount", "-t", "tracefs", "nodev", TRACEFS])
    fleet = Fleet(bed, tmp_path, user="root")
    fleet.up()
    try:
        witness = "/root/witness"
        command = f"taskset -c 0 {PROGRAM} {witness}"
        fleet.fab("launch", "--command", command, "--ready", "ready")
        # It ends by itself, or with the host.
        left.popen(["timeout", "40", "taskset", "-c", "0", "sh", "-c", "while :; do :; done"])
        run = fleet.record("run", SECONDS, "--scheduling")
        lines = left.run(["cat", witness]).stdout.splitlines()
        report = json.loads(fleet.syncline("report", run, "--json").stdout)
        print(fleet.syncline("report", run, "--section", "scheduling").stdout)
        fleet.syncline("merge", run, "--format", "perfetto,chrome,parquet")
    finally:
        fleet.fab("down")
    (node,) = report["scheduling"]
    assert node["complete"]
    (process,) = node["processes"]
    main = max(process["threads"], key=lambda thread: thread["running_ns"])
    (recorded,) = load(os.path.join(run, "recording.json"))["nodes"]
    used_ns, between_ns = used(lines, recorded)
    share = main["running_ns"] / (node["window_ns"] - main["unknown_ns"])
    print(f"running {share:.4f}, by its own clock {used_ns / between_ns:.4f}")
    # What it does beside its functions is some percent of its time.
    assert used_ns / between_ns - 0.03 <= share <= used_ns / between_ns * 1.1 + 0.03
    times = ("running", "ready", "uninterruptible", "asleep", "stopped", "unknown")
    assert sum(main[f"{name}_ns"] for name in times) == node["window_ns"]
    assert main["unknown_ns"] <= 0.02 * node["window_ns"], main
    # One CPU for two that never sleep: the other one had it.
    assert main["ready_ns"] >= 0.2 * node["window_ns"], main
    assert main["had_cpu"][0]["name"] == "sh", main["had_cpu"]
    assert main["had_cpu"][0]["ns"] >= 0.6 * main["ready_ns"], main["had_cpu"]
    check_pictures(os.path.join(run, "out"), process)


def test_who_may_not_see_the_scheduler_is_told_what_to_do(bed, tmp_path):
    fleet = Fleet(bed, tmp_path, user="ann")
    fleet.environment["SYNCLINE_PREFIX"] = "/home/ann/syncline"
    fleet.up()
    try:
        fleet.fab("launch", "--command", f"{PROGRAM} /home/ann/witness", "--ready", "ready")
        run = fleet.record("run", 2, "--scheduling")
        report = fleet.syncline("report", run, "--section", "scheduling").stdout
    finally:
        fleet.fab("down")
    (node,) = load(os.path.join(run, "recording.json"))["nodes"]
    (complaint,) = [one for one in node["complaints"] if "scheduler" in one["what"]]
    assert "CAP_PERFMON" in complaint["fix"] or "mount -t tracefs" in complaint["fix"], complaint
    assert "The scheduler is not recorded" in report and "No thread was watched" in report
