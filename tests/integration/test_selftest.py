# SPDX-License-Identifier: Apache-2.0
"""`fab selftest` on two hosts: the delay and the wrong clock are found, and wrong labels fail."""

import json
import os

import pytest

from tests.integration.fleet import Fleet
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY

TORCH = os.path.join(REPOSITORY, ".venv-torch")
PYTHON = "/opt/torch/bin/python"
CLOCK_CHECKS = ("clock_noticed", "clock_bound", "verdict_without_clocks")


@pytest.fixture(scope="module")
def tested(tmp_path_factory):
    """(fleet, what `fab selftest` printed)."""
    if not os.path.isdir(TORCH):
        pytest.skip("no .venv-torch: scripts/setup --torch makes it")
    specs = [HostSpec("alpha"), HostSpec("beta")]
    with Testbed(specs, seed=31, binds={"/opt/torch": TORCH}) as bed:
        fleet = Fleet(bed, tmp_path_factory.mktemp("selftest"))
        fleet.up()
        result = fleet.fab(
            *("selftest", "--python", PYTHON, "--interface", "eth0", "--out", "trial"),
            check=False,
        )
        said = result.stdout
        assert result.returncode in (0, 3), said
        assert all(not host.run(["pgrep", "-f", "train.py"], check=False).stdout
                   for host in bed.hosts), "the job was ended"
        yield fleet, said
        fleet.fab("down")


def judged(fleet, healthy, delayed, *options):
    """(exit code, {check: state}) of `syncline selftest HEALTHY DELAYED`."""
    words = ["syncline", "selftest", healthy, delayed, "--json", *options]
    command = f"{' '.join(words)} 2>/dev/null; echo \" $?\""
    text, _, code = fleet.run(["sh", "-c", command]).stdout.rpartition(" ")
    answer = json.loads(text)
    return int(code), {check["name"]: check["state"] for check in answer["checks"]}


def test_the_delay_and_the_wrong_clock_are_found(tested):
    fleet, said = tested
    assert " 0 failed" in said, said
    code, states = judged(fleet, "trial/healthy", "trial/delayed")
    for check in CLOCK_CHECKS:
        assert states[check] == "passed", (check, said)
    # What else runs on this machine may have slowed a rank, or one recording, and is then named.
    for check in ("nobody", "who", "cause", "amount"):
        busy = states[check] == "undecided" and ("waiting for a CPU" in said or "take its" in said)
        assert states[check] == "passed" or busy, (check, said)
    assert states["cost"] in ("passed", "not_tested"), said
    assert code == (3 if "undecided" in states.values() else 0)


def test_wrong_labels_fail(tested):
    fleet, said = tested
    code, states = judged(fleet, "trial/healthy", "trial/delayed", "--late-rank", "0")
    assert (code, states["who"], states["cause"]) == (1, "failed", "failed"), said
    code, states = judged(fleet, "trial/healthy", "trial/delayed", "--delay", "5ms")
    assert (code, states["amount"]) == (1, "failed"), said
    code, states = judged(fleet, "trial/delayed", "trial/healthy")
    assert (code, states["nobody"], states["who"]) == (1, "failed", "failed"), said
