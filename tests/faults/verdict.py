# SPDX-License-Identifier: Apache-2.0
"""What a recording and its merge claim, held against the programs' own account."""

import dataclasses
import json
import os
import subprocess
import time

from tests.faults import truth
from tests.faults.stage import VICTIM
from tests.integration import raw_trace
from tests.integration.fleet import INCOMPLETE, load

# A gate that opened later than asked is a loss from here on; below, the report's table of starts
# says it (coordinator/recording/coverage.cc).
LATE_NS = 500_000_000
EDGE_NS = 5_000_000  # on both sides of the window: not judged, besides the clocks' bound
EVENTS = {"syncline_itt:task_begin": "task_begin", "syncline_itt:task_end": "task_end"}


@dataclasses.dataclass
class NodeVerdict(truth.Verdict):
    state: str = ""
    losses: list = dataclasses.field(default_factory=list)
    read_by_others: int | None = None  # events that babeltrace2 finds; None: it finds no trace
    events: int = 0

    def lacks(self):
        """Why the node is not whole; "" when it is."""
        if self.state != "complete":
            return self.state
        if self.missing:
            return f"{self.missing} of {self.calls} calls are missing"
        return ""

    def summary(self):
        return {
            "state": self.state,
            "calls": self.calls,
            "found": self.found,
            "missing": self.missing,
            "unexplained": len(self.unexplained),
            "losses": [
                [one["reason"], one["count"], one["begin_ns"], one["end_ns"], one["detail"]]
                for one in self.losses
            ],
        }


def judge_run(stage, run, say):
    """{node: NodeVerdict} of a recording, merged."""
    merged = stage.fleet.syncline("merge", run, check=False)
    say(f"merge: exit {merged.returncode}", merged.stdout)
    assert merged.returncode in (0, INCOMPLETE), merged.stdout
    report = load(os.path.join(run, "out", "report.json"))
    recording = load(os.path.join(run, "recording.json"))
    events = timeline_events(stage.fleet, run)
    verdicts = {}
    for node in recording["nodes"]:
        name = node["name"]
        shown = next(one for one in report["nodes"] if one["name"] == name)
        window = window_of(recording, node, shown)
        judged = truth.judge(
            stage.calls(stage.bed[name]),
            events.get(name, []),
            window,
            shown["losses"],
            zero_on(stage, recording, name),
        )
        verdicts[name] = NodeVerdict(
            **vars(judged),
            state=node["state"],
            losses=shown["losses"],
            events=len(events.get(name, [])),
            read_by_others=count_by_babeltrace(run, name),
        )
    return verdicts


def timeline_events(fleet, run):
    """{node: the tasks' begins and ends, in its own clock}, from `syncline events`."""
    found = {}
    for line in fleet.syncline("events", run, "--format", "jsonl", fine=(0, 3)).stdout.splitlines():
        if not line.startswith("{"):
            continue
        record = json.loads(line)
        kind = EVENTS.get(record["event"])
        if kind:
            fields = record["fields"]
            found.setdefault(record["node"], []).append(
                truth.Event(record["clock_ns"], fields.get("pid"), fields.get("tid"), kind)
            )
    return found


def count_by_babeltrace(run, name):
    """Another reader's count; None where it finds nothing that it can read."""
    if not raw_trace.trace_exists(run, name):
        return None
    try:
        events = raw_trace.read_events(raw_trace.trace_directory(run, name))
    except subprocess.CalledProcessError:
        return None
    return sum(event.name in EVENTS for event in events)


def zero_on(stage, recording, name):
    """Timeline zero in the node's monotonic clock. Both hosts' clocks are this machine's, each with
    a known offset: no clock model is needed, and none is believed."""
    host = stage.bed[name]
    reference = stage.bed[recording["reference"]["node"]]
    ahead_ns = time.monotonic_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    for node in recording["nodes"]:  # as it was then, where a node has said it
        start = node["start"]
        if start["gate_begin_monotonic_raw_ns"]:
            ahead_ns = start["gate_begin_monotonic_ns"] - start["gate_begin_monotonic_raw_ns"]
    zero_ns = recording["reference"]["zero_monotonic_raw_ns"] + ahead_ns
    return zero_ns + host.spec.monotonic_offset_ns - reference.spec.monotonic_offset_ns


def window_of(recording, node, shown):
    """The part of the window that the node says it has, unless a loss says otherwise."""
    begin_ns = recording["window"]["begin_timeline_ns"]
    end_ns = recording["window"]["end_timeline_ns"]
    late_ns = gate_ns(node["start"], "gate_end_monotonic_raw_ns")
    if late_ns is not None and 0 < late_ns < LATE_NS:
        begin_ns += late_ns
    early_ns = gate_ns(node["stop"], "gate_begin_monotonic_raw_ns")
    if early_ns is not None and -EDGE_NS < early_ns < 0:
        end_ns += early_ns
    edge_ns = EDGE_NS + (shown["clock_bound_ns"] or 0)
    return begin_ns + edge_ns, end_ns - edge_ns


def gate_ns(gate, which):
    """When the gate moved, relative to when it was to move; None: unknown."""
    if not gate["requested_monotonic_raw_ns"] or not gate[which]:
        return None
    return gate[which] - gate["requested_monotonic_raw_ns"]


def check_recording(run, code, verdicts):
    """What is wrong with what the recording says, in sentences."""
    problems = []
    said_whole = all(verdict.state == "complete" for verdict in verdicts.values())
    if code == 0 and not said_whole:
        problems.append(f"exit 0, and {[v.state for v in verdicts.values()]}")
    for name, verdict in verdicts.items():
        if verdict.state == "complete" and verdict.missing:
            problems.append(
                f"{name}: complete, and {verdict.missing} of {verdict.calls} calls are missing")
        if verdict.unexplained:
            first, last = verdict.unexplained[0][0], verdict.unexplained[-1][1]
            problems.append(
                f"{name}: {len(verdict.unexplained)} of {verdict.calls} calls are missing, from "
                f"{first / 1e9:.3f} to {last / 1e9:.3f} s, and no loss says so")
        if verdict.strangers:
            problems.append(f"{name}: {verdict.strangers} events are no call of the program")
        if verdict.twice:
            problems.append(f"{name}: {verdict.twice} calls are there twice")
        if verdict.read_by_others is not None and verdict.events != verdict.read_by_others:
            problems.append(f"{name}: {verdict.events} events, and babeltrace2 finds "
                            f"{verdict.read_by_others}")
    if not os.path.exists(os.path.join(run, "out", "timeline.perfetto-trace")):
        problems.append("there is no timeline")
    assert VICTIM in verdicts
    return problems
