# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a merge of the two-partition job, by everything that the tests know of it.

Kept apart from the test that wants to hear "nothing", because the mutants (programs that are wrong
on purpose) must hear something.
"""

import os
import shutil

from tests.integration import raw_trace, steps
from tests.integration.fleet import load

MASTER, WORKER = "master-0", "worker-0"
STEP_NAME = "train_step"
USEFUL_BOUND_NS = 2_000_000


def problems(fleet, run, truth_ns, program="syncline", **environment):
    """A list of sentences. `run` is merged anew; `truth_ns` is the worker's monotonic clock minus
    the master's; `environment` is the program's."""
    found = []

    def merge(*arguments):
        result = fleet.run([program, "merge", *arguments], fine=(0, 3), **environment)
        return result.stdout

    # A cut first: whatever the merge of the whole leaves standing of it is yesterday's.
    merge(run, "--to", "1s")
    merge(run)
    report = load(os.path.join(run, "out", "report.json"))
    raw = {
        node: raw_trace.read_events(raw_trace.trace_directory(run, node))
        for node in (MASTER, WORKER)
    }
    bounds_ns = {node["name"]: node["clock_bound_ns"] for node in report["nodes"]}
    if not all(bound is not None and bound < USEFUL_BOUND_NS for bound in bounds_ns.values()):
        found.append(f"the clock bounds {bounds_ns} say nothing")

    merged = fleet.timeline_events(run, program, **environment)
    moved_ns = {node: raw[node][0].time_ns - merged[node][0].time_ns for node in raw}
    error_ns = moved_ns[WORKER] - moved_ns[MASTER] - truth_ns
    if abs(error_ns) > sum(bound or 0 for bound in bounds_ns.values()):
        found.append(f"the timeline has the worker's clock wrong by {error_ns} ns, its bound less")

    tasks = {node: raw_trace.tasks(events) for node, events in merged.items()}
    master_steps = [t for t in tasks[MASTER] if t.name == STEP_NAME]
    window = load(os.path.join(run, "recording.json"))["window"]
    begin_ns, end_ns = window["begin_timeline_ns"], window["end_timeline_ns"]
    counted = [t for t in master_steps if begin_ns <= t.begin_ns and t.end_ns < end_ns]
    reported = [step for row in report["steps"] for step in row["steps"]]
    if len(reported) < len(counted):
        found.append(f"{len(reported)} of {len(counted)} steps: the output is yesterday's")
    size, groups = steps.group_by_step(tasks[WORKER], master_steps)
    if size < 3 or len(groups) < 15:  # a busy machine makes 7 steps a second, an idle one 50
        found.append(f"{len(groups)} groups of {size} operations are no training job")
    elif len({tuple(sorted(task.name for task in group)) for group in groups}) != 1:
        found.append("the worker runs different operations in different steps")
    elif len(steps.fitting_shifts(groups, master_steps)) != 1:
        found.append("not exactly one shift puts every group into its step")
    elif steps.crossing_share(groups, master_steps) != 0:
        found.append("groups cross their step's boundary")

    return found + twins(run, merge)


def twins(run, merge):
    """The same trace as two nodes has equal process and thread ids on both."""
    trace = raw_trace.trace_directory(run, WORKER)
    out = f"{run}-twins"
    shutil.rmtree(out, ignore_errors=True)
    merge(f"a={trace}", f"b={trace}", "--out", out)
    with open(os.path.join(out, "timeline.perfetto-trace"), "rb") as file:
        timeline = file.read()
    return [
        f"the process of node {node} is not on the timeline"
        for node in "ab"
        if f"{node} · pid".encode() not in timeline
    ]
