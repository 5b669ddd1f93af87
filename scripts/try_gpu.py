# SPDX-License-Identifier: Apache-2.0
"""Tries what Syncline says of a GPU, on the machine's own, and checks it against PyTorch.

Usage: scripts/try-gpu [--python PYTHON] [--syncline SYNCLINE] [--keep DIR]

A program trains with two ranks on one GPU, twice:
  profile    PyTorch's profiler writes a file per rank; `syncline report` and `merge` read them
  recording  the same program under `syncline run --kineto`; `syncline record`, `report`, `merge`
  cuda       a program in CUDA C++ (nvcc builds it) under `syncline run --devices`

What is checked: every kernel, copy and fill of the files is in the report; the operator of each is
the one that PyTorch itself names (External id); what a device did adds up to its steps; the rank
that was given more work computes longer, and the one that sleeps waits longer for launches. Of the
program in CUDA C++: every kernel is under the task that launched it, none begins before its launch,
and how long kernels take is what CUDA's own events say.

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

STEPS = 20
SLEEP_MS = 10  # of rank 0, a step
EXTRA = 30  # products of two matrices more on rank 1, a step
NAME_BYTES = 512  # of a longer name Syncline keeps these
PARTS = ("profile", "recording", "cuda")
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
PROGRAM = """
import os, sys, time, torch
import torch.distributed as dist
out, steps, sleep_s, extra = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
torch.cuda.set_device(0)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 512))
model = torch.nn.parallel.DistributedDataParallel(model.cuda())
optimizer = torch.optim.SGD(model.parameters(), 0.01)
batch, more = torch.randn(64, 512), torch.randn(2048, 2048, device="cuda")
def step():
    if rank == 0: time.sleep(sleep_s)
    for _ in range(extra if rank == 1 else 0): torch.mm(more, more)
    model(batch.cuda()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
def agreed(done):
    flag = torch.tensor([float(done)])
    dist.all_reduce(flag)
    return flag.item() > 0
for _ in range(5): step()
if steps:
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    def ready(profile): profile.export_chrome_trace(os.path.join(out, f"rank{rank}.json.gz"))
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=steps)
    with torch.profiler.profile(activities=kinds, schedule=schedule, on_trace_ready=ready) as p:
        for _ in range(steps + 3):
            step()
            p.step()
else:
    open(os.path.join(out, f"ready{rank}"), "w").close()
    while not agreed(os.path.exists(os.path.join(out, "stop"))):
        for _ in range(10): step()
dist.destroy_process_group()
"""


CUDA_PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <string>
#include <syncline/annotate.h>
#include <thread>
#include <unistd.h>
__global__ void long_kernel(long long n) { long long t = clock64(); while (clock64() - t < n) {} }
__global__ void short_kernel(float* p) { p[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
static std::string out;
static bool is(const char* name) { return access((out + "/" + name).c_str(), F_OK) == 0; }
static double event_ms;  // of long_kernel, the mean
static void work(bool timed) {
  float *d, *h = new float[1 << 20]; cudaStream_t s; cudaEvent_t a, b;
  cudaMalloc(&d, 4 << 20); cudaStreamCreate(&s); cudaEventCreate(&a); cudaEventCreate(&b);
  double sum = 0; int count = 0;
  for (unsigned long n = 0; !is("stop"); ++n) {
    syncline::Step step(n);
    { syncline::Phase copy("copy in");
      cudaMemcpyAsync(d, h, 4 << 20, cudaMemcpyHostToDevice, s);
      cudaMemsetAsync(d, 0, 1 << 20, s); }
    cudaStreamSynchronize(s);
    { syncline::Phase phase("long");
      cudaEventRecord(a, s); long_kernel<<<1, 1, 0, s>>>(2000000); cudaEventRecord(b, s); }
    { syncline::Phase phase("short"); short_kernel<<<4096, 256, 0, s>>>(d); }
    cudaStreamSynchronize(s);
    float ms = 0; cudaEventElapsedTime(&ms, a, b); if (n > 10) { sum += ms; ++count; }
    usleep(1000);
  }
  if (timed) event_ms = sum / count;
}
int main(int, char** arguments) {
  out = arguments[1];
  cudaFree(nullptr);
  std::thread one(work, true), two(work, false);
  fclose(fopen((out + "/ready").c_str(), "w"));
  one.join(); two.join();
  FILE* truth = fopen((out + "/truth").c_str(), "w");
  fprintf(truth, "%.6f %s\n", event_ms, cudaGetErrorString(cudaGetLastError()));
  fclose(truth);
  return 0;
}
"""


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
            file.write(PROGRAM)

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
            self.syncline("record", "--for", "3s", "--out", run)
        finally:
            open(os.path.join(out, "stop"), "w").close()
        self.finish(program)
        report = json.loads(self.syncline("report", run, "--json"))
        self.checks.check(report["complete"], "the recording is complete")
        self.check_devices(report["devices"], 10)
        files = glob.glob(os.path.join(run, "nodes", "*", "kineto", "*.kineto.json"))
        self.check_operators([run], files)
        self.syncline("merge", run, "--format", "chrome")
        self.check_arrows(os.path.join(run, "out"))


    def cuda(self):
        print("A program in CUDA C++, with `syncline run --devices`:")
        out = os.path.join(self.folder, "cuda")
        os.makedirs(out)
        source, program = os.path.join(out, "work.cu"), os.path.join(out, "work")
        with open(source, "w") as file:
            file.write(CUDA_PROGRAM)
        command = ["nvcc", "-O2", "-I", self.arguments.include, "-o", program, source]
        built = subprocess.run(command, capture_output=True, text=True)
        if built.returncode != 0:
            sys.exit(f"nvcc ended with {built.returncode}:\n{built.stderr}")
        words = [self.arguments.syncline, "run", "--devices", "--job", "cuda", "--", program, out]
        running = subprocess.Popen(words, stderr=subprocess.PIPE)
        run = os.path.join(self.folder, "run-cuda")
        try:
            for _ in range(300):
                if os.path.exists(os.path.join(out, "ready")) or running.poll() is not None:
                    break
                time.sleep(0.1)
            self.syncline("record", "--for", "3s", "--out", run, ok=(0, 3))
        finally:
            open(os.path.join(out, "stop"), "w").close()
        self.finish(running)
        with open(os.path.join(out, "truth")) as file:
            event_ms, error = file.read().split(maxsplit=1)
        self.checks.check(error.strip() == "no error", f"the program says: {error.strip()}")
        print(self.syncline("report", run, ok=(0, 3)))
        self.check_cuda(run, float(event_ms))

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
            if part == "cuda" and shutil.which("nvcc") is None:
                print("A program in CUDA C++: not tried, there is no nvcc")
                continue
            getattr(trial, part)()
    finally:
        if not arguments.keep:
            shutil.rmtree(folder)
    print("all checks hold" if not trial.checks.failed else f"{trial.checks.failed} checks FAILED")
    sys.exit(1 if trial.checks.failed else 0)


if __name__ == "__main__":
    main()
