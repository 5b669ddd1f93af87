"""What goes wrong on real machines: a message that helps, and nothing lost that was recorded."""

import os
import signal
import subprocess
import time

import pytest

from tests.integration.fleet import HOST_TENSORFLOW, TENSORFLOW, Fleet, load
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY

TICKER = os.path.join(REPOSITORY, "tests", "integration", "ticker.py")
NS_PER_S = 1_000_000_000
INCOMPLETE = 3


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Two hosts on each of which a small job ticks."""
    specs = [HostSpec("left"), HostSpec("right", shm_bytes=64 << 20)]
    binds = {HOST_TENSORFLOW: TENSORFLOW, "/opt/jobs/ticker.py": TICKER}
    with Testbed(specs, seed=33, binds=binds) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("misfortunes"))
        made.up()
        made.fab(
            "launch",
            "--command",
            f"{HOST_TENSORFLOW}/bin/python /opt/jobs/ticker.py",
            "--ready",
            "ticking",
        )
        yield made
        made.fab("down")


def ticker_pid(host):
    return host.run(["pgrep", "-f", "ticker.py"]).stdout.split()[-1]


def node_of(run, name):
    return next(n for n in load(os.path.join(run, "recording.json"))["nodes"] if n["name"] == name)


def test_a_host_with_64_mb_of_shared_memory_is_recorded(fleet):
    run = fleet.record("small-shm", 2)
    for name in ("left", "right"):
        node = node_of(run, name)
        assert node["state"] == "complete", node
        assert node["prepare"]["buffers_bytes"] < (64 << 20)
    fleet.syncline("merge", run)
    timeline = fleet.timeline_tasks(run)
    for name in ("left", "right"):
        assert sum(task.name == "tick" for task in timeline[name]) > 50


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
    right.run(["kill", "-STOP", pid])
    try:
        run = fleet.record("stopped", 2, fine=(INCOMPLETE,))
    finally:
        right.run(["kill", "-CONT", pid])
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


def test_a_job_killed_while_recording_leaves_what_it_did(fleet):
    right = fleet.bed["right"]
    recorder = fleet.start_record("killed-job", 4)
    time.sleep(3)
    right.run(["kill", "-KILL", ticker_pid(right)])
    output, _ = recorder.communicate(timeout=90)
    assert recorder.returncode in (0, INCOMPLETE), output
    run = os.path.join(fleet.work, "killed-job")
    fleet.syncline("merge", run, fine=(0, INCOMPLETE))
    timeline = fleet.timeline_tasks(run)
    assert sum(task.name == "tick" for task in timeline["left"]) > 200
    assert sum(task.name == "tick" for task in timeline["right"]) > 50
    fleet.fab("down", "--jobs-only")
    fleet.fab(
        "launch",
        "--command",
        f"{HOST_TENSORFLOW}/bin/python /opt/jobs/ticker.py",
        "--ready",
        "ticking",
    )


def test_ctrl_c_stops_and_keeps_everything(fleet):
    recorder = fleet.start_record("interrupted", 60)
    time.sleep(5)
    recorder.send_signal(signal.SIGINT)
    output, _ = recorder.communicate(timeout=60)
    assert recorder.returncode in (0, INCOMPLETE), output
    run = os.path.join(fleet.work, "interrupted")
    for name in ("left", "right"):
        assert node_of(run, name)["fetched"]["complete"], output
    fleet.syncline("merge", run, fine=(0, INCOMPLETE))
    assert sum(task.name == "tick" for task in fleet.timeline_tasks(run)["right"]) > 50


def test_an_agent_killed_while_recording_is_survived_by_the_data(fleet):
    right = fleet.bed["right"]
    recorder = fleet.start_record("killed-agent", 5)
    time.sleep(3)
    right.run(["sh", "-c", "kill -KILL $(cat /opt/syncline/var/agent.pid)"])
    output, _ = recorder.communicate(timeout=90)
    assert recorder.returncode in (1, INCOMPLETE), output
    assert "right" in output
    run = os.path.join(fleet.work, "killed-agent")
    assert node_of(run, "left")["state"] == "complete"
    fleet.fab("up")
    fleet.syncline("fetch", run, *fleet.fleet_arguments(), fine=(0, INCOMPLETE))
    fleet.syncline("merge", run, fine=(0, INCOMPLETE))
    timeline = fleet.timeline_tasks(run)
    assert sum(task.name == "tick" for task in timeline["right"]) > 50


def test_a_coordinator_that_is_killed_leaves_a_recording_to_fetch(fleet):
    recorder = fleet.start_record("lost-coordinator", 60, "--lease", "5s")
    run = os.path.join(fleet.work, "lost-coordinator")
    while not os.path.exists(os.path.join(run, "recording.json")):
        assert recorder.poll() is None, recorder.stdout.read()
        time.sleep(0.05)
    time.sleep(2)
    recorder.kill()
    recorder.communicate()
    deadline = time.monotonic() + 30
    while fleet.syncline("status", *fleet.fleet_arguments()).stdout.count("stopped") < 2:
        assert time.monotonic() < deadline, "no lease ended it"
        time.sleep(0.5)
    result = fleet.syncline("fetch", run, *fleet.fleet_arguments(), fine=(INCOMPLETE,))
    assert "lease expired" in result.stdout
    assert "clocks were compared until then only" in result.stdout
    recording = load(os.path.join(run, "recording.json"))
    assert recording["window"]["stop_reason"] == "coordinator lost"
    assert 5e9 < recording["window"]["end_timeline_ns"] < 30e9
    for node in recording["nodes"]:
        assert node["state"] == "incomplete" and node["fetched"]["complete"]
    lowest, highest = fleet.clock_difference(run, "left", "right")
    assert lowest <= fleet.bed.monotonic_difference_ns("left", "right") <= highest
    # Seconds without a comparison: 200 ppm of them are in the bound of the end, not of the start.
    fleet.syncline("merge", run, fine=(INCOMPLETE,))
    nodes = {node["name"]: node for node in load(os.path.join(run, "out", "report.json"))["nodes"]}
    started, stopped = nodes["right"]["start_skew"], nodes["right"]["stop_skew"]
    assert stopped["bound_ns"] > started["bound_ns"] + 500_000
    timeline = fleet.timeline_tasks(run)
    for name in ("left", "right"):
        assert sum(task.name == "tick" for task in timeline[name]) > 200


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
    assert sum(task.name == "tick" for task in fleet.timeline_tasks(run)["left"]) > 20
