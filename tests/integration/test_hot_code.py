# SPDX-License-Identifier: Apache-2.0
"""Which code ran, and where page faults and switches were: programs that know it themselves."""

import collections
import contextlib
import glob
import json
import math
import os
import subprocess

import pytest

from tests.integration import perfetto
from tests.integration.fleet import Fleet, load
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import BUILD, REPOSITORY

PROGRAM = "/opt/hot/shares"
FAULTS = "/opt/hot/faults"
FAULT_TASKS = ("fault", "read", "sleep", "plain")
FAULT_COUNTS = ("calls", "minor_faults", "blocked", "preempted")
SECONDS = 8
SLACK_NS = 500_000_000  # from the begin of the window until all is watched
FUNCTIONS = ("burn_outside", "burn_alpha_one", "burn_alpha_two", "burn_beta", "sched_yield")
# Five standard deviations of a share: wrong once in a million runs.
DEVIATIONS = 5


@pytest.fixture(scope="module")
def bed():
    specs = [HostSpec("left", users=("ann",))]
    binds = {
        PROGRAM: os.path.join(BUILD, "bin", "syncline-hot-shares"),
        FAULTS: os.path.join(BUILD, "bin", "syncline-hot-faults"),
    }
    with Testbed(specs, seed=9, binds=binds) as made:
        yield made


def start(bed, work, user):
    """(a fleet whose agent runs, the user's home)"""
    fleet = Fleet(bed, work, user=user)
    home = "/root" if user == "root" else f"/home/{user}"
    if user != "root":
        fleet.environment["SYNCLINE_PREFIX"] = f"{home}/syncline"
    fleet.up()
    return fleet, home


@contextlib.contextmanager
def recorded(bed, work, user, program):
    """(fleet, recording, its hot code, the witness' lines, recording.json's node)"""
    fleet, home = start(bed, work, user)
    try:
        witness = f"{home}/witness"
        fleet.fab("launch", "--command", f"{program} {witness}", "--ready", "ready")
        run = fleet.record("run", SECONDS, "--samples")
        lines = bed["left"].run(["cat", witness]).stdout.splitlines()
        report = json.loads(fleet.syncline("report", run, "--json").stdout)
        print(fleet.syncline("report", run, "--section", "hot").stdout)
        (node,) = load(os.path.join(run, "recording.json"))["nodes"]
        yield fleet, run, report["hot"], lines, node
    finally:
        fleet.fab("down")


def record(bed, work, user):
    """(hot code of the report, what the witness says of the window, recording.json's node)"""
    with recorded(bed, work, user, PROGRAM) as (fleet, run, hot, lines, node):
        fleet.syncline("merge", run, "--format", "perfetto,chrome,parquet,flame")
        out = os.path.join(run, "out")
        check_flames(os.path.join(out, "flame"), hot)
        functions = sampled_functions(hot)
        check_chrome(os.path.join(out, "chrome"), functions, hot)
        check_parquet(os.path.join(out, "parquet"), functions, hot)
        check_perfetto(os.path.join(out, "timeline.perfetto-trace"), functions)
    return hot, used(lines, node), node


def check_flames(folder, hot):
    """Of the same samples: each task's are those of the report."""
    tasks = collections.Counter()
    with open(os.path.join(folder, "stacks.folded"), encoding="utf-8") as lines:
        for line in lines:
            stack, _, samples = line.rpartition(" ")
            open_tasks = [frame for frame in stack.split(";") if frame.endswith(" [task]")]
            tasks[open_tasks[-1] if open_tasks else ""] += int(samples)
    expected = collections.Counter()
    for task in hot["tasks"]:
        expected[f"{task['name']} [task]" if task["name"] else ""] += task["samples"]
    assert tasks == expected, (tasks, expected)
    profiles = load(os.path.join(folder, "speedscope.json"))["profiles"]
    assert sum(len(profile["samples"]) for profile in profiles) == sum(tasks.values())
    period_ns = hot["nodes"][0]["period_ns"]
    assert profiles[0]["endValue"] == sum(profiles[0]["weights"]) == period_ns * len(
        profiles[0]["samples"]
    )


def sampled_functions(hot):
    """{function: samples} of all tasks, without what has no symbol: that has the library's name"""
    functions = collections.Counter()
    for task in hot["tasks"]:
        for function in task["functions"]:
            functions[function["function"]] += function["samples"]
    del functions[""]
    return functions


def check_chrome(folder, functions, hot):
    found = collections.Counter()
    for path in glob.glob(os.path.join(folder, "**", "*.json"), recursive=True):
        for event in load(path)["traceEvents"]:
            if event.get("cat") == "sample":
                assert event["name"] in event["args"]["stack"], event
                found[event["name"]] += 1
    assert found == found | functions, (found, functions)
    assert sum(found.values()) == hot["samples"]


def check_parquet(folder, functions, hot):
    """Each sample has its thread, and lies under the task that the report says."""
    sql = """
      with open as (
        select s.function, s.time_ns, any_value(s.period_ns) as period_ns,
               arg_max(spans.name, spans.depth) as task
        from read_parquet('{0}/samples/*/*.parquet') s
        join read_parquet('{0}/tracks/*.parquet') lane on lane.track = s.track
        left join read_parquet('{0}/tracks/*.parquet') t
          on t.process = lane.process and t.tid = lane.tid and t.kind = 'thread'
        left join read_parquet('{0}/spans/*/*.parquet') spans
          on spans.track = t.track and spans.begin_ns <= s.time_ns and s.time_ns < spans.end_ns
        group by s.function, s.time_ns, s.track)
      select function, coalesce(task, ''), count(*), max(period_ns) from open group by 1, 2
    """.format(folder)
    script = f"import duckdb, json; print(json.dumps(duckdb.sql({sql!r}).fetchall()))"
    python = os.path.join(REPOSITORY, ".venv-parquet", "bin", "python")
    result = subprocess.run([python, "-c", script], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    by_task = collections.Counter()
    by_function = collections.Counter()
    for function, task, samples, period_ns in json.loads(result.stdout):
        assert period_ns == hot["nodes"][0]["period_ns"]
        by_function[function] += samples
        by_task[task] += samples
    assert by_function == by_function | functions, (by_function, functions)
    tasks = collections.Counter()
    for task in hot["tasks"]:
        tasks[task["name"]] += task["samples"]
    assert by_task == tasks, (by_task, tasks)


def check_perfetto(timeline, functions):
    """Only where its engine is."""
    try:
        rows = perfetto.query(
            timeline,
            "select f.name, count(*) from __intrinsic_track_event_callstacks c "
            "join slice on slice.id = c.slice_id and slice.category = 'sample' "
            "join stack_profile_callsite site on site.id = c.callsite_id "
            "join stack_profile_frame f on f.id = site.frame_id group by 1",
        )
    except pytest.skip.Exception as skipped:
        print(f"Perfetto was not asked: {skipped}")
        return
    found = {name: int(samples) for name, samples in rows}
    for function in ("burn_alpha_one", "burn_alpha_two", "burn_beta"):
        # What the kernel did for it has the kernel's frame behind it.
        assert 0 < found[function] <= functions[function], (found, functions)


def passed(lines, columns, node, length_ns=None):
    """How much the witness' columns grew in the window, or in the first part of it."""
    rows = [[int(word) for word in line.split()] for line in lines]
    rows = [row for row in rows if len(row) == 1 + columns]
    begin_ns = node["start"]["gate_end_monotonic_ns"]
    end_ns = node["stop"]["gate_begin_monotonic_ns"]
    if length_ns is not None:
        end_ns = min(end_ns, begin_ns + length_ns)
    inside = [row for row in rows if begin_ns <= row[0] <= end_ns]
    return [last - first for first, last in zip(inside[0][1:], inside[-1][1:])]


def used(lines, node):
    """{function: ns of processor time in the window}"""
    return dict(zip(FUNCTIONS, passed(lines, len(FUNCTIONS), node)))


def check_shares(hot, witness, names):
    """Of these functions, among each other."""
    found = dict.fromkeys(names, 0)
    for task in hot["tasks"]:
        for function in task["functions"]:
            name = "sched_yield" if function["function"] == "yield" else function["function"]
            if name in found:
                found[name] += function["samples"]
    samples = sum(found.values())
    total_ns = sum(witness[name] for name in names)
    assert samples > 30, "the host had no time for the program"
    for name in names:
        share = witness[name] / total_ns
        bound = DEVIATIONS * math.sqrt(share * (1 - share) / samples) + 1 / samples
        print(f"{name}: {share:.4f} by its clock, {found[name] / samples:.4f} of {samples} samples")
        assert abs(found[name] / samples - share) <= bound, name


def check_places(hot):
    """Each function stands under the task that calls it, with the line of its loop."""
    for task, functions in {
        "alpha": {"burn_alpha_one", "burn_alpha_two"},
        "beta": {"burn_beta"},
        "": {"burn_outside"},
    }.items():
        for function in functions:
            count = {
                row["name"]: part["samples"]
                for row in hot["tasks"]
                for part in row["functions"]
                if part["function"] == function
            }
            # The borders of a task lie in the function that makes them, not in these.
            assert count[task] >= 0.98 * sum(count.values()), (function, count)
    lines = [
        line
        for row in hot["tasks"]
        for part in row["functions"]
        if part["function"] == "burn_beta"
        for line in part["lines"]
    ]
    assert lines and all(line["file"].endswith("tests/hot/shares.c") for line in lines), lines


def check_helpers(hot):
    """The helper works while alpha is open, and at most one turn of its loop longer."""
    found = collections.Counter()
    for task in hot["helpers"]:
        for function in task["functions"]:
            if function["function"] == "burn_helper":
                found[task["name"]] += function["samples"]
    print(f"helper: {dict(found)}")
    assert sum(found.values()) > 20, "the host had no time for the helper"
    assert found["alpha"] >= 0.9 * sum(found.values()), found


def check_cost(hot):
    (node,) = hot["nodes"]
    assert node["complete"] and node["lost"] == 0, node
    print(f"agent {node['cost_ns'] / 1e6:.1f} ms, threads {node['on_cpu_ns'] / 1e9:.2f} s")
    # Where other work leaves the program less than a processor: of a processor.
    assert node["cost_ns"] <= 0.01 * max(node["on_cpu_ns"], SECONDS * 10**9)
    # One for each period; a host that stands still for longer skips some.
    assert node["samples"] <= node["on_cpu_ns"] / node["period_ns"] * 1.02 + node["threads"]
    return node


def test_root_sees_shares_tasks_lines_and_waiting(bed, tmp_path):
    hot, witness, _ = record(bed, tmp_path, "root")
    check_shares(hot, witness, FUNCTIONS)
    check_places(hot)
    check_helpers(hot)
    node = check_cost(hot)
    assert node["kernel"]
    assert node["samples"] >= 0.8 * node["on_cpu_ns"] / node["period_ns"]
    (waiting,) = [task for task in hot["tasks"] if task["name"] == "waiting"]
    assert waiting["waiting_samples"] >= 0.8 * waiting["samples"]


def test_an_ordinary_user_sees_what_runs_outside_of_the_kernel(bed, tmp_path):
    hot, witness, _ = record(bed, tmp_path, "ann")
    check_shares(hot, witness, FUNCTIONS[:-1])
    check_places(hot)
    assert not check_cost(hot)["kernel"]


def record_faults(bed, work, user):
    """(hot code of the report, {task: {count: by the program itself, in the table's time}})"""
    with recorded(bed, work, user, FAULTS) as (_, _, hot, lines, node):
        pass
    width = len(FAULT_COUNTS)
    # Less than the window where the kernel had no room for records.
    table_ns = hot["software"]["nodes"][0]["table_ns"]
    grown = passed(lines, len(FAULT_TASKS) * width, node, table_ns)
    return hot, {
        task: dict(zip(FAULT_COUNTS, grown[i * width : (i + 1) * width]))
        for i, task in enumerate(FAULT_TASKS)
    }


def check_software(hot, witness, expected):
    """Of each call, as the program counts them. expected: {task: kinds that must be there}"""
    (node,) = hot["software"]["nodes"]
    print(f"table of {node['table_ns'] / 1e6} ms, cost {node['cost_ns'] / 1e6} ms")
    # A slow machine ends it where it costs too much; the table is of the time before that.
    watched_to_end = node["watched_ns"] == node["window_ns"]
    assert watched_to_end or node["table_ns"] <= node["watched_ns"] + SLACK_NS, node
    tasks = {task["name"]: task for task in hot["software"]["tasks"]}
    for name, kinds in expected.items():
        calls = tasks[name]["calls"]
        # Both count the calls of that time; the program's lines are 0.1 s apart.
        assert calls + 2 >= witness[name]["calls"] > 20, (name, calls, witness)
        for kind in kinds:
            found, truth = tasks[name][kind]["count"] / calls, witness[name][kind]
            truth /= witness[name]["calls"]
            bound = DEVIATIONS * tasks[name][kind]["half_width"] / 1.96 / calls + 0.03 * truth
            print(f"{name} {kind}: {found:.3f} a call, {truth:.3f} by the program, ± {bound:.3f}")
            assert abs(found - truth) <= bound, (name, kind)
    # What others do stands under no other task: at a border an event is one task's or the other's.
    faults = tasks["fault"]["minor_faults"]["count"]
    assert tasks["plain"]["minor_faults"]["count"] <= 0.01 * faults
    assert tasks["sleep"]["minor_faults"]["count"] <= 0.01 * faults
    assert tasks["plain"]["blocked"]["count"] <= 0.02 * tasks["sleep"]["blocked"]["count"]
    assert node["cost_ns"] <= 0.008 * hot["nodes"][0]["on_cpu_ns"] + 10e6
    return node, tasks


def test_root_sees_faults_and_switches_of_each_task(bed, tmp_path):
    hot, witness = record_faults(bed, tmp_path, "root")
    expected = {"fault": ["minor_faults"], "read": ["minor_faults"], "sleep": ["blocked"]}
    node, tasks = check_software(hot, witness, expected)
    assert node["kernel"]
    # In page faults is most of what these two do; the other two have none.
    assert tasks["fault"]["fault_samples"] >= 0.4 * tasks["fault"]["samples"]
    assert tasks["plain"]["fault_samples"] <= 0.02 * tasks["plain"]["samples"]


def test_an_ordinary_user_sees_faults_of_the_program_itself_and_switches(bed, tmp_path):
    hot, witness = record_faults(bed, tmp_path, "ann")
    node, tasks = check_software(hot, witness, {"fault": ["minor_faults"], "sleep": ["blocked"]})
    assert not node["kernel"]
    # The kernel writes into the new pages of this one: its faults are its own.
    assert tasks["read"]["minor_faults"]["count"] <= 0.01 * tasks["fault"]["minor_faults"]["count"]
    assert "fault_samples" not in tasks["fault"]
