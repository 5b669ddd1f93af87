# SPDX-License-Identifier: Apache-2.0
"""A program that writes down what it did, against what the timeline says it did.

syncline-itt-truth brackets each of its ITT calls with two readings of the trace clock. Recorded
with generous buffers, every span inside coverage is there; with 4 KiB ones many are lost. In both
cases every name is right, and no span is wrong that the timeline does not mark as doubtful.
"""

import bisect
import collections
import json
import os

import pytest

from tests.integration import perfetto, raw_trace
from tests.integration.fleet import INCOMPLETE, Fleet, load, node_of, pids_of
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import BUILD


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    binds = {"/opt/truth": os.path.join(BUILD, "bin", "syncline-itt-truth")}
    specs = [HostSpec("solo"), HostSpec("tiny")]
    with Testbed(specs, seed=35, binds=binds) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("truth"))
        made.up()
        yield made
        made.fab("down")


class Truth:
    """The program's own account: spans by (tid, depth, name), sorted by begin."""

    def __init__(self, text):
        self._spans = collections.defaultdict(list)
        self._places = set()
        for line in text.splitlines():
            words = line.split("\t")
            if words[0] == "span":
                tid, depth, begin0, begin1, end0, end1 = map(int, words[2:8])
                self._spans[tid, depth, words[9]].append((begin0, begin1, end0, end1))
                self._places.add((tid, depth))
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

    def has(self, name, begin_ns, end_ns):
        """Whether a span of some thread, at some depth, began and ended at these instants.
        (Perfetto's depth is that of what is drawn: below a lost parent it is smaller.)"""
        for tid, depth in self._places:
            span = self.find(tid, depth, name, begin_ns, 0)
            if span and span[2] <= end_ns <= span[3]:
                return True
        return False

    def between(self, begin_ns, end_ns):
        """How many spans (surely, possibly) lie in an interval: a call may straddle its ends."""
        spans = [span for spans in self._spans.values() for span in spans]
        surely = sum(begin_ns <= span[0] and span[3] <= end_ns for span in spans)
        possibly = sum(begin_ns <= span[1] and span[2] <= end_ns for span in spans)
        return surely, possibly


def launch_truth(fleet, name):
    """Starts the program on both hosts, until account_of(): two threads, some 100,000 tasks a
    second in all."""
    for host in fleet.bed.hosts:
        host.run(["rm", "-f", "/tmp/truth"])
    program = "/opt/truth --threads 2 --depth 4 --tasks 0 --duration-ms 120000 --work-ns 10000"
    fleet.fab("launch", "--job", name, "--command", f"{program} --truth /tmp/truth")


def account_of(host):
    """Ends the program; its own account."""
    (pid,) = pids_of(host, "truth")
    host.run(["kill", "-TERM", pid])
    host.run(["timeout", "60", "tail", f"--pid={pid}", "-f", "/dev/null"])
    return Truth(host.run(["cat", "/tmp/truth"]).stdout)


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


def missing(events):
    """How many begins and ends of tasks are missing, by the numbers that each thread gave them."""
    last, count = {}, 0
    for event in sorted(events, key=lambda event: event.time_ns):
        if "number" in event.fields:
            thread, number = event.fields["thread"], event.fields["number"]
            count += (number - last.get(thread, number - 1) - 1) % 65536
            last[thread] = number
    return count


def check_each_span(fleet, run, node, truth):
    """Every span of the timeline that is not marked as doubtful happened just so; how many are."""
    text = fleet.syncline("events", run, "--format", "jsonl", "--nodes", node, fine=(0, 3)).stdout
    records = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
    node_clock = {record["time_ns"]: record["clock_ns"] for record in records}
    rows = perfetto.query(
        os.path.join(run, "out", "timeline.perfetto-trace"),
        f"select ts - {perfetto.ZERO}, dur, slice.name, exists (select 1 from args where "
        "args.arg_set_id = slice.arg_set_id and key in ('debug.clipped begin', "
        f"'debug.clipped end', 'debug.suspect')) from slice {perfetto.OF_THREADS} "
        f"where {perfetto.of_node(node)}",
    )
    doubtful = 0
    for ts, dur, name, marked in rows:
        if marked == "1":
            doubtful += 1
            continue
        begin_ns, end_ns = node_clock[int(ts)], node_clock[int(ts) + int(dur)]
        assert truth.has(name, begin_ns, end_ns), (name, begin_ns, end_ns)
    return len(rows), doubtful


@pytest.fixture(scope="module")
def recorded(fleet):
    """A recording of the host with generous buffers, then one of the other with two sub-buffers of
    4 KiB. ({host: account}, {host: run})"""
    launch_truth(fleet, "truth")
    tiny = ("run-tiny", 1, "-H", "tiny", "--buffer-size", "4k", "--buffer-count", "2")
    runs = {"solo": fleet.record("run-solo", 1, "-H", "solo")}
    accounts = {"solo": account_of(fleet.bed["solo"])}
    runs["tiny"] = fleet.record(*tiny, fine=(INCOMPLETE,))
    accounts["tiny"] = account_of(fleet.bed["tiny"])
    fleet.syncline("merge", runs["solo"])
    fleet.syncline("merge", runs["tiny"], fine=(INCOMPLETE,))
    return accounts, runs


def raw_events(run, node):
    return raw_trace.read_events(raw_trace.trace_directory(run, node))


def test_generous_buffers_lose_nothing_and_every_name_is_right(fleet, recorded):
    accounts, runs = recorded
    run = runs["solo"]
    node = node_of(run, "solo")
    assert node["state"] == "complete"
    assert sum(channel["discarded_events"] for channel in node["channels"]) == 0
    events = raw_events(run, "solo")
    check_each_event(events, accounts["solo"])
    assert missing(events) == 0 and any("number" in event.fields for event in events)
    on = next(e.time_ns for e in events if e.name == "syncline:on")
    # The event `off` comes after the gate: one thread writes it, and the other goes on meanwhile.
    off = node["stop"]["gate_begin_monotonic_ns"]
    assert on < off < next(e.time_ns for e in events if e.name == "syncline:off")
    tasks = [t for t in raw_trace.tasks(events) if on <= t.begin_ns and t.end_ns <= off]
    surely, possibly = accounts["solo"].between(on, off)
    assert 1000 < surely <= len(tasks) <= possibly


def test_tiny_buffers_lose_events_say_so_and_no_name_is_wrong(recorded):
    accounts, runs = recorded
    run = runs["tiny"]
    node = node_of(run, "tiny")
    assert node["state"] == "incomplete"
    assert node["prepare"]["subbuffer_bytes"] == 4096 and node["prepare"]["subbuffer_count"] == 2
    events = raw_events(run, "tiny")
    check_each_event(events, accounts["tiny"])
    recorded_own = sum(process["events"] for process in node["processes"])
    ours = sum(e.name.startswith("syncline") and e.name != "syncline:canary" for e in events)
    assert 0 < missing(events) <= recorded_own - ours
    report = load(os.path.join(run, "out", "report.json"))
    losses = next(n for n in report["nodes"] if n["name"] == "tiny")["losses"]
    assert sum(loss["count"] for loss in losses) == recorded_own - ours


def test_perfetto_shows_no_span_that_did_not_happen(fleet, recorded):
    accounts, runs = recorded
    spans, doubtful = check_each_span(fleet, runs["solo"], "solo", accounts["solo"])
    # At either end of the window each of the two threads has up to five tasks open.
    assert spans > 1000 and doubtful <= 2 * 2 * 5
    spans, doubtful = check_each_span(fleet, runs["tiny"], "tiny", accounts["tiny"])
    assert spans > 1000 and 0 < doubtful < spans // 2
