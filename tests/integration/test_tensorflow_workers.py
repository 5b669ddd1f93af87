# SPDX-License-Identifier: Apache-2.0
"""MultiWorkerMirroredStrategy: its collectives, from the recording in
tests/golden/tensorflow_workers; and that a worker which runs collectives is recorded without asking
TensorFlow's profiler, which might crash it."""

import json
import os
import shutil

import pytest

from tests.integration.fleet import EXAMPLES, HOST_TENSORFLOW, TENSORFLOW, Fleet, load, pids_of
from tests.integration.test_tensorflow_profile import merge
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY

GOLDEN = os.path.join(REPOSITORY, "tests", "golden", "tensorflow_workers")
EXPECTED = load(os.path.join(GOLDEN, "expected.json"))
NODES = ["worker-0", "worker-1"]
# The gradients of both convolutions and of the classifier.
GRADIENT_BYTES = 4 * (3 * 3 * 1 * 32 + 3 * 3 * 32 * 32 + 4 * 4 * 32 * 10)
NAMES = {"CollectiveReduceV2": "allreduce", "CollectiveGatherV2": "allgather"}


@pytest.fixture(scope="module")
def merged(tmp_path_factory):
    run = str(tmp_path_factory.mktemp("workers") / "run")
    shutil.copytree(os.path.join(GOLDEN, "run"), run)
    return run, merge(run)


def test_the_operators_of_both_workers_are_there(merged):
    _, report = merged
    for number, node in enumerate(report["nodes"]):
        (profile,) = node["profiles"]
        assert profile["task"] == f"/job:worker/replica:0/task:{number}"
        assert profile["operators"] == EXPECTED["operators"][node["name"]]
        assert profile["undecided_events"] == 0
        names = {
            task["name"]
            for task in report["tasks"]
            if task["domain"] == "TensorFlow operators" and task["node"] == node["name"]
        }
        assert {"Relu", "CollectiveReduceV2", "gradient_tape/Conv2DBackpropInput"} <= names


def test_collectives_are_those_that_tensorflows_own_reader_finds(merged):
    """By key, with every worker's entry and exit at the distances that its own clock gave them."""
    _, report = merged
    found = report["collectives"]
    (group,) = found["groups"]
    assert (group["name"], group["ranks"], group["size"]) == ("1", "0-1", 2)
    assert found["undecided_launches"] == found["contradicting_the_model"] == 0
    rows = {row["number"]: row for row in found["rows"]}
    assert sorted(rows) == [row["key"] for row in EXPECTED["collectives"]]
    apart = {node: [] for node in NODES}
    for expected in EXPECTED["collectives"]:
        row = rows[expected["key"]]
        assert [member["node"] for member in row["members"]] == sorted(expected["members"])
        for member in row["members"]:
            known = expected["members"][member["node"]]
            assert row["name"] == NAMES[known["type"]]
            for key in ("entered", "left"):
                apart[member["node"]].append(member[f"{key}_ns"] - known[key])
    # Two clocks of one host: the wall clock and the trace clock, over 150 ms.
    assert all(max(times) - min(times) < 50_000 for times in apart.values())
    whole = [row for row in rows.values() if len(row["members"]) == 2]
    assert len(whole) > 20
    assert {row["bytes"] for row in whole if row["name"] == "allreduce"} == {GRADIENT_BYTES}
    assert {row["bytes"] for row in whole if row["name"] == "allgather"} == {4}


def test_nobody_leaves_a_collective_before_everybody_has_entered(merged):
    """Their keys know nothing of this; by wall clock it is not so."""
    _, report = merged

    def early(rows):
        return sum(min(left) < max(entered) for entered, left in rows)

    rows = [row["members"] for row in report["collectives"]["rows"] if len(row["members"]) == 2]
    here = [[[m[key] for m in row] for key in ("entered_ns", "left_ns")] for row in rows]
    by_wall = [
        [[m[key] for m in row["members"].values()] for key in ("entered", "left")]
        for row in EXPECTED["collectives"]
        if len(row["members"]) == 2
    ]
    assert early(here) == 0
    assert early(by_wall) == len(by_wall) == len(here)


def test_collectives_tie_the_clocks_together(merged, tmp_path):
    """As facts beside the probes they contradict nothing."""
    run, _ = merged
    again = shutil.copytree(run, tmp_path / "run")
    refitted = merge(again, "--refit")
    assert refitted["collectives"]["contradicting_the_model"] == 0
    assert max(node["clock_bound_ns"] for node in refitted["nodes"]) < 100_000


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    specs = [HostSpec(name, role="worker") for name in NODES]
    with Testbed(specs, seed=61, binds={HOST_TENSORFLOW: TENSORFLOW}) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("live"))
        made.up()
        made.fab(
            *("launch", "--copy", os.path.join(EXAMPLES, "tensorflow_multi_worker")),
            *("--command", f"env TF_CPP_MIN_LOG_LEVEL=2 {HOST_TENSORFLOW}/bin/python train.py"),
            *("--ready", "step 1:"),
        )
        yield made
        made.fab("down")


def test_workers_with_collectives_are_recorded_and_their_profilers_left_alone(fleet):
    before = [pids_of(host, "python") for host in fleet.bed.hosts]
    run = fleet.record("run", 2)
    assert [pids_of(host, "python") for host in fleet.bed.hosts] == before
    assert fleet.last.stdout.count("profiler crashes workers that do") >= 2, fleet.last.stdout
    assert "--tf-profiler-collectives" in fleet.last.stdout
    for node in NODES:
        with open(os.path.join(run, "nodes", node, "xspace", "profiles.json")) as file:
            (profile,) = json.load(file)["profiles"]
        assert profile["state"] == "missing" and "collectives" in profile["failure"]
        assert "file" not in profile
    fleet.syncline("merge", run)
    for tasks in fleet.timeline_tasks(run).values():
        assert sum(task.name == "convolution" for task in tasks) > 2
    nodes = fleet.syncline("nodes", *fleet.fleet_arguments()).stdout
    assert "used only on request" in nodes
