"""Job, agent and session daemon of an ordinary user: nothing on the hosts runs as root but sshd."""

import os

import pytest

from tests.integration.fleet import HOST_TENSORFLOW, TENSORFLOW, Fleet, load
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY

TICKER = os.path.join(REPOSITORY, "tests", "integration", "ticker.py")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    specs = [HostSpec("left", users=("ann",)), HostSpec("right", users=("ann",))]
    binds = {HOST_TENSORFLOW: TENSORFLOW, "/opt/jobs/ticker.py": TICKER}
    with Testbed(specs, seed=34, binds=binds) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("user"), user="ann")
        made.environment["SYNCLINE_PREFIX"] = "/home/ann/syncline"
        made.up()
        yield made
        made.fab("down")


def test_an_ordinary_user_records_an_ordinary_user(fleet):
    ticker = f"{HOST_TENSORFLOW}/bin/python /opt/jobs/ticker.py"
    fleet.fab("launch", "--command", ticker, "--ready", "ticking")
    run = fleet.record("run-user", 2)
    for node in load(os.path.join(run, "recording.json"))["nodes"]:
        assert node["state"] == "complete", node
        assert [process["uid"] for process in node["processes"]] == [2001]
    for host in fleet.bed.hosts:
        owners = host.run(["ps", "-e", "-o", "user=,comm="]).stdout.split("\n")
        ours = [line.split() for line in owners if "lttng" in line or "syncline" in line]
        assert ours and all(user == "ann" for user, _ in ours)
    fleet.syncline("merge", run)
    timeline = fleet.timeline_tasks(run)
    for name in ("left", "right"):
        assert sum(task.name == "tick" for task in timeline[name]) > 50
