# SPDX-License-Identifier: Apache-2.0
"""device_jobs.py SYNCLINE [--jobs N] [--seed S] [--base FILE]: what `syncline why` says of profiles
of jobs whose truth is known.

Each job is made from a real profile of one rank: its kernels, their lengths and the times between
its launches, drawn for each rank and step from the real steps, so that the noise is real. What no
profile at hand has is simulated: 2 to 16 ranks, and kernels of collectives, which end on all ranks
when the last rank has begun them, and some time more. A third of the jobs is healthy. In the others
one rank has a fault of 5 to 40 % of the step: its kernels take longer, it has more of them, its
program waits for its input, or launches late. No clock is right: each rank's is off by up to 1 s.

Prints what was found of what, and exits with 1 if anything was wrong: a rank, or a cause, is named
that was not made. "Undecided", and nobody named where a fault costs the job more than 3 %, are
counted, and are not wrong."""

import argparse
import collections
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile

FAULTS = ("slow", "work", "input", "host")
LOADING = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
# What `why` calls them: the part, and how the kernels differ.
CAUSES = {"slow": ("computing", "slower"), "work": ("computing", "other_work"),
          "input": ("input", None), "host": ("launch", None)}
MISSED_FROM = 0.03  # a fault that costs less may go unnamed: 2 % of the step is the limit
WAIT_US = 10.0  # from a launch to the begin of its kernel on an idle device


def load_steps(path):
    """The real profile's steps: of each a list of (kernel, grid, block, length, gap), the last two
    in µs: `gap` is the program's time since the launch before it, less that of a launch. Copies are
    left out: some are Gloo's."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        events = [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]
    launches = {event["args"]["correlation"]: event for event in events
                if event.get("cat") in ("cuda_runtime", "cuda_driver") and
                "correlation" in event.get("args", {})}
    marks = [event for event in events if event["name"].startswith("ProfilerStep#") and
             event["cat"] == "user_annotation"]
    steps = []
    for mark in sorted(marks, key=lambda event: event["ts"]):
        step = []
        before = mark["ts"]
        kernels = [event for event in events if event.get("cat") == "kernel" and
                   event["args"]["correlation"] in launches]
        kernels.sort(key=lambda event: launches[event["args"]["correlation"]]["ts"])
        for kernel in kernels:
            launch = launches[kernel["args"]["correlation"]]
            if not mark["ts"] <= launch["ts"] < mark["ts"] + mark["dur"]:
                continue
            # A gap of more than 1 ms is a wait for the device, or for Gloo: jobs made here have
            # their own.
            gap = max(0.0, min(launch["ts"] - before, 1000.0) - 5)
            arguments = kernel["args"]
            step.append((kernel["name"], arguments.get("grid"), arguments.get("block"),
                         kernel["dur"], gap))
            before = launch["ts"]
        steps.append(step)
    # The first is often unlike the rest, the last is cut.
    usual = collections.Counter(len(step) for step in steps).most_common(1)[0][0]
    return [step for step in steps if len(step) == usual]


class Rank:
    """One rank's program and device; times in µs of the true clock."""

    def __init__(self, index, job):
        self.index = index
        self.job = job
        self.program = job.random.uniform(0, 200)
        self.device = 0.0  # free from then on
        self.link = 0.0  # of the queue of collectives
        self.events = []
        self.correlation = 0
        self.shift = job.random.uniform(-1e6, 1e6)

    def add(self, category, name, begin, end, tid, args):
        self.events.append({"ph": "X", "cat": category, "name": name,
                            "pid": 0 if category == "kernel" else 100, "tid": tid,
                            "ts": round(begin + self.shift + 1.7e15, 3),
                            "dur": round(end - begin, 3), "args": args})

    def launch(self, name):
        """When the call began; the program goes on behind it."""
        self.correlation += 1
        begin = self.program + 1
        self.add("cpu_op", name, begin - 1, begin + 4, 100,
                 {"External id": self.correlation})
        self.add("cuda_runtime", "cudaLaunchKernel", begin, begin + 3, 100,
                 {"correlation": self.correlation, "External id": self.correlation})
        self.program += 5
        return begin

    def kernel(self, kernel, begin, length, stream=7):
        name, grid, block = kernel
        self.add("kernel", name, begin, begin + length, stream,
                 {"device": 0, "stream": stream, "correlation": self.correlation, "grid": grid,
                  "block": block})


class Job:
    def __init__(self, seed, base):
        self.seed = seed
        self.random = random.Random(seed)
        self.base = base
        self.ranks = self.random.choice((2, 2, 3, 4, 8, 16))
        self.steps = self.random.choice((6, 8, 12, 20, 40, 70))
        self.buckets = self.random.randint(1, 4)
        self.waits_for_device = self.random.random() < 0.5  # reads the loss at each step's end
        self.transfer = self.random.uniform(100, 1500)
        self.scale = self.random.choice((1, 3, 10))  # of the kernels: host-bound, or device-bound
        self.wanted = None if self.random.random() < 1 / 3 else self.random.choice(FAULTS)
        self.fault = None  # of what is being made
        self.culprit = self.random.randrange(self.ranks)
        self.dose = self.random.choice((0.05, 0.1, 0.2, 0.4))
        self.cost = 0.0  # of the fault: by how much of its length the job takes longer
        device = sum(kernel[3] for kernel in base[0]) * self.scale
        program = sum(kernel[4] for kernel in base[0])
        self.step_us = max(device, program) + self.transfer

    def run(self, fault):
        """The ranks, after all steps."""
        self.random.seed(self.seed)
        self.fault = fault
        ranks = [Rank(index, self) for index in range(self.ranks)]
        for step in range(self.steps + 1):
            self.make_step(step, ranks)
        return ranks

    def make(self, folder):
        """Writes a file for each rank."""
        healthy = max(rank.device for rank in self.run(None))
        fault = self.wanted
        ranks = self.run(fault)
        # What runs ahead of its device may be late without harm.
        self.cost = max(rank.device for rank in ranks) / healthy - 1
        paths = []
        for rank in ranks:
            path = os.path.join(folder, f"rank{rank.index}.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"distributedInfo": {"backend": "nccl", "rank": rank.index,
                                               "world_size": self.ranks},
                           "traceEvents": [{"ph": "M", "name": "process_labels", "pid": 0,
                                            "args": {"labels": "GPU 0"}}] + rank.events}, file)
            paths.append(path)
        return paths

    def make_step(self, step, ranks):
        plans = []
        for rank in ranks:
            kernels = [list(kernel) for kernel in self.random.choice(self.base)]
            plans.append(kernels)
            rank.begin = rank.program
            ill = self.fault if rank.index == self.culprit else None
            if ill == "input":
                wait = self.dose * self.step_us
                rank.add("user_annotation", LOADING, rank.program, rank.program + wait, 100, {})
                rank.program += wait
            if ill == "host":
                kernels[len(kernels) // 2][4] += self.dose * self.step_us
            if ill == "slow":
                for kernel in kernels:
                    kernel[3] *= 1 + self.dose
            if ill == "work":
                longest = max(kernels, key=lambda kernel: kernel[3])
                more = self.dose * sum(kernel[3] for kernel in kernels)
                kernels[len(kernels) // 2:len(kernels) // 2] = [
                    ["work_of_longer_batches"] + longest[1:3] + [more, 5.0]]
        # A bucket is complete in the second half of the step; its collective begins on each rank
        # when the kernels before it are done, and ends on all of them together.
        done = [[] for _ in ranks]
        for rank, kernels in zip(ranks, plans):
            cuts = {len(kernels) * (self.buckets + bucket + 1) // (2 * self.buckets) - 1: bucket
                    for bucket in range(self.buckets)}
            for number, (name, grid, block, length, gap) in enumerate(kernels):
                rank.program += gap
                launched = rank.launch("aten::op")
                begin = max(launched + WAIT_US, rank.device)
                rank.device = begin + length * self.scale
                rank.kernel((name, grid, block), begin, length * self.scale)
                if number in cuts:
                    launched = rank.launch("c10d::allreduce_")
                    begin = max(launched + WAIT_US, rank.device)
                    done[rank.index].append((begin, rank.correlation))
        for bucket in range(self.buckets):
            begins = [max(done[rank.index][bucket][0], rank.link) for rank in ranks]
            end = max(begins) + self.transfer / self.buckets
            for rank, begin in zip(ranks, begins):
                rank.add("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin, end, 20,
                         {"device": 0, "stream": 20, "correlation": done[rank.index][bucket][1],
                          "grid": [24, 1, 1], "block": [544, 1, 1], "Collective name": "allreduce"})
                rank.link = end
        for rank in ranks:
            rank.device = max(rank.device, rank.link)  # the optimizer waits for all buckets
            launched = rank.launch("Optimizer")
            rank.device = max(launched + WAIT_US, rank.device) + 50
            rank.kernel(("adam", [8, 1, 1], [256, 1, 1]), rank.device - 50, 50)
            if self.waits_for_device or rank.device - rank.program > 2 * self.step_us:
                begin = rank.program
                rank.program = max(rank.program, rank.device) + 20
                rank.add("cuda_runtime", "cudaDeviceSynchronize", begin, rank.program, 100, {})
            rank.add("user_annotation", f"ProfilerStep#{step}", rank.begin, rank.program, 100, {})
            rank.program += 5


def judge(job, answer):
    """right, missed, wrong, or undecided; and what was said."""
    if answer["status"] != "answered":
        return "wrong", answer["message"] or answer["status"]
    named = [finding["rank"] for finding in answer["verdict"]["ranks"]]
    kind = answer["verdict"]["kind"]
    if not named:
        if job.fault is None:
            return "right" if kind == "nobody" else "undecided", kind
        if kind == "nobody":
            return "missed" if job.cost > MISSED_FROM else "right", kind
        return "undecided", kind
    said = f"rank {named}, " + ", ".join(
        f"{cause['cause']} {(cause['work'] or {}).get('kind', '')}"
        for cause in answer["verdict"]["ranks"][0]["causes"])
    if job.fault is None or named != [job.culprit]:
        return "wrong", said
    causes = answer["verdict"]["ranks"][0]["causes"]
    if not causes:
        return "without cause", said
    first = (causes[0]["cause"], (causes[0]["work"] or {}).get("kind"))
    return "right" if first == CAUSES[job.fault] else "wrong", said


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("syncline")
    parser.add_argument("--base", required=True,
                        help="a profile of PyTorch's with kernels, rankN.json.gz")
    parser.add_argument("--jobs", type=int, default=30)
    parser.add_argument("--seed", type=int, help="of the first job (default: drawn)")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.randrange(10**6)
    print(f"seed {seed}")
    base = load_steps(arguments.base)
    counts = collections.Counter()
    for number in range(arguments.jobs):
        job = Job(seed + number, base)
        with tempfile.TemporaryDirectory() as folder:
            answer = json.loads(subprocess.run(
                [arguments.syncline, "why", "--json", *job.make(folder)],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout)
        found, said = judge(job, answer)
        counts[(job.fault or "healthy", job.dose if job.fault else 0, found)] += 1
        if found in ("wrong", "without cause"):
            print(f"{found}: seed {seed + number}: {job.ranks} ranks, {job.steps} steps, "
                  f"{job.fault} of {job.dose} on rank {job.culprit}, kernels x {job.scale}, "
                  f"{'waits' if job.waits_for_device else 'runs ahead'}: said {said}")
    for (fault, dose, found), count in sorted(counts.items()):
        print(f"{fault:8} {dose:4.0%}  {found:14} {count}")
    wrong = sum(count for (_, _, found), count in counts.items() if found == "wrong")
    right = sum(count for (_, _, found), count in counts.items() if found == "right")
    print(f"{arguments.jobs} jobs: {right} right, {wrong} wrong")
    sys.exit(1 if wrong or not right else 0)


if __name__ == "__main__":
    main()
