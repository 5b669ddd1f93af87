# SPDX-License-Identifier: Apache-2.0
"""Tries what Syncline says of a GPU, on the machine's own, and checks it against PyTorch.

Usage: scripts/try-gpu [--python PYTHON] [--syncline SYNCLINE] [--keep DIR]

A program trains with two ranks on one GPU, twice:
  profile    PyTorch's profiler writes a file per rank; `syncline report` and `merge` read them
  recording  the same program under `syncline run --kineto`; `syncline record`, `report`, `merge`
  cuda       a program in CUDA C++ (nvcc builds it) under `syncline run --devices`
  cost       what a launch of CUDA takes: without Syncline, under `run --devices`, and recorded
  jax        a JAX program that serves its profiler; `syncline record --device-level 1`
  nccl       a rank on each of several GPUs, the last of which sleeps, under `syncline run --nccl`

What is checked: every kernel, copy and fill of the files is in the report; the operator of each is
the one that PyTorch itself names (External id); what a device did adds up to its steps; the rank
that was given more work computes longer, and the one that sleeps waits longer for launches; the
health of the recording's GPUs is what nvidia-smi saw meanwhile. Of the program in CUDA C++: every
kernel is under the task that launched it, none begins before its launch, and how long kernels take
is what CUDA's own events say. Of NCCL's collectives: all are known on all ranks, and `syncline why`
names the rank that sleeps, by how long the others say that they wait for it.

Exit status: 0 all checks hold, 1 one does not, 77 there is no GPU, or no PyTorch that sees it.
"""

import argparse
import collections
import glob
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from scripts.gpu_health import Witness
from scripts.gpu_programs import (
    COST_PROGRAM,
    CUDA_PROGRAM,
    JAX_PROGRAM,
    NCCL_PROGRAM,
    TORCH_PROGRAM,
)

STEPS = 20
SLEEP_MS = 10  # of rank 0, a step
EXTRA = 30  # products of two matrices more on rank 1, a step
NAME_BYTES = 512  # of a longer name Syncline keeps these
PARTS = ("profile", "recording", "cuda", "cost", "jax", "nccl")
NEEDS_NVCC = ("cuda", "cost")
WORK = ("kernel", "gpu_memcpy", "gpu_memset")


class Checks:
    def __init__(self):
        self.failed = 0

    def check(self, holds, what):
        print(("  holds   " if holds else "  FAILED  ") + what, flush=True)
        self.failed += not holds


def load(path):
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as file:
        return json.load(file)


def witnesses(path):
    """Of each kernel, copy and fill of a profile the operator that PyTorch's External id names."""
    events = [event for event in load(path)["traceEvents"] if event.get("ph") == "X"]
    operators = {
        event["args"]["External id"]: event["name"]
        for event in events
        if event.get("cat") == "cpu_op" and "External id" in event.get("args", {})
    }
    found = collections.defaultdict(list)
    for event in events:
        if event.get("cat") in WORK:
            arguments = event["args"]
            name = event["name"].encode()[:NAME_BYTES].decode(errors="ignore")
            key = name, str(arguments["correlation"]), str(arguments["stream"])
            found[key].append(operators.get(arguments.get("External id")))
    return found


class Trial:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder
        self.checks = Checks()
        self.program = os.path.join(folder, "train.py")
        with open(self.program, "w") as file:
            file.write(TORCH_PROGRAM)

    def syncline(self, *words, ok=(0,)):
        command = [self.arguments.syncline, *words]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in ok:
            sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
        return done.stdout

    def launch(self, out, steps, before=()):
        """The two ranks; `before` stands in front of the command."""
        os.makedirs(out, exist_ok=True)
        torchrun = "-m torch.distributed.run --standalone --nproc-per-node 2".split()
        words = [self.program, out, str(steps), str(SLEEP_MS / 1000), str(EXTRA)]
        command = [*before, self.arguments.python, *torchrun, *words]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def finish(self, program):
        _, said = program.communicate(timeout=120)
        if program.returncode != 0:
            sys.exit(f"the program ended with {program.returncode}:\n{said.decode()[-2000:]}")

    def check_operators(self, inputs, files):
        """`inputs`: what the events are asked of."""
        wanted = collections.Counter()
        known = [witnesses(path) for path in files]
        for found in known:
            for key, operators in found.items():
                wanted.update((key, operator) for operator in operators)
        seen = collections.Counter()
        for line in self.syncline("events", *inputs, "--format", "jsonl").splitlines():
            event = json.loads(line)
            fields = event["fields"]
            if "stream" in fields and "correlation" in fields:
                key = event["event"], fields["correlation"], fields["stream"]
                seen[key, fields.get("operator")] += 1
        count = sum(wanted.values())
        self.checks.check(
            sum(seen.values()) == count, f"all {count} kernels, copies and fills are there"
        )
        # Where a profile ends its operators, External id names none for what is inside of the last.
        named = {(key, operator): n for (key, operator), n in wanted.items() if operator}
        differ = sum((collections.Counter(named) - seen).values())
        self.checks.check(
            differ == 0,
            f"{sum(named.values())} have an operator by External id, and are in this one: all"
            f" but {differ}",
        )

    def check_devices(self, devices, step_count):
        by_rank = {}
        for device in devices:
            parts = ("computing_ns", "exposed_communication_ns", "exposed_copies_ns", "idle_ns")
            sums = all(
                sum(step[part] for part in parts) == step["end_ns"] - step["begin_ns"]
                for step in device["steps"]
            )
            self.checks.check(sums, f"{device['process']}: the four parts add up to each step")
            steps = len(device["steps"])
            self.checks.check(
                steps >= step_count, f"{device['process']}: {steps} steps, wanted {step_count}"
            )
            rank = 1 if "rank 1" in device["process"] else 0
            by_rank[rank] = {
                part: sum(step[part] for step in device["steps"]) / max(steps, 1) / 1e6
                for part in (*parts, "idle_before_launch_ns")
            }
        self.checks.check(set(by_rank) == {0, 1}, "two ranks used the device")
        busy = [by_rank[rank]["computing_ns"] for rank in (0, 1)]
        self.checks.check(
            busy[1] > 2 * busy[0],
            f"rank 1 has more to compute: {busy[1]:.2f} ms a step, rank 0 {busy[0]:.2f} ms",
        )
        wait = by_rank[0]["idle_before_launch_ns"]
        self.checks.check(
            wait > 0.9 * SLEEP_MS,
            f"the device waits for rank 0, which sleeps {SLEEP_MS} ms: {wait:.1f} ms a step",
        )

    def check_arrows(self, merged):
        """From each call to what it launched, forward in time."""
        arrows = collections.defaultdict(dict)
        for path in glob.glob(os.path.join(merged, "chrome", "**", "*.json"), recursive=True):
            for event in load(path)["traceEvents"]:
                if event.get("ph") in ("s", "f") and event.get("name") == "launch":
                    arrows[event["id"]][event["ph"]] = event["ts"]
        whole = [arrow for arrow in arrows.values() if len(arrow) == 2]
        back = sum(arrow["f"] < arrow["s"] for arrow in whole)
        self.checks.check(
            bool(whole) and back == 0, f"{len(whole)} arrows from calls to work, 0 back in time"
        )

    def profile(self):
        print("PyTorch's own profiles:")
        out = os.path.join(self.folder, "profile")
        self.finish(self.launch(out, STEPS))
        files = sorted(glob.glob(os.path.join(out, "rank*.json.gz")))
        report = json.loads(self.syncline("report", *files, "--json"))
        self.check_devices(report["devices"], STEPS - 1)
        self.check_operators(files, files)
        merged = os.path.join(self.folder, "merged")
        self.syncline("merge", *files, "--out", merged, "--format", "chrome")
        self.check_arrows(merged)

    def recording(self):
        print("A recording, with `syncline run --kineto`:")
        out = os.path.join(self.folder, "live")
        os.makedirs(out)
        before = (self.arguments.syncline, "run", "--kineto", "--job", "try-gpu", "--")
        program = self.launch(out, 0, before)
        run = os.path.join(self.folder, "run")
        try:
            for _ in range(600):
                if os.path.exists(os.path.join(out, "ready1")) or program.poll() is not None:
                    break
                time.sleep(0.1)
            with Witness() as witness:
                self.syncline("record", "--for", "3s", "--out", run)
        finally:
            open(os.path.join(out, "stop"), "w").close()
        self.finish(program)
        report = json.loads(self.syncline("report", run, "--json"))
        self.checks.check(report["complete"], "the recording is complete")
        self.check_devices(report["devices"], 10)
        print(self.syncline("report", run, "--section", "device-health"))
        witness.check(report, self.checks)
        files = glob.glob(os.path.join(run, "nodes", "*", "kineto", "*.kineto.json"))
        self.check_operators([run], files)
        self.syncline("merge", run, "--format", "chrome")
        self.check_arrows(os.path.join(run, "out"))


    def nccl(self):
        print("A rank on each GPU, with `syncline run --nccl`:")
        out, gpus = os.path.join(self.folder, "nccl"), gpu_count(self.arguments.python)
        os.makedirs(out)
        program = os.path.join(out, "work.py")
        with open(program, "w") as file:
            file.write(NCCL_PROGRAM)
        torchrun = f"-m torch.distributed.run --standalone --nproc-per-node {gpus}".split()
        words = [self.arguments.syncline, "run", "--nccl", "--job", "nccl", "--"]
        words += [self.arguments.python, *torchrun, program, out, str(SLEEP_MS / 1000)]
        running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        run = os.path.join(self.folder, "run-nccl")
        try:
            for _ in range(1200):
                if os.path.exists(os.path.join(out, "ready0")) or running.poll() is not None:
                    break
                time.sleep(0.1)
            self.syncline("record", "--for", "5s", "--out", run, ok=(0, 3))
        finally:
            open(os.path.join(out, "stop"), "w").close()
        self.finish(running)
        print(self.syncline("report", run, "--section", "nccl", ok=(0, 3)))
        print(self.syncline("why", run, ok=(0, 3)))
        answer = json.loads(self.syncline("why", run, "--json", ok=(0, 3)))
        names = [rank["rank"] for rank in answer["verdict"]["ranks"]]
        self.checks.check(
            answer.get("kind") == "collectives" and names == [gpus - 1],
            f"late is rank {gpus - 1}: {answer['kind']} says {names} {answer['message']}",
        )
        found = answer.get("collectives", {"judged": 0, "unmatched": -1})
        self.checks.check(
            found["judged"] > 100 and found["unmatched"] == 0,
            f"{found['judged']} collectives on all ranks, {found['unmatched']} not known on all",
        )
        for rank in range(gpus):
            with open(os.path.join(out, f"waited{rank}")) as file:
                print(f"  rank {rank} took {float(file.read()) * 1e3:.2f} ms for an all-reduce")

    def cuda(self):
        print("A program in CUDA C++, with `syncline run --devices`:")
        out, program = self.build("cuda", CUDA_PROGRAM)
        words = [self.arguments.syncline, "run", "--devices", "--job", "cuda", "--", program, out]
        running = self.running(words, out)
        run = os.path.join(self.folder, "run-cuda")
        try:
            self.syncline("record", "--for", "3s", "--out", run, ok=(0, 3))
        finally:
            open(os.path.join(out, "stop"), "w").close()
        self.finish(running)
        with open(os.path.join(out, "truth")) as file:
            event_ms, error = file.read().split(maxsplit=1)
        self.checks.check(error.strip() == "no error", f"the program says: {error.strip()}")
        print(self.syncline("report", run, ok=(0, 3)))
        self.check_cuda(run, float(event_ms))

    def build(self, name, text):
        out = os.path.join(self.folder, name)
        os.makedirs(out)
        source, program = os.path.join(out, "work.cu"), os.path.join(out, "work")
        with open(source, "w") as file:
            file.write(text)
        command = ["nvcc", "-O2", "-I", self.arguments.include, "-o", program, source]
        built = subprocess.run(command, capture_output=True, text=True)
        if built.returncode != 0:
            sys.exit(f"nvcc ended with {built.returncode}:\n{built.stderr}")
        return out, program

    def running(self, words, out):
        """The program, when it is ready."""
        for name in ("ready", "go", "stop"):
            if os.path.exists(os.path.join(out, name)):
                os.remove(os.path.join(out, name))
        program = subprocess.Popen(words, stderr=subprocess.PIPE)
        for _ in range(600):
            if os.path.exists(os.path.join(out, "ready")) or program.poll() is not None:
                break
            time.sleep(0.1)
        return program

    def cost(self):
        print("What a launch takes:")
        out, program = self.build("cost", COST_PROGRAM)
        devices = [self.arguments.syncline, "run", "--devices", "--"]
        for name, words in (("plain", []), ("idle", devices), ("recorded", devices)):
            medians = []
            for number in range(5):
                running = self.running([*words, program, out], out)
                recording = None
                if name == "recorded":
                    run = os.path.join(self.folder, f"run-cost{number}")
                    command = [self.arguments.syncline, "record", "--for", "2s", "--out", run]
                    recording = subprocess.Popen(command, stdout=subprocess.DEVNULL)
                    time.sleep(1.5)
                open(os.path.join(out, "go"), "w").close()
                time.sleep(1)
                os.remove(os.path.join(out, "go"))
                open(os.path.join(out, "stop"), "w").close()
                self.finish(running)
                if recording is not None:
                    recording.wait()
                with open(os.path.join(out, "truth")) as file:
                    medians.append(float(file.read()))
            medians.sort()
            print(f"  {name:9} {medians[2]:.0f} ns ({medians[0]:.0f} to {medians[-1]:.0f})")

    def jax(self):
        print("A JAX program, with `syncline record --device-level 1`:")
        out = os.path.join(self.folder, "jax")
        os.makedirs(out)
        source = os.path.join(out, "train.py")
        with open(source, "w") as file:
            file.write(JAX_PROGRAM)
        running = self.running([self.arguments.python, source, out], out)
        run = os.path.join(self.folder, "run-jax")
        try:
            self.syncline("record", "--for", "3s", "--device-level", "1", "--out", run, ok=(0, 3))
        finally:
            open(os.path.join(out, "stop"), "w").close()
        self.finish(running)
        report = json.loads(self.syncline("report", run, "--json", ok=(0, 3)))
        print(self.syncline("report", run, "--section", "devices", ok=(0, 3)))
        steps = [len(device["steps"]) for device in report["devices"]]
        self.checks.check(len(steps) == 1 and steps[0] > 100, f"steps of a device: {steps}")
        (device,) = report["devices"] or [{"without_launch": -1, "work": 0}]
        self.checks.check(
            device["without_launch"] == 0 and device["work"] > 300,
            f"{device['work']} kernels, {device['without_launch']} without a launch",
        )

    def check_cuda(self, run, event_ms):
        launched, work = {}, []
        lines = self.syncline("events", run, "--format", "jsonl", ok=(0, 3)).splitlines()
        for event in map(json.loads, lines):
            fields = event["fields"]
            if event["event"] == "syncline_device:launch":
                launched[fields["launch"]] = event["clock_ns"]
            elif event["event"] == "syncline_device:work":
                work.append(fields)
        self.checks.check(len(work) > 500, f"{len(work)} kernels, copies and fills were recorded")
        without = sum(fields["launch"] not in launched for fields in work)
        self.checks.check(without == 0, f"all but {without} have their launch")
        early = sum(fields["begin"] < launched.get(fields["launch"], 0) for fields in work)
        self.checks.check(early == 0, f"all but {early} begin after their launch")
        kinds = collections.defaultdict(list)
        for name, begin, end, task in device_spans(run, self.syncline):
            kinds[name].append((end - begin, task))
        wanted = {"long_kernel(long long)": "long", "short_kernel(float*)": "short"}
        wanted |= {"copy host to device": "copy in", "fill": "copy in"}
        for name, task in wanted.items():
            found = kinds.get(name, [])
            right = sum(one == task for _, one in found)
            self.checks.check(
                bool(found) and right == len(found),
                f"{len(found)} of {name}: {right} under the task {task!r}",
            )
        lengths = sorted(length for length, _ in kinds.get("long_kernel(long long)", [(0, "")]))
        median_ms = lengths[len(lengths) // 2] / 1e6
        self.checks.check(
            0.8 * event_ms < median_ms <= 1.02 * event_ms,
            f"long_kernel takes {median_ms:.4f} ms, by CUDA's events around it {event_ms:.4f} ms",
        )


def has_jax(python):
    look = "import jax; assert jax.default_backend() == 'gpu'"
    return subprocess.run([python, "-c", look], capture_output=True).returncode == 0


def gpu_count(python):
    look = "import torch; print(torch.cuda.device_count())"
    return int(subprocess.run([python, "-c", look], capture_output=True, text=True).stdout)


def device_spans(run, syncline):
    """(name, begin, end, task) of each span on a device, by the timeline."""
    out = os.path.join(run, "..", "merged-cuda")
    syncline("merge", run, "--out", out, "--format", "chrome", ok=(0, 3))
    for path in glob.glob(os.path.join(out, "chrome", "**", "*.json"), recursive=True):
        for event in load(path)["traceEvents"]:
            if event.get("ph") == "X" and event.get("cat", "").startswith("device "):
                begin, length = event["ts"] * 1000, event["dur"] * 1000
                yield event["name"], begin, begin + length, event["args"].get("operator")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--python", default="python3", help="of a PyTorch that sees the GPU")
    parser.add_argument("--syncline", default=shutil.which("syncline", path="build/bin"))
    parser.add_argument("--include", help="where syncline/annotate.h is (default: as installed)")
    parser.add_argument("--only", choices=PARTS, action="append", help="a part (default: all)")
    parser.add_argument("--keep", metavar="DIR", help="where all files stay")
    arguments = parser.parse_args()
    arguments.syncline = arguments.syncline or shutil.which("syncline")
    if not arguments.syncline:
        sys.exit("there is no syncline: build it, or name it with --syncline")
    if not arguments.include:
        prefix = os.path.dirname(os.path.dirname(os.path.realpath(arguments.syncline)))
        places = (os.path.join(prefix, "include"), "instrumentation/annotate")
        arguments.include = next((one for one in places if os.path.isdir(one + "/syncline")), ".")
    look = "import torch; assert torch.cuda.is_available(); print(torch.__version__, end=' on ')"
    look += "; print(torch.cuda.get_device_name())"
    found = subprocess.run([arguments.python, "-c", look], capture_output=True, text=True)
    if found.returncode != 0:
        print("not tried: no PyTorch here sees a GPU (--python names another interpreter)")
        sys.exit(77)
    print("PyTorch", found.stdout.strip())
    folder = arguments.keep or tempfile.mkdtemp(prefix="syncline-try-gpu-")
    os.makedirs(folder, exist_ok=True)
    trial = Trial(arguments, folder)
    try:
        for part in arguments.only or PARTS:
            if part in NEEDS_NVCC and shutil.which("nvcc") is None:
                print(f"{part}: not tried, there is no nvcc")
                continue
            if part == "jax" and not has_jax(arguments.python):
                print("jax: not tried, there is no JAX that sees the GPU")
                continue
            if part == "nccl" and gpu_count(arguments.python) < 2:
                print("nccl: not tried, it needs two GPUs")
                continue
            getattr(trial, part)()
    finally:
        if not arguments.keep:
            shutil.rmtree(folder)
    print("all checks hold" if not trial.checks.failed else f"{trial.checks.failed} checks FAILED")
    sys.exit(1 if trial.checks.failed else 0)


if __name__ == "__main__":
    main()
