# SPDX-License-Identifier: Apache-2.0
"""Job, agent and session daemon of an ordinary user: nothing on the hosts runs as root but sshd."""

import os

import pytest

from tests.integration.fleet import TICKER_BINDS, Fleet, load
from tests.testbed import HostSpec, Testbed


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    specs = [HostSpec("left", users=("ann", "bob")), HostSpec("right", users=("ann",))]
    with Testbed(specs, seed=34, binds=TICKER_BINDS) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("user"), user="ann")
        made.environment["SYNCLINE_PREFIX"] = "/home/ann/syncline"
        made.up()
        yield made
        made.fab("down")


def test_an_ordinary_user_records_an_ordinary_user(fleet):
    fleet.launch_ticker()
    run = fleet.record("run-user", 2)
    for node in load(os.path.join(run, "recording.json"))["nodes"]:
        assert node["state"] == "complete", node
        assert [process["uid"] for process in node["processes"]] == [2001]
    for host in fleet.bed.hosts:
        owners = host.run(["ps", "-e", "-o", "user=,comm="]).stdout.split("\n")
        ours = [line.split() for line in owners if "lttng" in line or "syncline" in line]
        assert ours and all(user == "ann" for user, _ in ours)
    fleet.syncline("merge", run)
    assert min(fleet.ticks(run).values()) > 50


def test_through_the_socket_of_an_agent_without_certificates(fleet):
    """On one machine alone: the agent's Unix socket; nobody but its user and root gets in."""
    host = fleet.bed["left"]
    program, data = "/home/ann/syncline/bin/syncline", "/home/ann/socket-only"
    with host.popen([f"{program}-agent", "--data-dir", data], user="ann") as agent:
        try:
            check_socket(host, program, data)
        finally:
            host.run(["sh", "-c", f"pkill -TERM -f -- '--data-dir {data}$'"])
            assert agent.wait(20) == 0


def check_socket(host, program, data):
    hosts = f"/home/ann/local: here unix:{data}/agent.sock".split(": ")
    host.run(["sh", "-c", f"echo '{hosts[1]}' >{hosts[0]}"], user="ann")
    record = [program, "record", "--hosts", hosts[0], "--for", "1s", "--out", "/home/ann/local-run"]
    wait = f"timeout 20 sh -c 'until test -S {data}/agent.sock; do sleep 0.1; done'"
    host.run(["sh", "-c", wait], user="ann")
    printed = host.run(record, user="ann").stdout
    assert "complete" in printed and "1 of 1" in printed
    merged = host.run([program, "merge", "/home/ann/local-run"], user="ann").stdout
    assert "timeline.perfetto-trace" in merged
    # Somebody else: kept out by the directory; and, were that open, by the agent itself.
    host.run(["cp", hosts[0], "/tmp/local"])
    as_bob = ["/tmp/syncline", "nodes", "--hosts", "/tmp/local"]
    host.run(["cp", program, "/tmp/syncline"])
    refused = host.run(as_bob, user="bob", check=False)
    assert refused.returncode == 1 and "no permission to connect" in refused.stderr
    host.run(["chmod", "711", "/home/ann", data])
    host.run(["chmod", "777", f"{data}/agent.sock"])
    refused = host.run(as_bob, user="bob", check=False)
    assert refused.returncode == 1 and "runs as user 2001" in refused.stderr, refused.stderr
    assert "unreachable" in refused.stdout
