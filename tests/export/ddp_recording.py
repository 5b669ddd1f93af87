# SPDX-License-Identifier: Apache-2.0
"""A recording of PyTorch's DistributedDataParallel on two ranks, made up: for tests that need one
where there is no PyTorch. Rank 1 runs one operator more often and another one longer; who enters an
all-reduce last changes, sometimes by less than the clock bound; rank 1 loses events once, and its
node stops early; the kernel was sampled. The same recording to copy gives the same bytes.
"""

import json
import os
import random
import re
import shutil

from scripts import made_up_traces

STEPS = 200
STEP_NS = 5_000_000
FIRST_NS = 100_000_000  # from the gate's opening on
SAMPLE_NS = 50_000_000
LOSES_AT, STOPS_AT = 80, 170  # the steps in which rank 1 loses events, and its node stops

NAMES = ("PyTorch", "aten::mm", "aten::add", "c10d::allreduce_", "gloo:all_reduce", "allreduce")
NAMES += ("0", "default_pg", "0-1", "send", "recv", "Optimizer.step#SGD.step")
IDS = {name: number for number, name in enumerate(NAMES, 1)}
MAIN, WORKER = 1, 2


class Rank:
    def __init__(self, rank, begin_ns, identity):
        self.rank, self.begin_ns, self.identity = rank, begin_ns, identity
        self.events = []
        self.numbers = dict.fromkeys((MAIN, WORKER), 0)

    def say(self, at_ns, name, *values):
        self.events.append((self.begin_ns + at_ns, name, values))

    def task(self, thread, name, begin_ns, end_ns):
        for what, at_ns in (("begin", begin_ns), ("end", end_ns)):
            self.numbers[thread] += 1
            number = self.numbers[thread] % 65536
            values = (thread, IDS["PyTorch"], IDS[name], 0, number)
            self.say(at_ns, f"syncline_itt:task_{what}", *values)

    def step(self, number, at_ns, entry_ns, exit_ns):
        """It enters the all-reduce at entry_ns and leaves it at exit_ns."""
        group, rank = IDS["0"], self.rank
        if number % 5 == 0:
            members = (IDS["default_pg"], IDS["0-1"], rank, 2, number)
            self.say(at_ns, "syncline_torch:group", MAIN, group, *members)
        for call in range(2 + rank):
            begin_ns = at_ns + 1000 + call * 60_000
            self.task(MAIN, "aten::add", begin_ns, begin_ns + 40_000 + 7 * number)
        begin_ns = at_ns + 300_000
        self.task(MAIN, "aten::mm", begin_ns, begin_ns + 600_000 + 300_000 * rank + number * 100)
        name = IDS["allreduce"]
        self.say(entry_ns - 5000, "syncline_torch:collective", MAIN, group, name, number, 4096)
        self.task(MAIN, "c10d::allreduce_", entry_ns, entry_ns + 10_000 + 1000 * rank + number)
        self.task(WORKER, "gloo:all_reduce", entry_ns + 2000, exit_ns)
        transfer = IDS["send" if rank == 0 else "recv"]
        begin_ns = exit_ns + 10_000 + 5000 * rank
        ends = (MAIN, number + 1, group, transfer, 1 - rank, 0, 8)
        self.say(begin_ns, "syncline_torch:transfer_begin", *ends)
        self.say(begin_ns + 150_000 + 700 * number, "syncline_torch:transfer_end", MAIN,
                 number + 1, -1, 0)
        begin_ns = exit_ns + 400_000
        self.task(MAIN, "Optimizer.step#SGD.step", begin_ns, begin_ns + 90_000 + 500 * number)

    def write(self, streams):
        """A stream for each thread."""
        stream = streams[0]
        stream.put("syncline:on", self.begin_ns, 1, 1, *self.identity)
        for name, number in IDS.items():
            stream.put("syncline:name", self.begin_ns, 1, number, 1, name)
        for thread in (MAIN, WORKER):
            tid = self.identity[0] + thread - 1
            stream.put("syncline:thread", self.begin_ns, thread, 1, tid, f"thread {thread}")
        self.events.sort(key=lambda event: event[0])
        lost_from = self.begin_ns + FIRST_NS + LOSES_AT * STEP_NS
        lost = 0
        for at_ns, name, values in self.events:
            if self.rank == 1 and at_ns >= stop_of(self.begin_ns):
                return
            if self.rank == 1 and lost_from <= at_ns < lost_from + STEP_NS // 4:
                if lost == 0:
                    stream.flush()
                lost += 1
                continue
            if lost > 0:
                stream.lose(lost)
                lost = 0
            streams[values[0] - MAIN].put(name, at_ns, *values)
        end_ns = self.begin_ns + FIRST_NS + STEPS * STEP_NS
        found = len(self.events) + 1 + len(IDS) + 2
        stream.put("syncline:off", end_ns, 1, 1, found, 0, 5)


def stop_of(begin_ns):
    """When rank 1's node stops."""
    return begin_ns + FIRST_NS + STOPS_AT * STEP_NS


def samples_of(rank, begin_ns, identity):
    """What the kernel would say of the main thread: nodes/NODE/evidence/samples.txt."""
    pid, namespace, start_ticks = identity
    lines = [
        "syncline-evidence 1",
        f"P 0 {pid} 1 {start_ticks} {namespace} {pid} 0 =python",
        f"T 0 {pid} {pid} =python",
    ]
    for number in range(51):
        at_ns = begin_ns + number * SAMPLE_NS
        on_cpu_ns = number * (30 + 5 * rank) * 1_000_000 + (number % 3) * 1_000_000
        waiting_ns = number * (10 - 4 * rank) * 1_000_000
        lines.append(f"t 0 {at_ns} {at_ns + 1000} {on_cpu_ns} {waiting_ns} -1")
    return "\n".join([*lines, "E", ""])


def write(pattern, out):
    """The recording `pattern`, of two nodes with a process each, with other events."""
    shutil.copytree(pattern, out)
    with open(f"{out}/recording.json", encoding="utf-8") as file:
        recording = json.load(file)
    nodes = recording["nodes"]
    dice = random.Random(1)
    entries = [
        [FIRST_NS + number * STEP_NS + 2_000_000 + dice.randrange(50_000) for _ in nodes]
        for number in range(STEPS)
    ]
    for rank, node in enumerate(nodes):
        folder = f"{out}/nodes/{node['name']}"
        shutil.rmtree(f"{folder}/xspace")
        directory = f"{folder}/trace/ust/uid/0/64-bit"
        with open(f"{directory}/metadata", encoding="utf-8", errors="replace") as file:
            offset_ns = int(re.search(r"offset = (\d+)", file.read())[1])
        shutil.rmtree(directory)
        process = node["processes"][0]
        identity = tuple(process[key] for key in ("own_pid", "pid_namespace_inode", "start_ticks"))
        begin_ns = node["start"]["gate_begin_monotonic_ns"]
        made = Rank(rank, begin_ns, identity)
        for number, entered_ns in enumerate(entries):
            at_ns = FIRST_NS + number * STEP_NS
            made.step(number, at_ns, entered_ns[rank], max(entered_ns) + 500_000)
        with made_up_traces.Trace(directory, 2, node["name"], offset_ns) as trace:
            made.write(trace.streams)
        os.makedirs(f"{folder}/evidence")
        with open(f"{folder}/evidence/samples.txt", "w", encoding="ascii") as file:
            file.write(samples_of(rank, begin_ns, identity))
    begin_ns = nodes[1]["start"]["gate_begin_monotonic_ns"]
    nodes[1]["stop"].update(gate_end_monotonic_ns=stop_of(begin_ns), reason="disk nearly full")
    nodes[1]["state"] = "incomplete"
    with open(f"{out}/recording.json", "w", encoding="utf-8") as file:
        json.dump(recording, file)
