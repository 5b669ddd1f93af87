# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's partitions, tensors and operators, against what TensorFlow itself says of the same
steps: RunMetadata, which the master asks for every few steps (metadata_master.py)."""

import collections
import json
import os
import shutil
import statistics

import pytest

from tests.integration import xspace
from tests.integration.fleet import (
    COMMAND_TIMEOUT_S,
    EXAMPLES,
    HOST_TENSORFLOW,
    TENSORFLOW,
    Fleet,
    load,
)
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY

NODES = ("master-0", "worker-0")
DEVICE = {node: f"/job:{node[:-2]}/replica:0/task:0/device:CPU:0" for node in NODES}
JOB = "metadata"
LARGE_BYTES = 1 << 16  # what TensorFlow allocates anew for a tensor that it receives
CLOCKS_NS = 50_000  # two nodes' clocks and their wall clocks are known much better

Span = collections.namedtuple("Span", "category name begin end arguments")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """(run, report, TensorFlow's words)."""
    work = tmp_path_factory.mktemp("metadata")
    folder = str(work / "job")
    shutil.copytree(os.path.join(EXAMPLES, "tensorflow_two_partitions"), folder)
    shutil.copy(os.path.join(REPOSITORY, "tests", "integration", "metadata_master.py"), folder)
    specs = [HostSpec(name, role=name[:-2]) for name in NODES]
    with Testbed(specs, seed=62, binds={HOST_TENSORFLOW: TENSORFLOW}) as bed:
        fleet = Fleet(bed, work)
        fleet.up()
        command = (
            f"env TF_CPP_MIN_LOG_LEVEL=2 {HOST_TENSORFLOW}/bin/python "
            "$(test {role} = worker || echo metadata_){role}.py"
        )
        fleet.fab(
            *("launch", "--job", JOB, "--copy", folder, "--command", command),
            *("--ready", "step 1"),
        )
        folder = f"/opt/syncline/var/jobs/{JOB}"
        run = os.path.join(fleet.work, "run")
        recorder = fleet.start_record(run, 4)
        fleet.wait_until_it_records(recorder, run)
        bed[NODES[0]].run(["touch", f"{folder}/ask"])
        assert recorder.wait(timeout=COMMAND_TIMEOUT_S) == 0, recorder.stdout.read()
        fleet.syncline("merge", run, "--format", "chrome")
        text = bed[NODES[0]].run(["cat", f"{folder}/metadata"]).stdout
        fleet.fab("down")
    lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return run, load(os.path.join(run, "out", "report.json")), [json.loads(x) for x in lines]


@pytest.fixture(scope="module")
def events(recorded):
    """{node: its process's trace events}."""
    run, _, _ = recorded
    folder = os.path.join(run, "out", "chrome", JOB)
    return {
        node: load(os.path.join(folder, f"rank-{rank}.json"))["traceEvents"]
        for rank, node in enumerate(NODES)
    }


def spans_of(found):
    """Timeline ns."""

    def ns(value):
        return round(value * 1000) - 3600 * 10**9

    return [
        Span(e["cat"], e["name"], ns(e["ts"]), ns(e["ts"] + e["dur"]), e["args"])
        for e in found
        if e["ph"] == "X"
    ]


@pytest.fixture(scope="module")
def spans(events):
    return {node: spans_of(found) for node, found in events.items()}


def steps_of(spans):
    """{step id: its RunGraph}."""
    return {
        span.arguments["step id"]: span for span in spans if span.category == "TensorFlow steps"
    }


@pytest.fixture(scope="module")
def whole_steps(spans):
    """Ids of the steps that both have, but for the last, which may have been cut."""
    ids = None
    for node in NODES:
        steps = steps_of(spans[node])
        last = max(steps, key=lambda step: steps[step].begin)
        ids = (steps.keys() if ids is None else ids) & (steps.keys() - {last})
    assert len(ids) > 10
    return ids


def test_what_the_worker_does_for_a_step_lies_inside_the_masters_step(spans, whole_steps):
    marks = [span for span in spans[NODES[0]] if span.name == "train_step"]
    masters = steps_of(spans[NODES[0]])
    checked = 0
    for span in spans[NODES[1]]:
        step = span.arguments.get("step id")
        # What begins is enough: the worker answers before the thread that does so has returned.
        if step not in whole_steps:
            continue
        around = [
            mark
            for mark in marks
            if mark.begin - CLOCKS_NS <= masters[step].begin <= mark.end + CLOCKS_NS
        ]
        if not around or {"clipped begin", "clipped end"} & around[0].arguments.keys():
            continue  # the profile is a little longer than the window
        (mark,) = around
        assert mark.begin - CLOCKS_NS <= span.begin <= mark.end + CLOCKS_NS, (mark, span)
        assert span.name != "RunGraph" or span.end <= mark.end + CLOCKS_NS
        checked += span.name == "RunGraph"
    assert checked > 10


def cut_edges(facts):
    return [
        tensor
        for graph in facts["graphs"]
        for tensor, sender, receiver in graph["sends"]
        if sender != receiver
    ]


def test_arrows_are_the_partition_graphs_cut_edges_times_the_steps(recorded, spans, whole_steps):
    _, report, metadata = recorded
    edges = collections.Counter(cut_edges(metadata[0]))
    assert edges and set(edges.values()) == {1}
    drawn = collections.defaultdict(collections.Counter)
    for node in NODES:
        received = {
            span.begin: span.arguments["step id"]
            for span in spans[node]
            if span.name == "ExecutorState::ProcessAsync::Done"
        }
        for span in spans[node]:
            if span.category == "flow" and "from" in span.arguments and span.begin in received:
                drawn[received[span.begin]][span.name] += 1
    wrong = [step for step in whole_steps if drawn[step] != edges]
    assert len(wrong) <= len(whole_steps) // 1000, [drawn[step] for step in wrong]
    tensors = report["tensors"]
    assert tensors["matched_in_complete_steps"] >= 0.999 * len(edges) * len(whole_steps)
    unmatched = tensors["unmatched"]
    alone = unmatched["sends_in_complete_steps"] + unmatched["receives_in_complete_steps"]
    assert alone <= 0.001 * tensors["matched_in_complete_steps"]
    assert tensors["received_before_sent"]["here"] == 0
    assert tensors["received_before_sent"]["contradicting_the_model"] == 0
    assert {edge["tensor"] for edge in tensors["edges"]} == set(edges)


def test_bytes_are_those_that_tensorflow_received(recorded):
    _, report, metadata = recorded
    truth = collections.defaultdict(set)
    for facts in metadata:
        for tensor, sender, size in facts["received"]:
            truth[tensor, sender].add(size)
    compared = 0
    for edge in report["tensors"]["edges"]:
        sizes = truth[edge["tensor"], edge["send_device"]]
        if edge["bytes"] is None:
            assert max(sizes) < LARGE_BYTES
            continue
        assert {edge["bytes"]} == sizes, edge
        compared += 1
    assert compared == 2  # the activations, and the gradients that come back


def test_partitions_are_tensorflows_own_partition_graphs(recorded):
    _, report, metadata = recorded
    for node, partition in zip(NODES, report["partitions"]):
        assert (partition["node"], partition["devices"]) == (node, [DEVICE[node]])
        (truth,) = [g["nodes"] for g in metadata[0]["graphs"] if g["device"] == DEVICE[node]]
        training = partition["graphs"][0]
        found = {partition["nodes"][at]["name"]: partition["nodes"][at] for at in training["nodes"]}
        assert found.keys() == truth.keys()
        assert training["steps"] > 10
        for name, (kind, data_edges, control_edges) in truth.items():
            assert found[name]["type"] in ((None, kind) if kind == "NoOp" else (kind,))
            assert found[name]["data_edges"] == data_edges
            assert found[name]["control_edges"] == control_edges
            assert found[name]["executions"] >= training["steps"]


def test_operators_took_the_time_that_step_stats_give_them(recorded, events, spans):
    """The profiler looks at the clock just inside of where step_stats do."""
    run, report, metadata = recorded
    kinds = {name: node[0] for g in metadata[0]["graphs"] for name, node in g["nodes"].items()}
    ratios = []
    for node in NODES:
        (entry,) = [found for found in report["nodes"] if found["name"] == node]
        (profile,) = entry["profiles"]
        (kept,) = xspace.profiles(run, node)
        start, stop = xspace.window_ns(kept["xspace"])
        rate = (profile["end_ns"] - profile["begin_ns"]) / (stop - start)
        bounds_ns = [
            event["args"].get("value", 0)
            for event in events[node]
            if event["ph"] == "C" and event["name"] == "clock bound"
        ]
        slack_ns = 2 * max(bounds_ns) + 10_000
        steps = [span.begin for span in steps_of(spans[node]).values()]
        operators = collections.defaultdict(list)
        for span in spans[node]:
            if span.category == "TensorFlow operators":
                operators[span.name].append(span)
        for facts in metadata:
            for device, name, *inside in facts["operators"]:
                kind = kinds.get(name, "NoOp")
                begin, end = (profile["begin_ns"] + (at - start) * rate for at in inside)
                # What the last step did may have been cut off.
                whole = min(steps) < begin and end < max(steps)
                if device != DEVICE[node] or kind == "NoOp" or not whole:
                    continue
                span = min(operators[name], key=lambda s: abs(s.begin - begin))
                assert begin - slack_ns <= span.begin, (name, span, begin)
                if kind == "_Recv":
                    continue  # it waits, which is another event
                assert span.end <= end + slack_ns, (name, span, end)
                if end - begin > 20 * slack_ns:
                    ratios.append((span.end - span.begin) / (end - begin))
    print(f"{len(ratios)} operators, {statistics.median(ratios):.3f} of step_stats' time, median")
    assert len(ratios) > 10
    assert statistics.median(ratios) > 0.9
