# SPDX-License-Identifier: Apache-2.0
"""Many DDP steps, attached in the middle: every all-reduce has its partner, in order.

The truth is a diary that each rank keeps of its own steps, which Syncline does not see.
"""

import bisect
import os
import signal
import time

import pytest

from tests.integration.fleet import Fleet, load
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY

TORCH = os.path.join(REPOSITORY, ".venv-torch")
JOB = os.path.join(REPOSITORY, "tests", "integration", "ddp_steps")
# More by hand.
STEPS = int(os.environ.get("SYNCLINE_TEST_STEPS", "1000"))
RECORDING_LIMIT_S = 150


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    if not os.path.isdir(TORCH):
        pytest.skip("no .venv-torch: scripts/setup --torch makes it")
    specs = [HostSpec("rank-a"), HostSpec("rank-b")]
    with Testbed(specs, seed=51, binds={"/opt/torch": TORCH}) as bed:
        fleet = Fleet(bed, tmp_path_factory.mktemp("steps"))
        fleet.up()
        fleet.fab(
            *("launch", "--copy", JOB, "--ready", "step 100:"),
            *("--command", "env GLOO_SOCKET_IFNAME=eth0 /opt/torch/bin/python train.py diary"),
        )
        yield fleet
        fleet.fab("down")


def diary_of(host):
    """[(step, before its backward, behind it)]"""
    text = host.run(["cat", "/opt/syncline/var/jobs/job/diary"]).stdout
    whole = [line.split() for line in text.splitlines()]
    return [tuple(map(int, words)) for words in whole if len(words) == 3]


def steps_made(host):
    return int(host.run(["sh", "-c", "wc -l < /opt/syncline/var/jobs/job/diary"]).stdout)


def record_steps(fleet, name):
    """A recording that lasts for STEPS steps and some before and behind them."""
    host = fleet.bed.hosts[0]
    recorder = fleet.start_record(name, RECORDING_LIMIT_S, "--progress", "never")
    run = os.path.join(fleet.work, name)
    fleet.wait_until_it_records(recorder, run)
    wanted = steps_made(host) + STEPS + 50
    deadline = time.monotonic() + RECORDING_LIMIT_S
    while steps_made(host) < wanted:
        assert recorder.poll() is None, recorder.stdout.read()
        assert time.monotonic() < deadline, "the job stands still"
        time.sleep(0.2)
    recorder.send_signal(signal.SIGINT)
    said, _ = recorder.communicate(timeout=60)
    assert recorder.returncode == 0, said
    return run


def step_of(diary, ns):
    """The step in whose backward the instant lies; None: in no one's."""
    index = bisect.bisect_right(diary, ns, key=lambda line: line[1]) - 1
    step, begin_ns, end_ns = diary[index]
    return step if index >= 0 and begin_ns <= ns <= end_ns else None


def test_every_all_reduce_of_many_steps_has_its_partner_in_order(training):
    run = record_steps(training, "run-steps")
    diaries = {host.name: diary_of(host) for host in training.bed.hosts}
    training.syncline("merge", run)
    nodes = load(os.path.join(run, "recording.json"))["nodes"]
    # CLOCK_MONOTONIC_RAW, which the diaries are in, at timeline zero.
    zero_ns = {node["name"]: node["start"]["requested_monotonic_raw_ns"] for node in nodes}
    report = load(os.path.join(run, "out", "report.json"))
    assert not [node["losses"] for node in report["nodes"] if node["losses"]]
    found = report["collectives"]
    assert found["undecided_launches"] == found["contradicting_the_model"] == 0
    whole = [row for row in found["rows"] if len(row["members"]) == 2]
    assert len(whole) >= STEPS
    # What only one of them has lies at the ends: ranks are attached milliseconds apart.
    alone = [row["number"] for row in found["rows"] if len(row["members"]) == 1]
    inner = range(whole[0]["number"], whole[-1]["number"] + 1)
    assert [row["number"] for row in whole] == list(inner) and not set(alone) & set(inner)
    pairs = []
    for row in whole:
        steps = {
            step_of(diaries[member["node"]], member["entered_ns"] + zero_ns[member["node"]])
            for member in row["members"]
        }
        assert len(steps) == 1 and None not in steps, (row, steps)
        pairs += steps
    assert pairs == list(range(pairs[0], pairs[0] + len(pairs)))
    assert pairs[0] > 100  # attached in the middle
    steps_are_those_of_the_diaries(report, diaries, zero_ns)


def steps_are_those_of_the_diaries(report, diaries, zero_ns):
    """The program marks none: they are known from its optimizer."""
    assert {series["node"] for series in report["steps"]} == set(diaries)
    assert len(report["steps"]) == len(diaries)
    for series in report["steps"]:
        assert "SGD" in series["name"] and series["count"] >= STEPS
        diary, zero = diaries[series["node"]], zero_ns[series["node"]]
        numbers = []
        for step in series["steps"]:
            begin, end = step["begin_ns"] + zero, step["end_ns"] + zero
            first = bisect.bisect_left(diary, begin, key=lambda line: line[1])
            inside = [line[0] for line in diary[first : first + 2] if line[2] <= end]
            assert len(inside) == 1, (step, inside)
            numbers += inside
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
