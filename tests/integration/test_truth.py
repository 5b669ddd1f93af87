"""A program that writes down what it did, against what the timeline says it did.

syncline-itt-truth brackets each of its ITT calls with two readings of the trace clock. Recorded
with generous buffers, every span inside coverage is there; with tiny ones some are lost. In both
cases every name is right, and no span is wrong that the timeline does not mark as doubtful.
"""

import bisect
import collections
import os

import pytest

from tests.integration import raw_trace
from tests.integration.fleet import Fleet, load
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import BUILD

INCOMPLETE = 3


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    binds = {"/opt/truth": os.path.join(BUILD, "bin", "syncline-itt-truth")}
    with Testbed([HostSpec("solo")], seed=35, binds=binds) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("truth"))
        made.up()
        yield made
        made.fab("down")


class Truth:
    """The program's own account: spans by (tid, depth, name), sorted by begin."""

    def __init__(self, text):
        self._spans = collections.defaultdict(list)
        self.count = 0
        for line in text.splitlines():
            words = line.split("\t")
            if words[0] == "span":
                tid, depth, begin0, begin1, end0, end1 = map(int, words[2:8])
                self._spans[tid, depth, words[9]].append((begin0, begin1, end0, end1))
                self.count += 1
        for spans in self._spans.values():
            spans.sort()

    def find(self, tid, depth, name, at_ns, which):
        """The span whose begin (which 0) or end (which 1) call bracketed the instant, or None."""
        spans = self._spans.get((tid, depth, name), [])
        column = 2 * which
        index = bisect.bisect_right(spans, at_ns, key=lambda span: span[column]) - 1
        if index >= 0 and spans[index][column] <= at_ns <= spans[index][column + 1]:
            return spans[index]
        return None

    def between(self, begin_ns, end_ns):
        """How many spans lie wholly in an interval."""
        return sum(
            begin_ns <= span[0] and span[3] <= end_ns
            for spans in self._spans.values()
            for span in spans
        )


def record_truth(fleet, name, *record_arguments):
    """(recording, the program's account, the raw events in the node's clock)"""
    host = fleet.bed["solo"]
    host.run(["rm", "-f", "/tmp/truth"])
    program = "/opt/truth --threads 2 --depth 4 --tasks 0 --duration-ms 9000 --work-ns 20000"
    fleet.fab("launch", "--job", name, "--command", f"{program} --truth /tmp/truth")
    run = os.path.join(fleet.work, name)
    arguments = [*fleet.fleet_arguments(), "--for", "2s", "--out", run, *record_arguments]
    fleet.last = fleet.syncline("record", *arguments, fine=(0, INCOMPLETE))
    host.run(["sh", "-c", "timeout 30 tail --pid=$(pgrep -x truth) -f /dev/null"], check=False)
    account = host.run(["cat", "/tmp/truth"]).stdout
    fleet.syncline("merge", run, fine=(0, INCOMPLETE))
    return run, Truth(account), raw_trace.read_events(raw_trace.trace_directory(run, "solo"))


def tids(events):
    return {e.fields["thread"]: e.fields["tid"] for e in events if e.name == "syncline:thread"}


def check_each_event(events, truth):
    """Every begin and every end that was recorded happened, with that name and depth, then."""
    names, threads = raw_trace.task_names(events), tids(events)
    for event in events:
        kind = event.name.removeprefix("syncline_itt:")
        if kind in ("task_begin", "task_begin_id", "task_end"):
            fields = event.fields
            name = names[fields["name"]]
            which = int(kind == "task_end")
            tid = threads[fields["thread"]]
            assert truth.find(tid, fields["depth"], name, event.time_ns, which), (event, name)


def test_generous_buffers_lose_nothing_and_every_name_is_right(fleet):
    run, truth, events = record_truth(fleet, "generous")
    node = load(os.path.join(run, "recording.json"))["nodes"][0]
    assert node["state"] == "complete"
    assert sum(channel["discarded_events"] for channel in node["channels"]) == 0
    check_each_event(events, truth)
    on = next(e.time_ns for e in events if e.name == "syncline:on")
    off = next(e.time_ns for e in events if e.name == "syncline:off")
    recorded = [t for t in raw_trace.tasks(events) if on <= t.begin_ns and t.end_ns <= off]
    assert len(recorded) == truth.between(on, off) > 1000
    assert len(fleet.timeline_tasks(run)["solo"]) == len(raw_trace.tasks(events))
