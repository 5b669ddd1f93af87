# SPDX-License-Identifier: Apache-2.0
"""What cannot be recorded: each cause is told apart, with the fix, before anything starts."""

import os
import re
import shutil

import pytest

from tests.integration.fleet import FAILED, INCOMPLETE, WRONG_USAGE, Fleet
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import BUILD, WALLCLOCK_LIBRARY

TRUTH = os.path.join(BUILD, "bin", "syncline-itt-truth")
NS_PER_S = 1_000_000_000


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    specs = [HostSpec("left"), HostSpec("right", shm_bytes=64 << 20)]
    with Testbed(specs, seed=47, binds={"/opt/truth": TRUTH}) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("refusals"))
        made.up()
        yield made
        made.fab("down")


def nodes(fleet, *arguments, fine=(FAILED, INCOMPLETE), **environment):
    options = [*fleet.fleet_arguments(), *arguments]
    return fleet.syncline("nodes", *options, fine=fine, **environment).stdout


def record(fleet, run, *arguments, fine=(FAILED,)):
    options = [*fleet.fleet_arguments(), "--for", "500ms", "--out", str(run), *arguments]
    return fleet.syncline("record", *options, fine=fine).stdout


def other_tls(fleet, path, **files):
    """The fleet's certificates with some of the operator's files replaced by others of them."""
    own = fleet.environment["SYNCLINE_TLS_DIR"]
    shutil.copytree(own, path)
    for name, source in files.items():
        shutil.copy(os.path.join(own, source), os.path.join(path, name.replace("_", ".")))
    return str(path)


def test_a_job_that_was_not_started_for_tracing(fleet, tmp_path):
    right = fleet.bed["right"]
    with right.popen(["/opt/truth", "--tasks", "0", "--duration-ms", "60000"]) as job:
        try:
            for printed in (
                nodes(fleet, fine=(0,)),
                record(fleet, tmp_path / "run", fine=(INCOMPLETE,)),  # no program runs
            ):
                assert "right: No program on this node is ready to be traced" in printed
                assert "syncline run" in printed
        finally:
            right.run(["pkill", "-x", "truth"])
            job.wait(10)
    assert os.path.exists(tmp_path / "run" / "recording.json"), "what there is was recorded"


def test_a_node_without_lttng(fleet, tmp_path):
    right = fleet.bed["right"]
    right.run(["pkill", "-x", "lttng-sessiond"], check=False)
    right.run(["mount", "--bind", "/dev/null", "/usr/bin/lttng-sessiond"])
    try:
        fleet.fab("up")  # the agent remembers a version that it has seen
        printed = nodes(fleet)
        assert "right: LTTng is not installed: nothing can be recorded here" in printed
        assert "apt install lttng-tools" in printed and re.search("right +blocked", printed)
        printed = record(fleet, tmp_path / "run")
        assert "1 of 2 nodes cannot participate" in printed and "LTTng is not installed" in printed
        assert not os.path.exists(tmp_path / "run")
        record(fleet, tmp_path / "run", "--allow-missing", fine=(INCOMPLETE,))
    finally:
        right.run(["umount", "/usr/bin/lttng-sessiond"])
        fleet.fab("up")


def test_buffers_that_do_not_fit_into_shared_memory(fleet, tmp_path):
    printed = record(fleet, tmp_path / "run", "--buffer-size", "64M")
    assert "right (" in printed and "The trace buffers do not fit" in printed
    assert "/dev/shm has 6" in printed and "--shm-size" in printed
    assert not os.path.exists(tmp_path / "run")
    for wrong in ("3K", "2K", "2G", "many"):
        printed = record(fleet, tmp_path / "run", "--buffer-size", wrong, fine=(WRONG_USAGE,))
        assert wrong in printed
    printed = record(fleet, tmp_path / "run", "--buffer-count", "3", fine=(WRONG_USAGE,))
    assert "power of two" in printed


def test_a_program_in_a_pid_namespace_that_the_agent_does_not_see(fleet):
    right = fleet.bed["right"]
    right.run(["sh", "-c", "kill -TERM $(cat /opt/syncline/var/agent.pid); sleep 1"])
    program, tls = "/opt/syncline/bin/syncline", "/opt/syncline/tls"
    agent = f"{program}-agent --listen {right.address}:7611 --data-dir /opt/syncline/var/data"
    inner = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    job = [program, "run", "--", "/opt/truth", "--tasks", "0", "--duration-ms", "60000"]
    log = os.path.join(right.state_dir, "inner-agent.log")
    with (
        open(log, "wb") as err,
        right.popen([*inner, *agent.split(), "--tls-dir", tls], stderr=err) as inside,
        right.popen([*inner, *job]) as beside,
    ):
        try:
            script = "until ls /dev/shm/syncline-0/*.block; do sleep 0.1; done; sleep 1"
            right.run(["timeout", "20", "sh", "-c", script])
            printed = nodes(fleet, fine=(0,))
        finally:
            inside.terminate()
            beside.terminate()
            right.run(["pkill", "-KILL", "-x", "unshare"], check=False)
    fleet.fab("up")
    assert "right: Process" in printed and "has a control block here but is not visible" in printed
    assert "hostPID: true" in printed


def test_a_name_that_stands_twice_in_the_hosts_file(fleet, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("left 10.0.0.1\n# again\nleft 10.0.0.2\n")
    result = fleet.syncline("nodes", "--hosts", str(hosts), check=False)
    assert result.returncode in (FAILED, WRONG_USAGE)
    assert "hosts:3" in result.stdout and "left" in result.stdout


def test_a_host_that_nobody_knows(fleet, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("left no-such-host.invalid\n")
    result = fleet.syncline("nodes", "--hosts", str(hosts), fine=(FAILED,))
    assert 'the host "no-such-host.invalid" is unknown' in result.stdout


def test_addresses_that_are_swapped(fleet, tmp_path):
    hosts = tmp_path / "hosts"
    left, right = fleet.bed["left"].address, fleet.bed["right"].address
    hosts.write_text(f"left {right}:7611\nright {left}:7611\n")
    result = fleet.syncline("nodes", "--hosts", str(hosts), fine=(FAILED,))
    assert 'its certificate is for "right", not for "left"' in result.stdout
    assert "wrong address in the hosts file" in result.stdout


def test_a_node_s_certificate_commands_nobody(fleet, tmp_path):
    tls = other_tls(
        fleet,
        tmp_path / "tls",
        operator_pem="nodes/left/node.pem",
        operator_key="nodes/left/node.key",
    )
    result = fleet.syncline("nodes", "--hosts", fleet.bed.hosts_file, "--tls-dir", tls, check=False)
    assert result.returncode in (FAILED, WRONG_USAGE)
    assert "role" in result.stdout and "operator" in result.stdout


def test_another_fleet_s_certificates(fleet, tmp_path):
    tls = str(tmp_path / "tls")
    fleet.syncline("certs", "init", tls, "--hosts", fleet.bed.hosts_file)
    result = fleet.syncline(
        "nodes", "--hosts", fleet.bed.hosts_file, "--tls-dir", tls, fine=(FAILED,)
    )
    assert "another authority" in result.stdout or "another fleet" in result.stdout
    assert "nothing listens" not in result.stdout


def test_certificates_that_have_expired(fleet, tmp_path):
    clock = tmp_path / "wallclock"
    clock.write_bytes((50 * 365 * 86400 * NS_PER_S).to_bytes(8, "little", signed=True))
    printed = nodes(fleet, LD_PRELOAD=WALLCLOCK_LIBRARY, SYNCLINE_WALLCLOCK_FILE=str(clock))
    assert "expired" in printed and "certs" in printed
