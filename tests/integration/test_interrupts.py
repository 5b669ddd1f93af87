# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C in every phase of a recording: either nothing was recorded and nothing is left anywhere,
or what was recorded is kept, here or on the nodes, and the last lines say how to go on.

A phase is held open from outside: a node that does not answer, a session daemon or an agent that
stands still. SIGTERM and a terminal that hangs up count as Ctrl-C.
"""

import os
import re
import signal
import subprocess
import time

import pytest

from tests.integration.fleet import (
    FAILED,
    INCOMPLETE,
    INTERRUPTED,
    Recording,
    agent_pid,
    load,
    pids_of,
    standing_still,
    ticking,
)
from tests.testbed import HostSpec

LEFT_BEHIND = """
lttng list 2>/dev/null | grep -o 'syncline-[^ ]*'
ls /opt/syncline/var/data/recordings
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    specs = [HostSpec("left"), HostSpec("right")]
    with ticking(tmp_path_factory.mktemp("interrupts"), specs, 41) as made:
        yield made


def left_behind(fleet):
    """Sessions and recordings on the hosts."""
    return [host.run(["sh", "-c", LEFT_BEHIND], check=False).stdout for host in fleet.bed.hosts]


def expect_nothing(fleet, recording):
    assert not os.path.exists(recording.run)
    assert left_behind(fleet) == ["", ""], recording.printed


def expect_everything(fleet, recording):
    for node in load(os.path.join(recording.run, "recording.json"))["nodes"]:
        assert node["fetched"]["complete"], recording.printed
    assert left_behind(fleet) == ["", ""], recording.printed


def session_daemon_standing_still(host):
    return standing_still(host, *pids_of(host, "lttng-sessiond"))


def test_while_connecting_nothing_is_left(fleet):
    right = fleet.bed["right"]
    with standing_still(right, agent_pid(right)):
        recording = Recording(fleet, "connecting", 60)
        recording.wait_for("asking 2 nodes")
        time.sleep(0.5)
        recording.interrupt()
        assert recording.end(8) == INTERRUPTED, recording.printed
    assert "interrupted: nothing was recorded" in recording.printed
    expect_nothing(fleet, recording)


def test_while_preparing_sessions_are_released(fleet):
    right = fleet.bed["right"]
    recording = Recording(fleet, "preparing", 60)
    recording.wait_for("measuring clocks")
    with session_daemon_standing_still(right):
        recording.wait_for("preparing 2 nodes")
        time.sleep(0.5)
        recording.interrupt()
    assert recording.end() == INTERRUPTED, recording.printed
    expect_nothing(fleet, recording)


def assert_kept(recording):
    """All is there; or a node of a busy machine began late, and nothing else is said of it."""
    code = recording.end()
    said = re.findall(r"warning: \w+: incomplete: (.*)", recording.printed)
    late = [one for one in said if re.search(r"it started .* late|covers nothing of the", one)]
    assert code == (INCOMPLETE if late else 0) and said == late, recording.printed


def test_between_ready_and_the_start_it_ends_in_good_order(fleet):
    recording = Recording(fleet, "starting", 60)
    recording.wait_for("preparing 2 nodes")
    deadline = time.monotonic() + 30
    while not os.path.exists(os.path.join(recording.run, "recording.json")):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    recording.interrupt()  # T lies 0.3 s ahead
    assert_kept(recording)
    expect_everything(fleet, recording)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_while_recording_everything_is_kept(fleet, number):
    recording = Recording(fleet, f"recording-{number}", 60)
    recording.wait_for("recording ...")
    time.sleep(1)
    recording.interrupt(number)
    assert_kept(recording)
    expect_everything(fleet, recording)
    window = load(os.path.join(recording.run, "recording.json"))["window"]
    assert window["stop_reason"] == "interrupted"
    assert 0.5e9 < window["end_timeline_ns"] < 30e9


def test_a_first_press_while_stopping_loses_nothing(fleet):
    right = fleet.bed["right"]
    recording = Recording(fleet, "stopping", 1)
    recording.wait_for("recording ...")
    with session_daemon_standing_still(right):
        recording.wait_for("stopping ...")
        time.sleep(1)
        recording.interrupt()
        recording.wait_for("Ctrl-C once more leaves the data on the nodes")
    assert recording.end() in (0, INCOMPLETE), recording.printed
    expect_everything(fleet, recording)


def test_a_second_press_leaves_the_data_on_the_nodes(fleet):
    right = fleet.bed["right"]
    recording = Recording(fleet, "second", 60)
    recording.wait_for("recording ...")
    time.sleep(1)
    with session_daemon_standing_still(right):
        recording.interrupt()
        recording.wait_for("stopping")
        time.sleep(1)
        recording.interrupt()
        assert recording.end(20) in (FAILED, INCOMPLETE), recording.printed
    assert f"syncline fetch {recording.run}" in recording.printed
    fleet.syncline("fetch", recording.run, *fleet.fleet_arguments(), fine=(0, INCOMPLETE))
    expect_everything(fleet, recording)


def test_a_transfer_that_is_interrupted_goes_on_later(fleet):
    for attempt in range(8):  # it is short: it may be over before the agent stands still
        recording = interrupted_transfer(fleet, f"fetching-{attempt}")
        states = node_states(recording.run)
        if "left" in states.values():
            break
        fleet.syncline(
            "release", recording_id(recording.run), *fleet.fleet_arguments(), check=False
        )
    assert states["right"] == "left", recording.printed
    assert f"syncline fetch {recording.run}" in recording.printed
    fleet.syncline("fetch", recording.run, *fleet.fleet_arguments())
    expect_everything(fleet, recording)


def interrupted_transfer(fleet, name):
    """A recording that is interrupted while the data of one node, whose agent stands still, is on
    its way."""
    right = fleet.bed["right"]
    pid = agent_pid(right)
    stop_agent = right.command(["kill", "-STOP", pid])
    recording = Recording(fleet, name, 1)
    recording.wait_for("stopping ...")
    # When the window's end is on the disk the transfer begins. Meanwhile the recorder is held.
    while load(os.path.join(recording.run, "recording.json"))["window"]["stop_reason"] == "":
        pass
    recording.interrupt(signal.SIGSTOP)
    subprocess.run(stop_agent, check=True)
    recording.interrupt(signal.SIGCONT)
    try:
        time.sleep(0.5)
        recording.interrupt()
        assert recording.end(30) in (0, FAILED, INCOMPLETE), recording.printed
    finally:
        right.run(["kill", "-CONT", pid])
    return recording


def node_states(run):
    return {n["name"]: n["state"] for n in load(os.path.join(run, "recording.json"))["nodes"]}


def recording_id(run):
    return load(os.path.join(run, "recording.json"))["recording_id"]


def test_nohup_is_honoured(fleet):
    arguments = [*fleet.fleet_arguments(), "--for", "2s", "--out", "nohup-run"]
    process = subprocess.Popen(
        ["nohup", "syncline", "record", *arguments],
        cwd=fleet.work,
        env=fleet.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 30
    while not os.path.exists(os.path.join(fleet.work, "nohup-run", "recording.json")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGHUP)
    assert process.wait(60) == 0
    run = load(os.path.join(fleet.work, "nohup-run", "recording.json"))
    assert run["window"]["stop_reason"] == "requested"


def test_an_interrupted_merge_leaves_the_earlier_one(fleet):
    run = fleet.record("merging", 1)
    fleet.syncline("merge", run)
    before = os.listdir(run)
    timeline = os.path.join(run, "out", "timeline.perfetto-trace")
    with open(timeline, "rb") as file:
        bytes_before = file.read()
    code = 0
    for _ in range(50):  # a merge of a second takes some 50 ms: it may be over before it is stopped
        process = subprocess.Popen(["syncline", "merge", run], env=fleet.environment)
        while process.poll() is None and len(os.listdir(run)) == len(before):
            pass
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        code = process.wait(30)
        if code == INTERRUPTED:
            break
    assert code == INTERRUPTED
    assert sorted(os.listdir(run)) == sorted(before)
    with open(timeline, "rb") as file:
        assert file.read() == bytes_before
