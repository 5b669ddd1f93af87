"""DistributedDataParallel over Gloo, started through `syncline run`, which it does not know of."""

import os

import pytest

from tests.integration.fleet import EXAMPLES, Fleet, load
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY

TORCH = os.path.join(REPOSITORY, ".venv-torch")


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


def test_pytorch_ddp_is_recorded_with_ranks_and_shapes(fleet):
    fleet.fab(
        *("launch", "--copy", os.path.join(EXAMPLES, "pytorch_ddp"), "--ready", "step 100:"),
        *("--command", "env GLOO_SOCKET_IFNAME=eth0 /opt/torch/bin/python train.py"),
    )
    run = fleet.record("run-ddp", 2)
    nodes = load(os.path.join(run, "recording.json"))["nodes"]
    assert [node["state"] for node in nodes] == ["complete", "complete"]
    trainers = [p for node in nodes for p in node["processes"] if "train.py" in p["command_line"]]
    assert sorted(process["rank"] for process in trainers) == [0, 1]
    assert {process["world_size"] for process in trainers} == {2}
    fleet.syncline("merge", run)
    timeline = fleet.timeline_tasks(run)
    for name in ("rank-a", "rank-b"):
        assert sum(task.name == "convolution" for task in timeline[name]) > 50
