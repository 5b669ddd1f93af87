# SPDX-License-Identifier: Apache-2.0
"""A training that does what breaks tracers, recorded twice with operators, messages and the hook.

What must hold is the program's: it computes to the bit what it computes alone, prints the same and
ends well. Of what could not be recorded the recording has to say that it is missing.
"""

import collections
import os
import time

import pytest

from tests.integration import raw_trace
from tests.integration.fleet import INCOMPLETE, Fleet, load
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY

TORCH = os.path.join(REPOSITORY, ".venv-torch")
JOB = os.path.join(REPOSITORY, "tests", "integration", "torch_trouble")
JOBS = "/opt/syncline/var/jobs"
PYTHON = "/opt/torch/bin/python"
PATIENCE_S = 60


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    if not os.path.isdir(TORCH):
        pytest.skip("no .venv-torch: scripts/setup --torch makes it")
    with Testbed([HostSpec("alone")], seed=52, binds={"/opt/torch": TORCH}) as bed:
        fleet = Fleet(bed, tmp_path_factory.mktemp("faults"))
        fleet.up()
        fleet.fab(
            *("launch", "--copy", JOB, "--ready", "it trains"),
            *("--command", f"exec {PYTHON} train.py"),
        )
        yield fleet
        fleet.fab("down")


def said(host):
    return host.run(["cat", f"{JOBS}/job.log"]).stdout.splitlines()


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.2)


def trainer_of(run):
    """The process that trains: the one that was there before the recording and stayed."""
    (node,) = load(os.path.join(run, "recording.json"))["nodes"]
    stayed = [p for p in node["processes"] if p["present_at_prepare"] and p["has_control_block"]]
    return min(stayed, key=lambda process: process["start_ticks"])


def test_threads_and_children_that_leave_at_once(training):
    # Children that were gone before anybody could ask them are a loss, and said.
    run = training.record("run-threads", 1.5, fine=(0, INCOMPLETE))
    assert set(trainer_of(run)["sources"]) == {"itt", "net", "python"}
    training.syncline("merge", run, fine=(0, INCOMPLETE))
    (events,) = training.timeline_events(run).values()
    tasks = collections.Counter(task.name for task in raw_trace.tasks(events))
    assert tasks["Optimizer.step#SGD.step"] > 2 and tasks["AddmmBackward0"] > 2, tasks
    assert any(event.name.startswith("syncline_net:") for event in events)
    assert "can open" not in training.syncline("nodes", *training.fleet_arguments()).stdout


def test_without_a_free_descriptor_and_to_the_bit(training):
    (host,) = training.bed.hosts
    host.run(["touch", f"{JOBS}/job/take"])
    wait_until(lambda: "no descriptor is left" in said(host), lambda: said(host))
    # Whether LTTng still reaches it is not ours to say; that it does not, is.
    run = training.record("run-descriptors", 1.5, fine=(0, INCOMPLETE))
    trainer = trainer_of(run)
    named = f"pid {trainer['own_pid']} " in training.last.stdout
    assert trainer["events"] > 0 or named, training.last.stdout

    def nodes():
        return training.syncline("nodes", *training.fleet_arguments()).stdout

    wait_until(lambda: "can open" in nodes(), nodes)
    host.run(["touch", f"{JOBS}/job/end"])
    wait_until(lambda: said(host)[-1].startswith("learnt"), lambda: said(host))
    steps = said(host)[-1].split()[1]
    # The same program by itself, with as many steps.
    alone = host.run([PYTHON, f"{JOBS}/job/train.py", steps]).stdout.splitlines()
    assert [line for line in said(host) if "descriptor" not in line] == alone
