"""DistributedDataParallel over Gloo, started through `syncline run`, which it does not know of."""

import collections
import os

import pytest

from tests.integration.fleet import EXAMPLES, Fleet, load
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY

TORCH = os.path.join(REPOSITORY, ".venv-torch")

# oneDNN's primitive, an operator, an autograd node, the optimizer, DistributedDataParallel, the
# collective that it asks for and Gloo's part of it.
EVERY_STEP = (
    "convolution",
    "aten::conv2d",
    "ConvolutionBackward0",
    "Optimizer.step#SGD.step",
    "DistributedDataParallel.forward",
    "torch.distributed.ddp.reducer::copy_bucket_to_grad",
    "c10d::allreduce_",
    "gloo:all_reduce",
)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    if not os.path.isdir(TORCH):
        pytest.skip("no .venv-torch: scripts/setup --torch makes it")
    specs = [HostSpec("rank-a"), HostSpec("rank-b")]
    with Testbed(specs, seed=36, binds={"/opt/torch": TORCH}) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("torch"))
        made.up()
        yield made
        made.fab("down")


@pytest.fixture(scope="module")
def training(fleet):
    """The example trains on both hosts."""
    fleet.fab(
        *("launch", "--copy", os.path.join(EXAMPLES, "pytorch_ddp"), "--ready", "step 100:"),
        *("--command", "env GLOO_SOCKET_IFNAME=eth0 /opt/torch/bin/python train.py"),
    )
    return fleet


def test_ranks_operators_and_shapes_are_recorded_each_time(training):
    """Attached twice: what was switched on the first time was switched off."""
    for number in (1, 2):
        run = training.record(f"run-{number}", 1.5)
        nodes = load(os.path.join(run, "recording.json"))["nodes"]
        assert [node["state"] for node in nodes] == ["complete", "complete"]
        trainers = [p for n in nodes for p in n["processes"] if "train.py" in p["command_line"]]
        assert sorted(process["rank"] for process in trainers) == [0, 1]
        assert {process["world_size"] for process in trainers} == {2}
        training.syncline("merge", run)
        for tasks in training.timeline_tasks(run).values():
            found = collections.Counter(task.name for task in tasks)
            missing = [name for name in EVERY_STEP if found[name] < 2]
            assert not missing, found
            assert not [name for name in found if not name or name.startswith("name #")]


def test_every_all_reduce_has_its_partner_though_attached_in_the_middle(training):
    """By number, and in truth: of a collective nobody leaves before everybody has entered."""
    run = training.record("run-collectives", 2)
    training.syncline("merge", run)
    report = load(os.path.join(run, "out", "report.json"))
    found = report["collectives"]
    assert [group["ranks"] for group in found["groups"]] == ["0-1"]
    assert found["undecided_launches"] == found["contradicting_the_model"] == 0
    rows = found["rows"]
    whole = [row for row in rows if len(row["members"]) == 2]
    assert len(whole) > 2
    # Ranks are attached milliseconds apart: what one of them missed lies at the ends.
    alone = [row["number"] for row in rows if len(row["members"]) == 1]
    inner = range(whole[0]["number"], whole[-1]["number"] + 1)
    assert [row["number"] for row in whole] == list(inner) and not set(alone) & set(inner)
    bound_ns = sum(node["clock_bound_ns"] for node in report["nodes"])
    for row in whole:
        entered = max(member["entered_ns"] for member in row["members"])
        left = [member["left_ns"] for member in row["members"] if member["left_ns"] is not None]
        assert not left or min(left) >= entered - bound_ns, row
