# SPDX-License-Identifier: Apache-2.0
"""fabfile.py against hosts that misbehave: they are named, the others not left half-started."""

import os
import subprocess

import pytest

from tests.integration.fleet import Fleet, pids_of, standing_still
from tests.testbed import AGENT_PORT, HostSpec, Testbed


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    specs = [
        HostSpec("master-0", role="master", users=("ann",)),
        HostSpec("worker-0", role="worker", users=("ann",), shm_bytes=64 << 20),
    ]
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


def runs(host, command):
    """Whether a process with this very command line runs on the host."""
    return host.run(["pgrep", "-xf", command], check=False).returncode == 0


def test_strangers_who_have_an_old_pid_live_on(fleet):
    worker = fleet.bed["worker-0"]
    var = "/opt/syncline/var"
    pid = worker.run(["sh", "-c", "setsid sleep 777 >/dev/null 2>&1 & echo $!"]).stdout.strip()
    for task in (["down", "--jobs-only"], ["down"], ["up"]):
        for file in ("jobs/done1.pid", "agent.pid"):
            worker.run(["sh", "-c", f"echo {pid} >{var}/{file}"])
        fleet.fab(*task)
        assert runs(worker, "sleep 777"), task
    assert agents_running(fleet) == {"master-0", "worker-0"}
    worker.run(["kill", pid])


def test_run_says_that_dev_shm_is_full_and_the_program_runs(fleet):
    worker = fleet.bed["worker-0"]
    fleet.fab("up")
    worker.run(["sh", "-c", "cat /dev/zero >/dev/shm/fill"], check=False)
    try:
        result = worker.run(["/opt/syncline/bin/syncline", "run", "--", "echo", "it runs"])
    finally:
        worker.run(["rm", "/dev/shm/fill"])
    assert "it runs" in result.stdout
    assert "/dev/shm is full" in result.stderr


@pytest.fixture(scope="module")
def session_daemons(fleet):
    """Agents, which have started a session daemon on every host."""
    fleet.fab("up")
    yield
    fleet.fab("down")


def test_a_command_that_does_not_exist_is_said_beside_a_session_daemon(fleet, session_daemons):
    result = fleet.fab("launch", "--command", "nosuchcommand", check=False)
    assert result.returncode == 1
    # On a busy machine one host's command has failed before the other's began.
    assert "error: master-0" in result.stdout or "error: worker-0" in result.stdout
    assert "nosuchcommand: command not found" in result.stdout
    assert "The job was ended on all hosts." in result.stdout


def test_run_does_not_wait_for_a_session_daemon(fleet, session_daemons):
    worker = fleet.bed["worker-0"]
    run = ["/opt/syncline/bin/syncline", "run", "--", "sh", "-c", "echo $INTEL_LIBITTNOTIFY64"]
    with standing_still(worker, *pids_of(worker, "lttng-sessiond")):
        result = worker.run(run)
    assert result.stderr == "" and "libsyncline_itt" in result.stdout


def test_a_compound_command_is_one_job(fleet, session_daemons):
    command = (
        "echo WHAT=sourced >what; source ./what && cd /tmp && echo \"$WHAT in $PWD\"; "
        "sleep 1301; echo went on"
    )
    fleet.fab("launch", "--command", command, "--ready", "sourced in /tmp")
    assert all(runs(host, "sleep 1301") for host in fleet.bed.hosts)
    fleet.fab("down", "--jobs-only")
    assert not any(runs(host, "sleep 1301") for host in fleet.bed.hosts)
    assert "went on" not in fleet.fab("logs").stdout


def test_a_job_that_fails_on_one_host_is_ended_wholly_on_the_others(fleet, session_daemons):
    command = "test {role} = worker && echo broken && exit 4; sleep 1302 & sleep 1303; echo no"
    result = fleet.fab("launch", "--command", command, check=False)
    assert result.returncode == 1
    assert "error: worker-0" in result.stdout and "broken" in result.stdout
    assert "error: master-0" not in result.stdout
    for seconds in (1302, 1303):
        assert not any(runs(host, f"sleep {seconds}") for host in fleet.bed.hosts)
    for host in fleet.bed.hosts:
        assert "job.pid" not in host.run(["ls", "/opt/syncline/var/jobs"]).stdout


def test_a_directory_with_a_blank(fleet):
    fleet.fab("down")
    place = {"SYNCLINE_PREFIX": "/opt/sync line"}
    fleet.fab("up", **place)
    assert agents_running(fleet) == {"master-0", "worker-0"}
    fleet.fab("launch", "--command", "pwd; exec sleep 1304", **place)
    printed = fleet.fab("logs", **place).stdout
    assert "/opt/sync line/var/jobs/job\n" in printed and "agent.log" in printed
    fleet.fab("down", **place)
    assert agents_running(fleet) == set()
    assert not any(runs(host, "sleep 1304") for host in fleet.bed.hosts)


def test_an_ordinary_user_is_told_whose_directory_it_is(fleet, tmp_path):
    ann = Fleet(fleet.bed, tmp_path, user="ann")
    ann.environment["SYNCLINE_TLS_DIR"] = fleet.environment["SYNCLINE_TLS_DIR"]
    result = ann.fab("up", check=False)
    assert result.returncode == 1
    assert "/opt/syncline" in result.stdout and "root's" in result.stdout
    assert "SYNCLINE_PREFIX" in result.stdout and "chmod" not in result.stdout
    result = ann.fab("up", check=False, SYNCLINE_PREFIX="/opt/ann/syncline")
    assert result.returncode == 1 and "/opt is root's" in result.stdout
