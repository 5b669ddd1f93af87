# SPDX-License-Identifier: Apache-2.0
"""Clocks that drift, wall clocks that are set and slewed, probes that stop, while real traces are
recorded: the truth stays inside the bound, and what happened is said.

The second host's clocks drift by 100 ppm and wander by 0.1 ppm, all by one function, for LTTng, the
agent and the job alike: what they would have read without is known exactly.
"""

import bisect
import glob
import json
import os
import time

import pytest

from tests.integration import perfetto
from tests.integration.fleet import INCOMPLETE, load, ticking
from tests.integration.probe_pair import run as run_command
from tests.testbed import HostSpec

STEADY, DRIFTING = "steady", "drifting"
DRIFT_PPB, WANDER_PPB, PERIOD_NS = 100_000, 100, 60_000_000_000
NS_PER_S = 1_000_000_000
CHAIN_NS = 1_000  # MONOTONIC against RAW on both hosts, generously


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    specs = [HostSpec(STEADY), HostSpec(DRIFTING, drift=(DRIFT_PPB, WANDER_PPB, PERIOD_NS))]
    with ticking(tmp_path_factory.mktemp("trouble"), specs, seed=77) as made:
        yield made


def placed_events(fleet, recording, *options):
    """{node: [(timeline, its own clock)]} of all events, sorted."""
    command = ("events", recording, "--format", "jsonl", *options)
    placed = {STEADY: [], DRIFTING: []}
    for line in fleet.syncline(*command, fine=(0, INCOMPLETE)).stdout.splitlines():
        if line.startswith("{"):
            record = json.loads(line)
            placed[record["node"]].append((record["time_ns"], record["clock_ns"]))
    return {node: sorted(events) for node, events in placed.items()}


def errors_ns(fleet, placed):
    """How far each event of the drifting host is from where it belongs on the timeline, by the
    steady host's clock."""
    steady = placed[STEADY]
    apart_ns = fleet.bed.monotonic_difference_ns(STEADY, DRIFTING)
    host = fleet.bed[DRIFTING]
    errors = []
    for time_ns, clock_ns in placed[DRIFTING]:
        index = bisect.bisect_left(steady, (time_ns, 0))
        if 0 < index < len(steady):
            (t0, c0), (t1, c1) = steady[index - 1], steady[index]
            there = c0 + (c1 - c0) * (time_ns - t0) // max(t1 - t0, 1)
            errors.append(host.undrifted_ns(clock_ns) - apart_ns - there)
    assert len(errors) > 200, "the job did not tick"
    return errors


def pair_bound_ns(clocks):
    """Half of the proven interval between the two, at its widest."""
    (pair,) = clocks["pairs"]
    assert {pair["from"], pair["to"]} == {STEADY, DRIFTING}
    return pair["bound_worst_ns"]


def check_truth(fleet, recording):
    """Truth and estimate lie in the same interval, so they are at most its width apart."""
    clocks = fleet.clocks(recording)
    worst_ns = max(abs(error) for error in errors_ns(fleet, placed_events(fleet, recording)))
    bound_ns = pair_bound_ns(clocks)
    print(f"\n  events are off by {worst_ns} ns at most, bound {bound_ns} ns")
    assert worst_ns <= 2 * bound_ns + CHAIN_NS
    return clocks


def test_a_clock_that_drifts_and_wanders(fleet):
    recording = fleet.record("run-drift", 6)
    clocks = check_truth(fleet, recording)
    edge = clocks["edges"][STEADY, DRIFTING]
    assert edge["source"] == "kernel"
    assert abs(edge["drift_ppb"] - DRIFT_PPB) < 5_000, "it does not drift: nothing is tested"
    assert pair_bound_ns(clocks) < 100_000, "a bound that is worth nothing"


def test_wall_clocks_that_are_set_and_slewed_while_recording(fleet):
    """Back and forth by seconds on one host, by 300 ppm all the time on the other; the kernel's
    stamps of packets move with them."""
    hosts = [fleet.bed[STEADY], fleet.bed[DRIFTING]]
    were = [host.spec.wall_error_ns for host in hosts]
    recorder = fleet.start_record("run-walls", 6)
    recording = os.path.join(fleet.work, "run-walls")
    try:
        fleet.wait_until_it_records(recorder, recording, 0)
        changes = 0
        while recorder.poll() is None:
            time.sleep(0.01)
            changes += 1
            hosts[1].set_wall_error_ns(were[1] + 3_000 * changes)
            if changes % 100 == 0:
                step_ns = 2 * NS_PER_S if changes % 200 == 0 else -3 * NS_PER_S
                hosts[0].set_wall_error_ns(were[0] + step_ns)
    finally:
        for host, was in zip(hosts, were):
            host.set_wall_error_ns(was)
    assert recorder.returncode in (0, INCOMPLETE), recorder.stdout.read()
    assert changes > 200
    clocks = check_truth(fleet, recording)
    stepped = [event for event in clocks["events"] if event["kind"] == "step"]
    assert any(event["node"] == STEADY for event in stepped), "no step was seen"
    # What happened to a clock is on the timeline, and in the report.
    fleet.syncline("merge", recording, fine=(0, INCOMPLETE))
    report = load(os.path.join(recording, "out", "report.json"))
    told = [event for event in report["clock_events"] if event["what"] == "clock set"]
    assert any(event["clock_of"] == STEADY for event in told)
    assert "Clock events" in fleet.syncline("report", recording, fine=(0, 3)).stdout


def test_perfetto_shows_what_happened_to_the_clocks(fleet):
    """Of the recording before."""
    rows = perfetto.query(
        os.path.join(fleet.work, "run-walls", "out", "timeline.perfetto-trace"),
        "select slice.name from slice join track on track_id = track.id "
        "where track.name = 'clock events' and category = 'clock'",
    )
    assert ["clock set"] in rows


def block_udp(fleet, node, how):
    namespace = fleet.bed[node].namespace
    end = ["action", "block"] if how == "add" else []
    run_command("ip", "-n", namespace, "xfrm", "policy", how, "proto", "17", "dir", "in", *end)


def silence_of(clocks):
    """The event that says since when the nodes' own probes had no answer."""
    (silence,) = [
        event
        for event in clocks["events"]
        if event["node"] == f"{STEADY}--{DRIFTING}" and "for the last" in event["text"]
    ]
    return silence


def test_udp_that_is_cut_off_in_the_middle(fleet):
    """The nodes' own probes end, gRPC goes on: another source, a wider bound, the same truth."""
    recorder = fleet.start_record("run-cut-off", 10)
    recording = os.path.join(fleet.work, "run-cut-off")
    fleet.wait_until_it_records(recorder, recording, 3)
    block_udp(fleet, DRIFTING, "add")
    try:
        recorder.wait(timeout=60)
    finally:
        block_udp(fleet, DRIFTING, "delete")
    assert recorder.returncode in (0, INCOMPLETE), recorder.stdout.read()
    clocks = check_truth(fleet, recording)
    assert clocks["edges"][STEADY, DRIFTING]["source"] == "kernel"
    assert silence_of(clocks)["kind"] == "gap"
    fleet.syncline("merge", recording, fine=(0, INCOMPLETE))


def test_perfetto_shows_the_bound_widen(fleet):
    """Of the recording before."""
    recording = os.path.join(fleet.work, "run-cut-off")
    cut_ns = silence_of(check_truth(fleet, recording))["timeline_begin_ns"]
    bounds = [
        (int(ts), float(value))
        for ts, value in perfetto.query(
            os.path.join(recording, "out", "timeline.perfetto-trace"),
            f"select ts - {perfetto.ZERO}, value from counter join track on "
            "counter.track_id = track.id join track node on track.parent_id = node.id where "
            f"track.name = 'clock bound' and node.name = 'node {DRIFTING}' order by ts",
        )
    ]
    before = [bound for ts, bound in bounds if ts < cut_ns - NS_PER_S]
    after = [bound for ts, bound in bounds if ts > cut_ns + 2 * NS_PER_S]
    assert before and after and min(after) > 2 * max(before), (before, after)


def test_without_a_single_sample_nothing_is_claimed_across_nodes(fleet):
    """As where neither UDP nor gRPC probes get through: merged by wall clock, and that is said."""
    recording = fleet.record("run-blind", 2)
    for path in glob.glob(os.path.join(recording, "clocks", "*")):
        if path.endswith((".samples", "models.json")):
            os.remove(path)
    merged = fleet.syncline("merge", recording, fine=(INCOMPLETE,)).stdout
    assert "wall clock" in merged
    report = load(os.path.join(recording, "out", "report.json"))
    assert not report["complete"]
    nodes = {node["name"]: node for node in report["nodes"]}
    assert nodes[DRIFTING]["clock_bound_ns"] is None
    for node in report["nodes"]:
        for claim in ("start_skew", "stop_skew", "wall_clock_error"):
            across = node[claim] is not None and node["name"] != report["reference_node"]
            assert not across or node[claim]["bound_ns"] is None, (node["name"], claim)
    for groups in report["groups"]:
        assert groups["inside"] == groups["outside"] == 0
    # What happened is all there, all the same.
    assert all(node["events"] > 200 for node in report["nodes"])
