# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on real machines: a message that helps, and nothing lost that was recorded."""

import os
import signal
import subprocess
import time

import pytest

from tests.integration.fleet import (
    HOST_TENSORFLOW,
    HOST_TICKER,
    INCOMPLETE,
    agent_pid,
    load,
    node_of,
    pids_of,
    standing_still,
    ticking,
)
from tests.testbed import HostSpec

NS_PER_S = 1_000_000_000


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Two hosts on each of which a small job ticks."""
    specs = [HostSpec("left"), HostSpec("right", shm_bytes=64 << 20)]
    with ticking(tmp_path_factory.mktemp("misfortunes"), specs, 33) as made:
        yield made


def ticker_pid(host):
    return host.run(["pgrep", "-f", "ticker.py"]).stdout.split()[-1]


def test_a_host_with_64_mb_of_shared_memory_is_recorded(fleet):
    run = fleet.record("small-shm", 2)
    for name in ("left", "right"):
        node = node_of(run, name)
        assert node["state"] == "complete", node
        assert node["prepare"]["buffers_bytes"] < (64 << 20)
    fleet.syncline("merge", run)
    assert min(fleet.ticks(run).values()) > 50


def test_a_port_where_no_agent_is(fleet, tmp_path):
    path = tmp_path / "hosts"
    path.write_text(f"left {fleet.bed['left'].address}:1\n")
    result = fleet.syncline(
        "record",
        "--hosts",
        str(path),
        "--tls-dir",
        fleet.environment["SYNCLINE_TLS_DIR"],
        "--for",
        "1s",
        "--out",
        str(tmp_path / "run"),
        check=False,
    )
    assert result.returncode == 1
    assert "left" in result.stdout and f"{fleet.bed['left'].address}:1" in result.stdout


def test_a_malformed_hosts_file_is_named_with_its_line(fleet, tmp_path):
    path = tmp_path / "hosts"
    path.write_text("# two\nleft 10.0.0.1\nright 10.0.0.1:seven\n")
    result = fleet.syncline("nodes", "--hosts", str(path), check=False)
    assert result.returncode in (1, 2)
    assert "hosts:3" in result.stdout


def test_a_directory_that_is_not_empty_is_left_alone(fleet, tmp_path):
    (tmp_path / "mine").write_text("precious")
    arguments = [*fleet.fleet_arguments(), "--for", "1s", "--out", str(tmp_path)]
    result = fleet.syncline("record", *arguments, check=False)
    assert result.returncode in (1, 2)
    assert str(tmp_path) in result.stdout
    assert os.listdir(tmp_path) == ["mine"]


def test_certificates_work_on_a_host_that_is_two_hours_slow_and_tell_of_one_two_days_slow(fleet):
    right = fleet.bed["right"]
    was = right.spec.wall_error_ns
    try:
        right.set_wall_error_ns(-2 * 3600 * NS_PER_S)
        fleet.syncline("nodes", *fleet.fleet_arguments())
        right.set_wall_error_ns(-2 * 86400 * NS_PER_S)
        result = fleet.syncline("nodes", *fleet.fleet_arguments(), check=False)
        assert result.returncode != 0
        assert "not yet valid" in result.stdout and "right" in result.stdout
    finally:
        right.set_wall_error_ns(was)


def test_a_stopped_process_is_named_and_delays_nobody(fleet):
    right = fleet.bed["right"]
    pid = ticker_pid(right)
    with standing_still(right, pid):
        run = fleet.record("stopped", 2, fine=(INCOMPLETE,))
    assert pid in fleet.last.stdout and "stopped" in fleet.last.stdout
    # What it would have done in the window nobody knows: that is said, and drawn.
    assert node_of(run, "right")["state"] == "incomplete"
    assert "covers nothing of the window" in fleet.last.stdout
    fleet.syncline("merge", run, fine=(INCOMPLETE,))
    report = load(os.path.join(run, "out", "report.json"))
    losses = {node["name"]: node["losses"] for node in report["nodes"]}
    assert [loss["reason"] for loss in losses["right"]] == ["not covered"]
    assert losses["left"] == []
    left = node_of(run, "left")
    assert left["state"] == "complete"
    late_ns = (
        left["start"]["gate_end_monotonic_raw_ns"] - left["start"]["requested_monotonic_raw_ns"]
    )
    assert late_ns < NS_PER_S // 2


def test_an_agent_that_begins_late_is_a_loss_with_its_interval(fleet):
    right = fleet.bed["right"]
    for attempt in range(5):  # the gate may be open before the agent stands still
        run = os.path.join(fleet.work, f"late-{attempt}")
        recorder = fleet.start_record(run, 4)
        fleet.wait_until_it_records(recorder, run, 0)
        with standing_still(right, agent_pid(right)):
            time.sleep(2)
        output, _ = recorder.communicate(timeout=90)
        start = node_of(run, "right")["start"]
        late_ns = start["gate_begin_monotonic_raw_ns"] - start["requested_monotonic_raw_ns"]
        if late_ns > NS_PER_S:
            break
    assert recorder.returncode == INCOMPLETE, output
    assert "it started" in output and node_of(run, "left")["state"] == "complete"
    fleet.syncline("merge", run, fine=(INCOMPLETE,))
    report = load(os.path.join(run, "out", "report.json"))
    (loss,) = next(node["losses"] for node in report["nodes"] if node["name"] == "right")
    assert loss["reason"] == "not covered" and "late" in loss["detail"]
    assert abs(loss["end_ns"] - loss["begin_ns"] - late_ns) < NS_PER_S // 1000


# A ticker from where the host's session daemon cannot be seen, as in a container of its own.
ELSEWHERE = f"""
mkdir -p /var/run/lttng
setsid unshare -m sh -e -c 'mount -t tmpfs none /var/run/lttng
  exec /opt/syncline/bin/syncline run -- {HOST_TENSORFLOW}/bin/python {HOST_TICKER} 0.006' \
  >/tmp/elsewhere.log 2>&1 &
echo $!
until grep -q ticking /tmp/elsewhere.log; do sleep 0.1; done
"""


def test_a_program_that_the_session_daemon_does_not_know_is_named(fleet):
    right = fleet.bed["right"]
    pid = right.run(["sh", "-c", ELSEWHERE]).stdout.strip()
    try:
        run = fleet.record("elsewhere", 2, fine=(INCOMPLETE,))
    finally:
        right.run(["kill", pid])
    assert f"Process {pid} " in fleet.last.stdout
    assert "not registered with LTTng's session daemon" in fleet.last.stdout
    assert node_of(run, "left")["state"] == "complete"
    fleet.syncline("merge", run, fine=(INCOMPLETE,))
    assert min(fleet.ticks(run).values()) > 50  # the others lost nothing by it


# Every child makes a call or two, and is gone before the agent can have noticed it.
SHORT_LIVES = f"""
setsid /opt/syncline/bin/syncline run -- {HOST_TENSORFLOW}/bin/python -c '
import os, time, ittapi
print("forking", flush=True)
while True:
    if os.fork() == 0:
        with ittapi.task("short", domain="lives"):
            os._exit(0)
    os.wait()
    time.sleep(0.05)
' >/tmp/short.log 2>&1 &
echo $!
until grep -q forking /tmp/short.log; do sleep 0.1; done
"""


def test_processes_that_lived_too_shortly_are_one_loss(fleet):
    right = fleet.bed["right"]
    pid = right.run(["sh", "-c", SHORT_LIVES]).stdout.strip()
    try:
        run = fleet.record("short-lives", 2, fine=(INCOMPLETE,))
    finally:
        right.run(["kill", pid])
    assert "not recorded: started during the window" in fleet.last.stdout
    fleet.syncline("merge", run, fine=(INCOMPLETE,))
    report = load(os.path.join(run, "out", "report.json"))
    losses = {node["name"]: node["losses"] for node in report["nodes"]}
    assert losses["left"] == []
    assert [loss["source"] for loss in losses["right"]] == ["short-lived processes"]
    assert len(fleet.syncline("report", run, fine=(INCOMPLETE,)).stdout.splitlines()) <= 45


def test_an_agent_that_is_replaced_leaves_its_session_daemon_to_the_next(fleet):
    """A session daemon that is restarted is back with every program only after seconds."""
    fleet.record("before", 0.5)
    daemons = {host.name: pids_of(host, "lttng-sessiond") for host in fleet.bed.hosts}
    agents = {host.name: agent_pid(host) for host in fleet.bed.hosts}
    fleet.fab("up")
    for host in fleet.bed.hosts:
        assert agent_pid(host) != agents[host.name]
        assert pids_of(host, "lttng-sessiond") == daemons[host.name]
    run = fleet.record("after", 2)
    fleet.syncline("merge", run)
    assert min(fleet.ticks(run).values()) > 50


def test_a_job_killed_while_recording_leaves_what_it_did(fleet):
    right = fleet.bed["right"]
    run = os.path.join(fleet.work, "killed-job")
    recorder = fleet.start_record(run, 4)
    fleet.wait_until_it_records(recorder, run, 2)
    right.run(["kill", "-KILL", ticker_pid(right)])
    output, _ = recorder.communicate(timeout=90)
    assert recorder.returncode in (0, INCOMPLETE), output
    fleet.syncline("merge", run, fine=(0, INCOMPLETE))
    ticks = fleet.ticks(run)
    assert ticks["left"] > 150 and ticks["right"] > 50
    fleet.fab("down", "--jobs-only")
    fleet.launch_ticker()


def test_ctrl_c_stops_and_keeps_everything(fleet):
    run = os.path.join(fleet.work, "interrupted")
    recorder = fleet.start_record(run, 60)
    fleet.wait_until_it_records(recorder, run, 2)
    recorder.send_signal(signal.SIGINT)
    output, _ = recorder.communicate(timeout=60)
    assert recorder.returncode in (0, INCOMPLETE), output
    for name in ("left", "right"):
        assert node_of(run, name)["fetched"]["complete"], output
    fleet.syncline("merge", run, fine=(0, INCOMPLETE))
    assert fleet.ticks(run)["right"] > 50


def test_an_agent_killed_while_recording_is_survived_by_the_data(fleet):
    right = fleet.bed["right"]
    run = os.path.join(fleet.work, "killed-agent")
    recorder = fleet.start_record(run, 5)
    fleet.wait_until_it_records(recorder, run, 2)
    right.run(["kill", "-KILL", agent_pid(right)])
    output, _ = recorder.communicate(timeout=90)
    assert recorder.returncode in (1, INCOMPLETE), output
    assert "right" in output
    assert node_of(run, "left")["state"] == "complete"
    fleet.fab("up")
    fleet.syncline("fetch", run, *fleet.fleet_arguments(), fine=(0, INCOMPLETE))
    fleet.syncline("merge", run, fine=(0, INCOMPLETE))
    assert fleet.ticks(run)["right"] > 50


def test_a_coordinator_that_is_killed_leaves_a_recording_to_fetch(fleet):
    run = os.path.join(fleet.work, "lost-coordinator")
    recorder = fleet.start_record(run, 60, "--lease", "5s")
    fleet.wait_until_it_records(recorder, run, 2)
    recorder.kill()
    recorder.communicate()
    deadline = time.monotonic() + 30
    while fleet.syncline("status", *fleet.fleet_arguments()).stdout.count("stopped") < 2:
        assert time.monotonic() < deadline, "no lease ended it"
        time.sleep(0.5)
    result = fleet.syncline("fetch", run, *fleet.fleet_arguments(), fine=(INCOMPLETE,))
    assert "lease expired" in result.stdout
    assert "clocks were compared only until then" in result.stdout
    recording = load(os.path.join(run, "recording.json"))
    assert recording["window"]["stop_reason"] == "coordinator lost"
    assert 5e9 < recording["window"]["end_timeline_ns"] < 30e9
    for node in recording["nodes"]:
        assert node["state"] == "incomplete" and node["fetched"]["complete"]
    lowest, highest = fleet.clock_difference(run, "left", "right")
    assert lowest <= fleet.bed.monotonic_difference_ns("left", "right") <= highest
    fleet.syncline("merge", run, fine=(INCOMPLETE,))
    report = load(os.path.join(run, "out", "report.json"))
    right = next(node for node in report["nodes"] if node["name"] == "right")
    # Seconds without a comparison: 200 ppm of them are in the bound of the end, not of the start.
    grown_ns = right["stop_skew"]["bound_ns"] - right["start_skew"]["bound_ns"]
    assert 500_000 < grown_ns < 10_000_000, result.stdout
    assert min(fleet.ticks(run).values()) > 200


def stopped_without_a_fetch(fleet, name):
    """(directory, id) of a recording whose coordinator was killed; the nodes have all of it."""
    run = os.path.join(fleet.work, name)
    recorder = fleet.start_record(run, 60)
    fleet.wait_until_it_records(recorder, run, 2)
    recorder.kill()
    recorder.communicate()
    recording_id = load(os.path.join(run, "recording.json"))["recording_id"]
    fleet.syncline("stop", recording_id, *fleet.fleet_arguments())
    return run, recording_id


def test_what_nodes_have_no_more_is_said_and_the_others_are_whole(fleet):
    run, recording_id = stopped_without_a_fetch(fleet, "deleted-there")
    fleet.syncline("release", recording_id, "--force", "-H", "right", *fleet.fleet_arguments())
    result = fleet.syncline("fetch", run, *fleet.fleet_arguments(), fine=(INCOMPLETE,))
    said = [line for line in result.stdout.splitlines() if "right" in line]
    assert len(said) == 1, result.stdout
    assert f'nothing to fetch: This node has no recording "{recording_id}"' in said[0]
    assert "fetched" in result.stdout and "it is not complete: 0 of 2 nodes" in result.stdout
    assert "collects it" not in result.stdout
    assert node_of(run, "right")["state"] == "left"
    assert node_of(run, "left")["fetched"]["complete"]
    fleet.syncline("merge", run, fine=(INCOMPLETE,))
    assert fleet.ticks(run)["left"] > 50
    again = fleet.syncline("fetch", run, *fleet.fleet_arguments(), fine=(INCOMPLETE,))
    assert "nothing more was fetched\nit is not complete: 0 of 2 nodes" in again.stdout


def test_what_was_deleted_by_hand_on_a_node_is_said(fleet):
    run, recording_id = stopped_without_a_fetch(fleet, "deleted-by-hand")
    data = "/opt/syncline/var/data"
    fleet.bed["left"].run(["sh", "-c", f"rm -r $(find {data} -type d -name '*{recording_id}*')"])
    result = fleet.syncline("fetch", run, *fleet.fleet_arguments(), fine=(INCOMPLETE,))
    said = [line for line in result.stdout.splitlines() if " left: " in line]
    assert len(said) == 1, result.stdout
    assert f'nothing to fetch: Recording "{recording_id}" was deleted on this node' in said[0]
    assert "it is not complete: 0 of 2 nodes" in result.stdout
    assert "collects it" not in result.stdout
    assert not node_of(run, "left")["fetched"]["complete"]
    assert node_of(run, "right")["fetched"]["complete"]
    fleet.syncline("release", recording_id, "--force", *fleet.fleet_arguments())


def test_a_trace_that_is_damaged_is_named_and_the_rest_is_merged(fleet):
    run = fleet.record("damaged", 1)
    metadata = subprocess.run(
        ["find", os.path.join(run, "nodes", "right"), "-name", "metadata"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()[0]
    with open(metadata, "r+b") as file:
        file.truncate(100)
    result = fleet.syncline("merge", run, fine=(INCOMPLETE,))
    assert "right" in result.stdout
    assert fleet.ticks(run)["left"] > 20
