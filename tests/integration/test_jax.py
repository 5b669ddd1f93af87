# SPDX-License-Identifier: Apache-2.0
"""A JAX job on two hosts, whose program starts JAX's profiler server."""

import json
import os

import pytest

from tests.integration.fleet import Fleet, load
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY

JAX = os.path.join(REPOSITORY, ".venv-jax")
HOST_JAX = "/opt/jax"
JOB = os.path.join(REPOSITORY, "tests", "integration", "jax_job")
NODES = ["left", "right"]

@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    if not os.path.isdir(JAX):
        pytest.skip("no .venv-jax: scripts/setup --torch makes it")
    specs = [HostSpec(name, role="worker") for name in NODES]
    with Testbed(specs, seed=31, binds={HOST_JAX: JAX}) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("live"))
        made.up()
        made.fab(
            *("launch", "--copy", JOB, "--command", f"{HOST_JAX}/bin/python train.py"),
            *("--ready", "trained 3 steps"),
        )
        yield made
        made.fab("down")


@pytest.fixture(scope="module")
def recorded(fleet):
    run = fleet.record("run", 3)
    return run, json.loads(fleet.syncline("report", run, "--json").stdout)


def test_the_instructions_and_steps_of_both_ranks_are_there(recorded):
    run, report = recorded
    assert [node["name"] for node in report["nodes"]] == NODES
    for node in report["nodes"]:
        (profile,) = node["profiles"]
        assert profile["profiler"] == "jax", profile
        assert profile["steps"] > 20 and profile["operators"] > 20, profile
        assert profile["undecided_events"] == 0
        (listed,) = load(os.path.join(run, "nodes", node["name"], "xspace", "profiles.json"))[
            "profiles"
        ]
        assert listed["framework"] == "JAX" and listed["state"] == "complete", listed
    names = {
        (task["node"], task["name"])
        for task in report["tasks"]
        if task["domain"] == "JAX operators"
    }
    for node in NODES:
        assert any("all-reduce" in name for of, name in names if of == node), names


def test_a_rank_does_not_leave_a_step_before_the_other_has_entered_it(fleet, recorded):
    """The ranks wait for each other in each step, by measured clocks."""
    run, _ = recorded
    fleet.syncline("merge", run, "--format", "chrome")
    steps = {node: {} for node in NODES}
    for node, found in chrome_spans(run).items():
        for event in found:
            if event["name"] == "train":
                number = int(event["args"]["step_num"])
                steps[node][number] = (event["ts"], event["ts"] + event["dur"])
    both = sorted(set(steps["left"]) & set(steps["right"]))
    assert len(both) > 20, steps
    for number in both:
        (begin_left, end_left), (begin_right, end_right) = (steps[n][number] for n in NODES)
        assert begin_left < end_right and begin_right < end_left, number


def chrome_spans(run):
    found = {node: [] for node in NODES}
    for folder, _, names in os.walk(os.path.join(run, "out", "chrome")):
        for name in names:
            events = load(os.path.join(folder, name))["traceEvents"]
            text = json.dumps([e["args"] for e in events if e.get("name") == "process_name"])
            for node in NODES:
                if node in text:
                    found[node] += [e for e in events if e.get("ph") == "X"]
    return found


def test_nodes_names_the_profiler_of_each(fleet):
    said = fleet.syncline("nodes", *fleet.fleet_arguments()).stdout
    assert said.count("profiler port 7788") == 2, said
