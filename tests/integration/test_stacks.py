# SPDX-License-Identifier: Apache-2.0
"""`syncline stacks` on a real job that stands still on two hosts: who is behind, and where."""

import json
import os
import time

import pytest

from tests.integration.fleet import INCOMPLETE, Fleet
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY

TORCH = os.path.join(REPOSITORY, ".venv-torch")
JOB = os.path.join(REPOSITORY, "tests", "integration", "stuck_ddp")
THERE = "/opt/syncline/var/jobs/job"
LIMIT_S = 30


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    if not os.path.isdir(TORCH):
        pytest.skip("no .venv-torch: scripts/setup --torch makes it")
    specs = [HostSpec("rank-a"), HostSpec("rank-b")]
    with Testbed(specs, seed=27, binds={"/opt/torch": TORCH}) as bed:
        fleet = Fleet(bed, tmp_path_factory.mktemp("stacks"))
        fleet.up()
        fleet.fab(
            *("launch", "--copy", JOB, "--ready", "step 20:"),
            *("--command", "env GLOO_SOCKET_IFNAME=eth0 /opt/torch/bin/python train.py"),
        )
        yield fleet
        fleet.fab("down")


def stacks(fleet, *options, fine=(0,)):
    return fleet.syncline("stacks", *fleet.fleet_arguments(), *options, fine=fine).stdout


def look(fleet, fine=(0,)):
    """(group, {rank: its process})"""
    found = json.loads(stacks(fleet, "--json", fine=fine))
    processes = {}
    for node in found["nodes"]:
        for process in node["stacks"]["processes"]:
            processes[process["process"]["rank"]] = process
    (group,) = found["groups"]
    return group, processes


def wait_for(what, condition):
    deadline = time.monotonic() + LIMIT_S
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {LIMIT_S} s"
        time.sleep(0.1)
    return found


def steps_of(host):
    text = host.run(["cat", f"{THERE}/steps"]).stdout
    return int(text or 0)


def functions_of(threads):
    return [frame["function"] for frame in threads["frames"]]


def test_who_stands_behind_is_named_with_its_stack(training):
    one, other = training.bed.hosts
    group, processes = look(training)
    assert group["verdict"] == "moves", group
    assert sorted(processes) == [0, 1]
    other.run(["touch", f"{THERE}/stand"])
    group = wait_for(
        "standing still", lambda: (g := look(training)[0])["verdict"] != "moves" and g
    )
    assert (group["verdict"], group["behind"], group["unknown"]) == ("behind", [1], [])
    first, second = group["members"]
    assert second["last_collective_number"] == first["last_collective_number"] - 1
    assert first["pending"] and first["last_collective"] == "all_reduce"
    assert "Rank 1's main thread" in group["sentence"]
    assert "in read_batch (train.py:" in group["sentence"]
    # Gloo's own number has the transfer, too: it is not the one that is compared.
    _, processes = look(training)
    counter = int(processes[0]["groups"][0]["sequence_number"])
    assert counter == first["last_collective_number"] + 1
    assert "read_batch" in functions_of(processes[1]["threads"][0])
    assert any("backward" in function for function in functions_of(processes[0]["threads"][0]))
    for process in processes.values():
        assert process["source"] == "HOOK" and process["answered_twice"]
        assert process["threads"][0]["main"]
        idle = [one for one in process["threads"] if "idle" in functions_of(one)]
        assert [(one["count"], sorted(one["names"])) for one in idle] == [
            (3, ["idle-0", "idle-1", "idle-2"])
        ]
    text = stacks(training)
    assert "BEHIND" in text and "RANK 0 · node rank-a" in text and "RANK 1 · node rank-b" in text
    assert "read_batch  " in text and "train.py:" in text

    # The job was not touched: it goes on when it may.
    before = steps_of(one)
    other.run(["rm", f"{THERE}/stand"])
    wait_for("going on", lambda: steps_of(one) > before + 20)
    assert look(training)[0]["verdict"] == "moves"


def test_of_one_that_cannot_answer_the_kernel_tells(training):
    other = training.bed.hosts[1]
    other.run(["sh", "-c", f"rm -f {THERE}/stand; touch {THERE}/hold"])
    wait_for("a locked interpreter", lambda: "held" in other.run(["ls", THERE]).stdout)
    # The other rank may have gone on until the first look.
    group, processes = wait_for(
        "rank 0 at its end",
        lambda: (both := look(training, fine=(INCOMPLETE,)))[0]["verdict"] != "moves" and both,
    )
    assert group["verdict"] == "undecided" and group["unknown"] == [1], group
    assert "rank 1 (node rank-b, pid" in group["sentence"]
    silent = processes[1]
    assert "did not answer" in silent["absence"]
    main = silent["kernel_threads"][0]
    assert main["state"] == "S" and main["system_call"] in ("35", "230"), main  # nanosleep
    assert processes[0]["source"] == "HOOK"
