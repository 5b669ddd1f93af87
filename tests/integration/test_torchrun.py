# SPDX-License-Identifier: Apache-2.0
"""docs/launchers/torchrun.md on two hosts: two ranks on each, and each rank with two workers of its
data loader. Who is a rank and who is not is said, and all advice is about ranks."""

import json
import os
import re

import pytest

from tests.integration.fleet import Fleet, load
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY

TORCH = os.path.join(REPOSITORY, ".venv-torch")
JOB = os.path.join(REPOSITORY, "tests", "integration", "torchrun_job")
PAGE = os.path.join(REPOSITORY, "docs", "launchers", "torchrun.md")
# Two ranks, four workers and the launcher: of each host.
PARTS = {"launcher": 1, "loader worker": 4, "rank": 2}


def line_for_several_nodes():
    """The page's, with this machine's PyTorch and the hosts' names."""
    with open(PAGE, encoding="utf-8") as file:
        (line,) = re.findall(r"-- (torchrun --nnodes .*)$", file.read(), re.MULTILINE)
    assert line.startswith("torchrun ") and "master-0:" in line, line
    line = line.replace("torchrun ", "/opt/torch/bin/python -m torch.distributed.run ", 1)
    return "env GLOO_SOCKET_IFNAME=eth0 " + line.replace("master-0:", "{master}:")


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    if not os.path.isdir(TORCH):
        pytest.skip("no .venv-torch: scripts/setup --torch makes it")
    specs = [HostSpec("host-a"), HostSpec("host-b")]
    with Testbed(specs, seed=61, binds={"/opt/torch": TORCH}) as bed:
        fleet = Fleet(bed, tmp_path_factory.mktemp("torchrun"))
        fleet.up()
        fleet.fab(
            *("launch", "--job", "digits", "--copy", JOB, "--ready", "step 100:"),
            *("--command", line_for_several_nodes()),
        )
        yield fleet
        fleet.fab("down")


def test_nodes_tells_ranks_from_launchers_and_workers(training):
    said = training.syncline("nodes", *training.fleet_arguments()).stdout
    for host, ranks in (("host-a", (0, 1)), ("host-b", (2, 3))):
        lines = [line for line in said.splitlines() if line.startswith(f"{host}: ")]
        assert sum(" · launcher · job digits · " in line for line in lines) == 1, said
        for rank in ranks:
            assert sum(f" · rank {rank} of 4 · job digits · " in line for line in lines) == 1, said
            worker_lines = [line for line in lines if f" loader workers of rank {rank} " in line]
            assert len(worker_lines) == 1, said
            assert worker_lines[0].startswith(f"{host}: 2 loader workers of rank {rank} · pids ")
        processes = [line for line in lines if re.match(rf"{host}: (pid \d|\d+ loader)", line)]
        assert len(processes) == 5, said
    # torchrun gives each rank one thread, and a host has two CPUs or more.
    assert "OMP_NUM_THREADS" not in said, said


def test_a_recording_and_its_report_keep_them_apart(training):
    run = training.record("run", 2)
    for node in load(os.path.join(run, "recording.json"))["nodes"]:
        assert node["state"] == "complete", node
        parts = [process["part"] for process in node["processes"]]
        assert {part: parts.count(part) for part in parts} == PARTS
        assert all(p["rank"] == -1 for p in node["processes"] if p["part"] == "launcher")
    receipt = training.last.stdout.split("overhead of the recording:")[1]
    # Workers that make no call that is recorded have no row.
    assert len(re.findall(r" · rank [0-3] · ", receipt)) == 4, receipt
    assert "loader worker 0" not in receipt, receipt

    training.syncline("merge", run)
    report = load(os.path.join(run, "out", "report.json"))
    assert [group["ranks"] for group in report["collectives"]["groups"]] == ["0-3"]
    names = [process["name"] for node in report["nodes"] for process in node["processes"]]
    assert len(names) == len(set(names)) == 14, names
    for worker in (0, 1):
        for rank, host in enumerate(("host-a", "host-a", "host-b", "host-b")):
            assert f"{host} · loader worker {worker} of rank {rank}" in names, names
    said = training.syncline("report", run).stdout
    said = " ".join(said.split())
    assert "14 processes (4 ranks, 2 launchers, 8 loader workers)" in said, said
    assert "covered by all 4 ranks" in said, said
    table = training.syncline("report", run, "--section", "coverage").stdout
    assert len(re.findall(r"· 2 loader workers of rank [0-3] ", table)) == 4, table


def test_why_judges_the_ranks(training):
    run = os.path.join(training.work, "run-why")
    command = ["syncline", "why", *training.fleet_arguments(), "--for", "5s", "--out", run]
    training.run(command)
    answer = json.loads(training.syncline("why", run, "--json").stdout)
    assert answer["status"] == "answered", answer
    assert [rank["rank"] for rank in answer["ranks"]] == [0, 1, 2, 3], answer
