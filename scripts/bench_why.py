# SPDX-License-Identifier: Apache-2.0
"""What `syncline why` takes of jobs of many ranks, in one build or in several side by side.

Usage: scripts/bench-why [--ranks N,N,...] [--rounds N] [--detail LEVEL] [--base DIR] BUILD...

One real recording of three ranks on three simulated hosts (examples/pytorch_fault, rank 2 with a
slow loader) is made, or given with --base. Larger ones are made of it: rank 0 is the first host's,
the late one the third's, and all others are copies of the second's, each on a node of its own with
its own clock. Only what says which rank of how many it is differs. Recordings lie in --out, which
takes 8 MB a rank, and are removed.

For each number of ranks and each build: seconds by the clock, seconds of the processor, ns of them
an event, and the most memory; medians of the rounds. Exits with 1 if an answer does not name the
late rank, and the loader as the cause. Needs root (simulated hosts) for the recording.
"""

import argparse
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

from scripts import made_clocks
from scripts.bench_why_job import RANK, RANKS, SIZE
from scripts.made_clocks import copied, load, name, store
from tests.integration.fleet import Fleet
from tests.testbed import HostSpec, Testbed, faults
from tests.testbed.machine import REPOSITORY

HOSTS = ("first", "other", "late")
TORCH = os.path.join(REPOSITORY, ".venv-torch")
PYTHON = "/opt/torch/bin/python"
JOB = "/opt/bench"
SECONDS = 12
DOSE_MS = 60
WARM_LINES = 4
START_LIMIT_S = 90
RANK_IN_BLOCK = 0x38  # instrumentation/abi/control_block.h: rank and world_size, 4 bytes each


# ---- the recording that the others are made of


def start_rank(rank, host, bed, work):
    environment = [
        *(f"RANK={rank}", f"WORLD_SIZE={len(HOSTS)}", f"MASTER_ADDR={bed.hosts[0].address}"),
        *("MASTER_PORT=2400", "GLOO_SOCKET_IFNAME=eth0"),
    ]
    train = [f"{faults.HOST_EXAMPLE}/train.py", "--report-every", "5"]
    train += ["--fault", "loader", "--fault-rank", "2", "--dose", str(DOSE_MS)]
    run = ["/opt/syncline/bin/syncline", "run", "--job", "many", "--"]
    with open(f"{work}/rank{rank}.log", "wb") as log:
        return host.popen(
            ["env", *environment, *run, PYTHON, f"{JOB}/bench_why_job.py", *train],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def await_lines(log):
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        with open(log, encoding="utf-8", errors="replace") as file:
            text = file.read()
        if text.count(" ms a step") >= WARM_LINES:
            return
        if time.monotonic() > deadline:
            sys.exit(f"bench-why: the job does not train:\n{text[-1500:]}")
        time.sleep(0.2)


def record(work, detail):
    """A recording of three ranks; its directory."""
    binds = {"/opt/torch": TORCH, JOB: os.path.join(REPOSITORY, "scripts"), **faults.BINDS}
    with Testbed([HostSpec(name) for name in HOSTS], seed=5, binds=binds) as bed:
        fleet = Fleet(bed, work)
        fleet.up()
        processes = [start_rank(rank, host, bed, work) for rank, host in enumerate(bed.hosts)]
        try:
            await_lines(f"{work}/rank0.log")
            return fleet.record("base", SECONDS, "--detail", detail)
        finally:
            for process in processes:
                process.kill()
                process.wait()
            fleet.fab("down", check=False)


# ---- larger ones


class Enlarged:
    """A recording of `ranks` ranks below `out`, made of the one at `base`."""

    def __init__(self, base, out, ranks):
        self._base, self._out, self._ranks = base, out, ranks
        self.late = ranks * 3 // 4 + 1
        self._models = load(base, "clocks", "models.json")
        self._place = {name: place for place, name in enumerate(self._models["nodes"])}

    def write(self):
        os.makedirs(os.path.join(self._out, "clocks"))
        recording = load(self._base, "recording.json")
        nodes = {node["name"]: node for node in recording["nodes"]}
        sources, names = zip(*((self._source(r), name(r)) for r in range(self._ranks)))
        made_clocks.write(self._base, self._out, HOSTS[0], sources, names)
        recording["reference"]["node"] = name(0)
        recording["nodes"] = []
        for rank in range(self._ranks):
            self._write_node(rank)
            node = copied(nodes[self._source(rank)])
            node["name"] = name(rank)
            node["address"] = f"10.1.{rank // 256}.{rank % 256}:7611"
            for process in node["processes"]:
                process["rank"], process["world_size"] = rank, self._ranks
            recording["nodes"].append(node)
        store(recording, self._out, "recording.json")
        return sum(p["events"] for node in recording["nodes"] for p in node["processes"])

    def _source(self, rank):
        first, other, late = HOSTS
        return first if rank == 0 else late if rank == self.late else other

    def _write_node(self, rank):
        source = self._source(rank)
        node = os.path.join(self._out, "nodes", name(rank))
        shutil.copytree(os.path.join(self._base, "nodes", source), node)
        # All nodes have one host's addresses now: whose connection is whose is not known.
        os.remove(os.path.join(node, "evidence", "connections.txt"))
        place = self._place[source]
        group = struct.pack("<iI", RANK + place, SIZE)
        ranks = RANKS.encode()
        more = f"0-{str(self._ranks - 1).zfill(len(RANKS) - 2)}".encode()
        changed = 0
        for folder, _, files in os.walk(node):
            for path in (os.path.join(folder, name) for name in files):
                if "/trace/" not in path and "/processes/" not in path:
                    continue
                with open(path, "rb") as file:
                    data = file.read()
                changed += data.count(group)
                data = data.replace(group, struct.pack("<iI", rank, self._ranks))
                data = data.replace(ranks, more)
                if path.endswith(".block"):
                    data = self._numbered(data, place, rank)
                with open(path, "wb") as file:
                    file.write(data)
        if changed == 0:
            sys.exit(f"bench-why: {self._base}: no process group of bench_why_job.py's")

    def _numbered(self, block, place, rank):
        if struct.unpack_from("<ii", block, RANK_IN_BLOCK) != (place, len(HOSTS)):
            sys.exit("bench-why: the control block does not have the rank where it was")
        block = bytearray(block)
        struct.pack_into("<ii", block, RANK_IN_BLOCK, rank, self._ranks)
        return bytes(block)


# ---- what is measured


def asked(build, run):
    """(answer, seconds, seconds of the processor, MB) of one `syncline why`."""
    program = os.path.join(os.path.abspath(build), "bin", "syncline")
    with tempfile.TemporaryFile("w+") as answer:
        begin = time.perf_counter()
        process = subprocess.Popen(
            [program, "why", run, "--json"], stdout=answer, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        answer.seek(0)
        try:
            told = json.load(answer)
        except ValueError:
            sys.exit(f"bench-why: {program} why {run}: exit {process.returncode}, no answer")
    return told, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def names(told, late):
    """Whether the answer names the rank that is late, and why."""
    ranks = told.get("verdict", {}).get("ranks", []) if told["status"] == "answered" else []
    named = [(rank["rank"], rank["causes"][0]["cause"]) for rank in ranks if rank["causes"]]
    return named == [(late, "input")]


def compare(builds, run, made, events, rounds):
    right = True
    taken = {build: [] for build in builds}
    for _ in range(rounds):
        for build in builds:
            told, *figures = asked(build, run)
            right = names(told, made.late) and right
            taken[build].append(figures)
    for build, rows in taken.items():
        seconds, processor_s, megabytes = map(statistics.median, zip(*rows))
        print(
            f"  {build:12} {seconds:7.1f} s, {processor_s:7.1f} s of the processor "
            f"({1e9 * processor_s / events:4.0f} ns an event), {megabytes:7.0f} MB",
            flush=True,
        )
    if not right:
        print(f"  WRONG: rank {made.late} and its loader are not named", flush=True)
    return right


def parse():
    parser = argparse.ArgumentParser(
        prog="scripts/bench-why",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("builds", nargs="*", default=["build"], help="build directories")
    parser.add_argument("--ranks", default="64,256,1024", help="default 64,256,1024")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--detail", default="full", help="of the recording: full, normal or low")
    parser.add_argument("--base", help="a recording that this script made and kept (--keep-base)")
    parser.add_argument("--keep-base", metavar="DIR", help="keep the recording of three ranks here")
    parser.add_argument("--out", help="where recordings lie meanwhile (default: a temporary one)")
    options = parser.parse_args()
    options.ranks = [int(number) for number in options.ranks.split(",")]
    if not all(3 <= number <= 1024 for number in options.ranks):
        parser.error("--ranks: from 3 to 1024")
    return options


def main():
    options = parse()
    right = True
    with tempfile.TemporaryDirectory(prefix="syncline-ranks-", dir=options.out) as work:
        base = options.base or record(work, options.detail)
        if options.keep_base:
            shutil.copytree(base, options.keep_base)
        for ranks in options.ranks:
            run = os.path.join(work, f"{ranks}-ranks")
            made = Enlarged(base, run, ranks)
            events = made.write()
            print(f"{ranks} ranks, {events / 1e6:.1f} M events", flush=True)
            right = compare(options.builds, run, made, events, options.rounds) and right
            shutil.rmtree(run)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
