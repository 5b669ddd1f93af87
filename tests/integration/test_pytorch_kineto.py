# SPDX-License-Identifier: Apache-2.0
"""Two ranks under `syncline run --kineto`: PyTorch's own profiler on the same timeline as ITT."""

import bisect
import json
import os
import shutil
import statistics
import time

import pytest

from tests.integration import gpu_profile
from tests.integration.fleet import EXAMPLES, Fleet, load
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY

TORCH = os.path.join(REPOSITORY, ".venv-torch")
SLEPT_MS = 30  # rank 1, each step: more than what else runs on the machine takes from rank 0
MORE_MS = 40  # later
# What both call by the same name, at least once a step.
NAMES = ("Optimizer.step#SGD.step", "aten::conv2d", "ConvolutionBackward0")
APART_NS_MAX = 1_000_000  # far more than the witnesses differ, far less than a step


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    if not os.path.isdir(TORCH):
        pytest.skip("no .venv-torch: scripts/setup --torch makes it")
    specs = [HostSpec("rank-a"), HostSpec("rank-b")]
    with Testbed(specs, seed=58, binds={"/opt/torch": TORCH}) as bed:
        fleet = Fleet(bed, tmp_path_factory.mktemp("kineto"))
        fleet.up()
        program = tmp_path_factory.mktemp("program") / "pytorch_ddp"
        shutil.copytree(os.path.join(EXAMPLES, "pytorch_ddp"), program)
        shutil.copy(os.path.join(os.path.dirname(__file__), "slow_rank.py"), program)
        fleet.fab(
            *("launch", "--copy", str(program), "--ready", "step 100:"),
            "--command",
            "env GLOO_SOCKET_IFNAME=eth0 /opt/syncline/bin/syncline run --kineto -- "
            f"/opt/torch/bin/python slow_rank.py 1 {SLEPT_MS} train.py",
        )
        yield fleet
        fleet.fab("down")


def spans(run):
    """By node and name: begins by Kineto and by ITT, ns; and whether Kineto's have shapes."""
    found = {}
    for folder, _, files in os.walk(os.path.join(run, "out", "chrome")):
        for file in files:
            for event in load(os.path.join(folder, file))["traceEvents"]:
                if event.get("ph") != "X" or event["name"] not in NAMES:
                    continue
                kineto = event["cat"].startswith("Kineto ")
                begins = found.setdefault((file, event["name"]), ([], []))
                begins[0 if kineto else 1].append(event)
    return found


def pieces_begun(host):
    """How many the host's rank has told the agent of."""
    found = host.run(["sh", "-c", "cat /dev/shm/syncline-0/kineto/*.pieces"], check=False)
    return len(json.loads(found.stdout)["profiles"]) if found.returncode == 0 else 0


def record_two_pieces(fleet, name):
    """A recording that is longer than a piece may be."""
    recorder = fleet.start_record(name, 600)
    end = time.monotonic() + 120
    while not all(pieces_begun(host) > 1 for host in fleet.bed.hosts):
        assert recorder.poll() is None and time.monotonic() < end, recorder.communicate()
        time.sleep(0.1)
    recorder.terminate()
    output, _ = recorder.communicate()
    assert recorder.returncode == 0, output
    return os.path.join(fleet.work, name)


def test_both_witnesses_agree_on_both_ranks_again_and_again(training):
    for number, pieces_min in ((1, 1), (2, 2)):
        name = f"run-{number}"
        run = training.record(name, 2) if number == 1 else record_two_pieces(training, name)
        training.syncline("merge", run, "--format", "chrome")
        report = load(os.path.join(run, "out", "report.json"))
        for node in report["nodes"]:
            # In pieces, when the process has grown meanwhile.
            pieces = [p for p in node["profiles"] if p["profiler"] == "kineto" and p["operators"]]
            assert len(pieces) >= pieces_min, node["profiles"]
            assert sum(piece["operators"] for piece in pieces) > 100, node["profiles"]
            assert not any(piece["undecided_events"] for piece in pieces)
        found = spans(run)
        assert len(found) == len(NAMES) * 2  # nodes
        for (_, name), (kineto, itt) in found.items():
            assert len(kineto) > 2, name
            if name == "aten::conv2d":
                assert all(event["args"]["Input Dims"].startswith("[[") for event in kineto)
            times = sorted(float(event["ts"]) * 1000 for event in itt)
            apart = []
            for event in kineto:
                at = float(event["ts"]) * 1000
                index = bisect.bisect(times, at)
                near = times[max(0, index - 1) : index + 1]
                apart.append(min(abs(at - time) for time in near))
            print(f"{name}: {len(apart)} pairs, {statistics.median(apart):.0f} ns apart")
            assert statistics.median(apart) < APART_NS_MAX, (name, apart)


def test_why_names_the_rank_whose_device_comes_last(training):
    run = training.record("run-gpu", 6)
    on_cpus = json.loads(training.syncline("why", run, "--json", fine=(0, 3)).stdout)
    assert on_cpus.get("kind") != "devices", on_cpus  # no device did anything yet
    collectives = gpu_profile.on_gpus(run)
    assert all(count > 20 for count in collectives.values()), collectives
    answer = json.loads(training.syncline("why", run, "--json", fine=(0, 3)).stdout)
    print(training.syncline("why", run, fine=(0, 3)).stdout)
    assert answer["kind"] == "devices" and answer["reason"] is None, answer
    judged = answer["steps"]["judged"]
    assert judged > 10, answer["steps"]
    late = answer["verdict"]["ranks"]
    assert [one["rank"] for one in late] == [1], answer["verdict"]
    assert [cause["cause"] for cause in late[0]["causes"]][:1] == ["launch"], late
    lead = late[0]["lead_ns"]
    # The ranks share processors: rank 0 has them alone while rank 1 sleeps.
    assert 0.3 * SLEPT_MS * 1e6 < lead["est"] < 1.5 * SLEPT_MS * 1e6, lead
    # By their numbers: the ranks' optimizers step together, however the files are cut.
    assert answer["steps"]["unpaired"] <= judged * 0.2 + 3, answer["steps"]


def test_against_the_job_before_the_late_rank_is_what_changed(training):
    host = training.bed["rank-b"]
    pid = host.run(["pgrep", "-f", "^[^ ]*python slow_rank.py"]).stdout.split()[0]
    # At once, not emptied first: the program reads it at each step.
    where = f"/proc/{pid}/cwd/slow_ms"
    host.run(["sh", "-c", f"echo {SLEPT_MS + MORE_MS} > {where}.new && mv {where}.new {where}"])
    gpu_profile.on_gpus(training.record("run-gpu-later", 9))
    limits = ["rank:1.own_work > +5%", "launch > +5%"]
    code, told = training.compare("run-gpu-later", "run-gpu", *limits)
    print(training.syncline("why", "run-gpu-later", "--against", "run-gpu", fine=(0, 3)).stdout)
    assert (told["kind"], told["message"]) == ("devices", ""), told["message"]
    own = {one["rank"]: one["own_work"] for one in told["ranks"]}
    assert 0.5 * MORE_MS * 1e6 < own[1]["change_ns"]["est"] < 1.5 * MORE_MS * 1e6, own
    assert own[1]["certain"]
    assert abs(own[0]["change_ns"]["est"]) < 0.5 * own[1]["change_ns"]["est"], own
    parts = told["parts"]
    total = sum(part["change_ns"]["est"] for part in parts.values())
    assert total == pytest.approx(told["step"]["change_ns"]["est"], abs=1000)
    launch = told["ranks"][1]["parts"]["launch"]["change_ns"]["est"]
    assert launch == max(one["change_ns"]["est"] for one in told["ranks"][1]["parts"].values())
    assert (told["status"], code) == ("compared", 4), (told["limits"], told["now"], told["before"])
