# SPDX-License-Identifier: Apache-2.0
"""docs/launchers/slurm.md, line by line, with Debian's Slurm on two simulated hosts: an ordinary
user's sbatch file, then `syncline` while the job runs."""

import json
import os
import re
import shutil
import subprocess

import pytest

from tests.integration.fleet import HOST_TENSORFLOW, TICKER_BINDS, load
from tests.integration.slurm import SHARED, Cluster, missing_programs, wait_for
from tests.testbed import HostSpec, Testbed, faults
from tests.testbed.machine import BUILD, REPOSITORY

PAGE = os.path.join(REPOSITORY, "docs", "launchers", "slurm.md")
TORCH = os.path.join(REPOSITORY, ".venv-torch")
HOST_TORCH = "/opt/torch"
NODES = ("node1", "node2")
USER = "ann"
SLOW_RANK = 1
# A script as many are: it knows Slurm's variables, and PyTorch knows torchrun's. The fault is the
# example's: the data loader of one rank waits for storage.
TRAINING = f"""\
import os, runpy, subprocess, sys

slurm = os.environ
names = subprocess.run(
    ["scontrol", "show", "hostnames", slurm["SLURM_JOB_NODELIST"]],
    capture_output=True, text=True, check=True,
)
slurm.update(
    RANK=slurm["SLURM_PROCID"], WORLD_SIZE=slurm["SLURM_NTASKS"],
    MASTER_ADDR=names.stdout.split()[0], MASTER_PORT="29500", GLOO_SOCKET_IFNAME="eth0",
)
sys.argv += ["--fault", "loader", "--fault-rank", "{SLOW_RANK}", "--dose", "60"]
sys.argv += ["--report-every", "20"]
runpy.run_path("{faults.HOST_EXAMPLE}/train.py", run_name="__main__")
"""


def code_blocks():
    with open(PAGE, encoding="utf-8") as file:
        return re.findall(r"^```sh\n(.*?)^```$", file.read(), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if missing := missing_programs():
        pytest.fail(f"not installed: {missing}; scripts/setup installs Debian's Slurm")
    folder = tmp_path_factory.mktemp("shared")
    folder.chmod(0o755)
    home = folder / "home"
    home.mkdir(mode=0o755)
    specs = [HostSpec(name, users=(USER,)) for name in NODES]
    binds = {**TICKER_BINDS, **faults.BINDS}
    if os.path.isdir(TORCH):
        binds[HOST_TORCH] = TORCH
    with Testbed(
        specs, seed=29, binds=binds, shared={SHARED: folder, f"/home/{USER}": home}
    ) as bed:
        install(folder)
        with Cluster(bed, folder) as made:
            made.home = home
            yield made


def install(folder):
    """As the page says: cmake --install build --prefix /shared/syncline."""
    command = ["cmake", "--install", BUILD, "--prefix", os.path.join(folder, "syncline"), "--strip"]
    subprocess.run(command, check=True, capture_output=True)


def begin(cluster, python):
    """Submits the page's sbatch file, and waits until `syncline` reaches both nodes: the job."""
    text, more = re.subn("--nodes=4", f"--nodes={len(NODES)}", code_blocks()[0])
    assert more == 1, text
    (cluster.home / "job.sh").write_text(text)
    path = f"{python}/bin:{SHARED}/syncline/bin:/usr/bin:/bin"
    job = cluster.submit(USER, "job.sh", PATH=path)
    nodes = look(cluster, job, "nodes")

    def is_up():
        assert not cluster.is_gone(job), said_by(cluster, job)
        done = cluster.run(USER, nodes, check=False)
        return done.returncode == 0 and done.stdout.count("train.py") == len(NODES)

    try:
        wait_for(is_up, "the job", 60)
    except AssertionError as error:
        done = cluster.run(USER, nodes, check=False)
        said = f"{error}\n{done.stdout}{done.stderr}{said_by(cluster, job)}"
        raise AssertionError(said) from error
    return job


def look(cluster, job, command, *options):
    """The page's line for while the job runs, with another command of `syncline`."""
    line = code_blocks()[1].strip().replace("JOBID", job)
    assert "syncline why " in line, line
    line = line.replace("syncline why ", f"{SHARED}/syncline/bin/syncline {command} ")
    if command != "why":
        line = line.replace("--for 10s", " ".join(options))
    return line


def said_by(cluster, job):
    path = cluster.home / f"slurm-{job}.out"
    said = path.read_text(errors="replace") if path.exists() else "it wrote nothing"
    return f"{said}\n{cluster.logs()}"


def test_ranks_are_slurm_s_and_the_agents_end_with_the_job(cluster):
    shutil.copy(TICKER_BINDS["/opt/jobs/ticker.py"], cluster.home / "train.py")
    job = begin(cluster, HOST_TENSORFLOW)
    try:
        done = cluster.run(USER, look(cluster, job, "record", "--for", "2s", "--out", "run-1"))
    finally:
        cluster.cancel(job)
    assert "complete" in done.stdout, done.stdout
    nodes = load(cluster.home / "run-1" / "recording.json")["nodes"]
    assert [(node["name"], node["state"]) for node in nodes] == [
        (name, "complete") for name in NODES
    ]
    for rank, node in enumerate(nodes):
        (process,) = node["processes"]
        assert (process["rank"], process["job"]) == (rank, job), process
    for host in cluster.hosts:
        wait_for(lambda h=host: not of_user(h), f"the end of what {USER} runs on {host.name}")


def of_user(host):
    return host.run(["pgrep", "-a", "-u", USER], check=False).stdout


def test_why_answers_while_the_job_runs(cluster):
    if not os.path.isdir(TORCH):
        pytest.skip("no .venv-torch: scripts/setup --torch makes it")
    (cluster.home / "train.py").write_text(TRAINING)
    job = begin(cluster, HOST_TORCH)
    try:
        wait_for(lambda: "step 20:" in said_by(cluster, job), "the training", 60)
        done = cluster.run(USER, look(cluster, job, "why", "") + " --out run-2", timeout=90)
    finally:
        cluster.cancel(job)
    assert "LATE " in done.stdout and "CAUSE " in done.stdout, done.stdout
    why = f"{SHARED}/syncline/bin/syncline why run-2 --json"
    answer = json.loads(cluster.run(USER, why).stdout)
    first = answer["verdict"]["ranks"][0]
    assert (first["rank"], first["node"]) == (SLOW_RANK, NODES[SLOW_RANK]), answer["verdict"]
