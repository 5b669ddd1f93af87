"""fabfile.py against hosts that misbehave: they are named, the others not left half-started."""

import os
import subprocess

import pytest

from tests.integration.fleet import Fleet
from tests.testbed import AGENT_PORT, HostSpec, Testbed


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    specs = [HostSpec("master-0", role="master"), HostSpec("worker-0", role="worker")]
    with Testbed(specs, seed=21) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("fab"))
        made.fab("certs")
        yield made


def agents_running(fleet):
    """The hosts on which an agent runs."""
    found = set()
    for host in fleet.bed.hosts:
        if host.run(["pgrep", "-f", "bin/syncline-agent"], check=False).returncode == 0:
            found.add(host.name)
    return found


def test_a_host_without_ssh_is_named_and_no_agent_is_started(fleet, tmp_path):
    nowhere = fleet.bed.coordinator_address.rsplit(".", 1)[0] + ".77"
    with open(fleet.bed.hosts_file, encoding="utf-8") as file:
        hosts = file.read() + f"gone-0 {nowhere}:{AGENT_PORT} role=worker\n"
    path = tmp_path / "hosts"
    path.write_text(hosts)
    fleet.fab("certs", SYNCLINE_HOSTS=str(path))
    result = fleet.fab("up", check=False, SYNCLINE_HOSTS=str(path))
    assert result.returncode == 1
    assert "gone-0" in result.stdout and "sshd" in result.stdout
    assert "error: master-0" not in result.stdout
    assert agents_running(fleet) == set()


def test_an_unknown_host_key_is_refused(fleet, tmp_path):
    with open(fleet.bed.known_hosts, encoding="ascii") as file:
        lines = file.read().splitlines()
    (tmp_path / "known_hosts").write_text(lines[0] + "\n")
    with open(fleet.bed.ssh_config, encoding="utf-8") as file:
        config = file.read().replace(fleet.bed.known_hosts, str(tmp_path / "known_hosts"))
    (tmp_path / "ssh_config").write_text(config)
    result = fleet.fab("logs", check=False, ssh_config=tmp_path / "ssh_config")
    assert result.returncode == 1
    assert "error: worker-0" in result.stdout and "known_hosts" in result.stdout
    assert "error: master-0" not in result.stdout


def test_an_agent_that_cannot_start_takes_the_others_down_again(fleet):
    worker = fleet.bed["worker-0"]
    code = f"""
import socket, time
server = socket.create_server(('{worker.address}', {AGENT_PORT}))
print("bound", flush=True)
time.sleep(100)
"""
    thief = worker.popen(["python3", "-c", code], stdout=subprocess.PIPE)
    thief.stdout.readline()
    try:
        result = fleet.fab("up", check=False)
    finally:
        thief.kill()
        thief.wait(10)
    assert result.returncode == 1
    assert "error: worker-0" in result.stdout and "error: master-0" not in result.stdout
    assert agents_running(fleet) == set()


def test_what_up_installs_is_everybody_s_but_keys_and_recordings_are_not(fleet):
    master = fleet.bed["master-0"]
    master.run(["chmod", "700", "/opt/syncline"])  # as an earlier version left it
    before = os.umask(0o077)
    try:
        fleet.fab("up")
    finally:
        os.umask(before)
    nobody = ["setpriv", "--reuid=61234", "--regid=61234", "--clear-groups"]
    run = ["/opt/syncline/bin/syncline", "run", "--", "sh", "-c", "echo $INTEL_LIBITTNOTIFY64"]
    assert "/opt/syncline/lib" in master.run([*nobody, *run]).stdout
    for private in ("tls", "tls/node.key", "tls/node.pem", "var/data"):
        modes = master.run(["stat", "-c", "%a", f"/opt/syncline/{private}"]).stdout.strip()
        assert modes in ("600", "700"), private
    fleet.fab("down")


def test_a_job_that_ends_at_once_takes_the_others_down_again_and_says_why(fleet):
    fleet.fab("up")
    assert agents_running(fleet) == {"master-0", "worker-0"}
    command = "sh -c 'test {role} = master && exec sleep 1234; echo no such data >&2; exit 3'"
    result = fleet.fab("launch", "--command", command, check=False)
    assert result.returncode == 1
    assert "error: worker-0" in result.stdout and "no such data" in result.stdout
    assert fleet.bed["master-0"].run(["pgrep", "-f", "sleep 1234"], check=False).returncode == 1
    result = fleet.fab("launch", "--command", "nosuchcommand", check=False)
    assert result.returncode == 1 and "nosuchcommand" in result.stdout


def test_a_job_name_that_leaves_its_directory_is_refused(fleet):
    for name in ("../x", "a b", ""):
        result = fleet.fab("launch", "--command", "sleep 1", f"--job={name}", check=False)
        assert result.returncode == 1 and "letters" in result.stdout


def test_a_second_job_of_the_same_name_is_refused_and_the_first_goes_on(fleet):
    fleet.fab("launch", "--command", "sleep 1235")
    result = fleet.fab("launch", "--command", "sleep 1236", check=False)
    assert result.returncode == 1 and "another --job NAME" in result.stdout
    for host in fleet.bed.hosts:
        assert host.run(["pgrep", "-f", "sleep 1235"]).stdout


def test_down_ends_jobs_and_agents(fleet):
    fleet.fab("down")
    assert agents_running(fleet) == set()
    for host in fleet.bed.hosts:
        assert host.run(["pgrep", "-f", "sleep 1235"], check=False).returncode == 1
