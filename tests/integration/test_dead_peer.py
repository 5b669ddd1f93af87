# SPDX-License-Identifier: Apache-2.0
"""A rank is killed, ends too early, is stopped, or its node cannot be reached, while others wait
for it: what is said of it is what is known."""

import json
import os
import time

import pytest

from tests.integration.fleet import INCOMPLETE, Fleet
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY, ip

TORCH = os.path.join(REPOSITORY, ".venv-torch")
JOB = os.path.join(REPOSITORY, "tests", "integration", "lost_rank")
LIMIT_S = 40
HOSTS = ("rank-a", "rank-b", "rank-c")
PORTS = {"killed": 2301, "early": 2302, "lost": 2303}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    if not os.path.isdir(TORCH):
        pytest.skip("no .venv-torch: scripts/setup --torch makes it")
    specs = [HostSpec(name) for name in HOSTS]
    with Testbed(specs, seed=27, binds={"/opt/torch": TORCH}) as bed:
        driver = Fleet(bed, tmp_path_factory.mktemp("dead_peer"))
        driver.up()
        yield driver
        driver.fab("down")


def launch(fleet, job):
    fleet.fab(
        *("launch", "--job", job, "--port", str(PORTS[job]), "--copy", JOB, "--ready", "step 20:"),
        *("--command", "env GLOO_SOCKET_IFNAME=eth0 /opt/torch/bin/python train.py"),
    )


def stacks(fleet, *options):
    return fleet.syncline("stacks", *fleet.fleet_arguments(), *options, fine=(0, INCOMPLETE))


def group_of(fleet, job):
    """Its only group, and the exit code."""
    command = " ".join(["syncline", "stacks", *fleet.fleet_arguments(), "--json", "2>/dev/null"])
    result = fleet.run(["sh", "-c", command], fine=(0, INCOMPLETE))
    (group,) = [one for one in json.loads(result.stdout)["groups"] if one["job"] == job]
    return group, result.returncode


def wait_for_verdict(fleet, job, verdict):
    deadline = time.monotonic() + LIMIT_S
    while (found := group_of(fleet, job))[0]["verdict"] != verdict:
        assert time.monotonic() < deadline, f"not {verdict} within {LIMIT_S} s: {found[0]}"
    return found


def pid_of(fleet, job, rank):
    (pid,) = [one["pid"] for one in group_of(fleet, job)[0]["members"] if one["rank"] == rank]
    return pid


def why(fleet, job, name, *options, fine=(0,)):
    run = os.path.join(fleet.work, name)
    command = ["syncline", "why", "--json", "--job", job, *fleet.fleet_arguments(), *options]
    command += ["--for", "2s", "--out", run, "2>/dev/null"]
    return json.loads(fleet.run(["sh", "-c", " ".join(command)], fine=fine).stdout), run


def only_absent(group):
    (absent,) = group["absent"]
    return absent


def end_job(fleet, job):
    """Of what is left of it nobody waits for the end."""
    for host in fleet.bed.hosts:
        for member in group_of(fleet, job)[0]["members"]:
            if member["node"] == host.name:
                host.run(["kill", "-9", str(member["pid"])])


def test_a_rank_that_was_killed_is_dead(fleet):
    launch(fleet, "killed")
    healthy, code = group_of(fleet, "killed")
    assert (healthy["verdict"], healthy["absent"], healthy["nowhere"], code) == ("moves", [], [], 0)
    pid = pid_of(fleet, "killed", 1)
    fleet.bed["rank-b"].run(["kill", "-9", str(pid)])
    group, code = wait_for_verdict(fleet, "killed", "dead")
    assert code == INCOMPLETE
    absent = only_absent(group)
    assert (absent["rank"], absent["state"], absent["node"]) == (1, "ended", "rank-b"), absent
    assert absent["pid"] == pid and absent["ended_ago_most_ns"] < LIMIT_S * 10**9
    assert absent["signal"] in (9, None) and absent["exit_code"] is None, absent
    # It was asked before it died: what it had entered then is known.
    assert absent["last_collective_number"] > 0
    assert [one["rank"] for one in group["members"]] == [0, 2]
    assert group["sentence"].startswith(f"rank 1 (node rank-b, pid {pid}) has ended, ")
    text = " ".join(stacks(fleet).stdout.split())
    assert "DEAD group 0" in text and "wait_for_ever " in text

    answer, run = why(fleet, "killed", "killed-run")
    assert (answer["status"], answer["verdict"]["kind"]) == ("answered", "stands_still"), answer
    (there,) = answer["standstill"]["groups"]
    assert (there["verdict"], only_absent(there)["pid"]) == ("dead", pid)
    again = " ".join(fleet.syncline("why", run, "--job", "killed").stdout.split())
    assert "DEAD group 0" in again and "RANK 0 " in again and "RANK 2 " in again, again

    # It is started again under its name: nobody of that start is dead.
    end_job(fleet, "killed")
    launch(fleet, "killed")
    group, code = group_of(fleet, "killed")
    assert (group["verdict"], group["absent"], group["nowhere"], code) == ("moves", [], [], 0)
    end_job(fleet, "killed")


def test_a_rank_that_ended_too_early_is_dead_with_its_exit_code(fleet):
    launch(fleet, "early")
    host = fleet.bed["rank-b"]
    host.run(["touch", "/opt/syncline/var/jobs/early/leave"])
    group, _ = wait_for_verdict(fleet, "early", "dead")
    absent = only_absent(group)
    assert (absent["rank"], absent["state"], absent["signal"]) == (1, "ended", None)
    known = "with exit code 4" if absent["exit_code"] == 4 else "after its exit handlers ran"
    assert known in absent["sentence"] and absent["exit_code"] in (4, None), absent
    end_job(fleet, "early")


def test_a_stopped_rank_and_one_whose_node_is_lost_are_not_dead(fleet):
    launch(fleet, "lost")
    pid = str(pid_of(fleet, "lost", 1))
    fleet.bed["rank-b"].run(["kill", "-STOP", pid])
    try:
        group, code = wait_for_verdict(fleet, "lost", "stopped")
    finally:
        fleet.bed["rank-b"].run(["kill", "-CONT", pid])
    absent = only_absent(group)
    assert (absent["rank"], absent["state"], code) == (1, "stopped", INCOMPLETE)
    assert f"rank 1 (node rank-b, pid {pid}) is stopped" in group["sentence"]
    wait_for_verdict(fleet, "lost", "moves")

    namespace = fleet.bed["rank-c"].namespace
    ip("-n", namespace, "link", "set", "eth0", "down")
    try:
        group, code = wait_for_verdict(fleet, "lost", "missing")
        answer, _ = why(fleet, "lost", "lost-run", "--allow-missing", fine=(INCOMPLETE,))
    finally:
        ip("-n", namespace, "link", "set", "eth0", "up")
    assert (group["absent"], group["nowhere"], code) == ([], [2], INCOMPLETE)
    assert group["sentence"].startswith(
        "rank 2: no process of it is known on any node that answered, and node rank-c did not "
        "answer. All that answered (ranks 0, 1) have entered all_reduce #"
    ), group
    assert "ended" not in group["sentence"]
    (there,) = [one for one in answer["standstill"]["groups"] if one["job"] == "lost"]
    assert (there["verdict"], there["nowhere"]) == ("missing", [2])
    assert answer["status"] == "refused", answer
