# SPDX-License-Identifier: Apache-2.0
"""Job, agent and session daemon of an ordinary user: nothing on the hosts runs as root but sshd."""

import json
import os

import pytest

from tests.integration.fleet import HOST_TENSORFLOW, HOST_TICKER, TICKER_BINDS, Fleet, load
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
            check_many_nodes(host, program, data)
        finally:
            host.run(["sh", "-c", f"pkill -TERM -f -- '--data-dir {data}$'"])
            assert agent.wait(20) == 0


def test_one_machine_needs_no_hosts_and_no_root(fleet):
    """`syncline run`, then commands that name no node: an agent of the user's own is started, used
    again, and sees the program; what the user's shell was given for jobs does not reach it."""
    host = fleet.bed["left"]
    program, data = "/home/ann/syncline/bin/syncline", "/home/ann/own-agent"
    own = f"export SYNCLINE_DATA_DIR={data} SYNCLINE_RUNTIME_DIR=/dev/shm/own; cd /home/ann; "
    python = f"{HOST_TENSORFLOW}/bin/python"
    job = ["sh", "-c", f"{own} exec {program} run -- {python} {HOST_TICKER} 0.0051"]
    with host.popen(job, user="ann"):
        try:
            planted = f'{own} eval "$({program} env)"; {program}'
            first = host.run(
                ["sh", "-c", f"{planted} record --for 1s --out local-1"], user="ann", check=False
            )
            assert first.returncode == 0, first.stderr
            assert "started an agent" in first.stderr, first.stderr
            second = host.run(
                ["sh", "-c", f"{own} {program} record -H local --for 1s --out local-2"], user="ann"
            )
            assert "started an agent" not in second.stderr
            report = host.run(
                ["sh", "-c", f"{own} {program} report local-2 --json"], user="ann"
            ).stdout
            (node,) = json.loads(report)["nodes"]
            processes = node["processes"]
            assert len(processes) == 1 and "ticker.py" in json.dumps(processes[0]), processes
        finally:
            # [-]: the pattern is in the command line of the shell itself.
            mine = f"-f -- '[-]-data-dir {data} '"
            end = f"pkill -KILL -f -- '[t]icker.py.0.0051'; pkill -TERM {mine}"
            host.run(["sh", "-c", end], check=False)
            host.run(["timeout", "20", "sh", "-c", f"while pgrep {mine}; do sleep 0.1; done"])


def check_many_nodes(host, program, data):
    """Of the command's open files the hard limit counts, not the soft one: a node costs one at
    least. The nodes are one agent here, which accepts most of so many connections at an instant."""
    many = "/home/ann/many"
    each = f"ln -s {data}/agent.sock {many}/$i; echo n$i unix:{many}/$i >>{many}/hosts"
    host.run(["sh", "-c", f"mkdir {many}; for i in $(seq 600); do {each}; done"], user="ann")
    answered = {}
    for hard in (256, 4096):
        limit = ["prlimit", f"--nofile=256:{hard}"]
        ask = [*limit, program, "status", "--hosts", f"{many}/hosts"]
        found = host.run(ask, user="ann", check=False).stdout
        answered[hard] = int(found.removeprefix("No recordings on ").split()[0])
    assert answered[256] < 256 < answered[4096], answered


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
