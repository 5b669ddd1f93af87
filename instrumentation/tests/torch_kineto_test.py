# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operators as ITT has them, against a second witness: PyTorch's own profiler, Kineto.

Usage: torch_kineto_test.py BUILD_DIRECTORY. Skipped without .venv-torch (scripts/setup --torch).

Both look at one process at the same time: ITT's observer is the thread's own, Kineto's on-demand
one (which a local daemon, here this test, asks for) is the process's. That one is a witness only
and no part of Syncline: docs/decisions/0008-kineto-in-process.md says why.
"""

import bisect
import glob
import json
import os
import socket
import statistics
import struct
import subprocess
import threading
import time
import unittest

import torch_program
from lttng_fixture import Fixture
from torch_program import EVENTS, TORCH_PYTHON, planted

PROFILE_MS = 500
# Kineto looks at its request once a second, and drops one whose start has passed.
AHEAD_MS = 3000
ACTIVITIES = 2  # a bit of a request: it would take a configuration for a profile
# The trainer never ends by itself: Kineto on demand is known to crash programs as they end.
PROGRAM = """
import os, time, torch
torch.set_num_threads(1)
network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(network.parameters(), 0.01)
batch = torch.ones(256, 64)
while True:
    optimizer.zero_grad()
    network(batch).sum().backward()
    optimizer.step()
    time.sleep(0.002)
    with open(os.environ["OBSERVER"] + ".new", "w") as file:
        file.write(str(torch._C._autograd._profiler_type()))
    os.rename(file.name, os.environ["OBSERVER"])
"""
# What both call by the same name, at least once a step.
NAMES = ("Optimizer.step#SGD.step", "aten::linear", "AddmmBackward0")


class Daemon(threading.Thread):
    """Answers what Kineto asks every second: with nothing, or once with `configuration`.

    A message: length of what follows, u64; its type, 32 bytes; what follows. A request: i32 of
    bits, number of pids i32, job i64, the pids.
    """

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(os.path.join(folder, "dynolog"))
        self.configuration = None  # makes the text when it is asked for
        self.asked = 0
        self.profiles = False  # Kineto is busy with one
        self.given = threading.Event()

    def run(self):
        while True:
            message, sender = self.socket.recvfrom(1 << 16)
            _, kind = struct.unpack_from("<Q32s", message)
            if not kind.startswith(b"req\0"):
                continue
            self.asked += 1
            (bits,) = struct.unpack_from("<i", message, 40)
            self.profiles = not bits & ACTIVITIES
            text = b""
            if bits & ACTIVITIES and self.configuration:
                text = self.configuration().encode()
                self.configuration = None
            self.socket.sendto(struct.pack("<Q32s", len(text), kind) + text, sender)
            if text:
                self.given.set()


def realtime_minus_monotonic_ns():
    """The tightest of some brackets."""
    brackets = []
    for _ in range(100):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        brackets.append((after - before, wall - (before + after) // 2))
    return min(brackets)[1]


class Kineto(unittest.TestCase):
    def setUp(self):
        self.fixture = Fixture(torch_program.BUILD)
        self.addCleanup(self.fixture.close)
        self.fixture.start_daemon()
        self.folder = self.fixture.directory
        self.daemon = Daemon(self.folder)
        self.daemon.start()

    def start(self):
        settings = os.path.join(self.folder, "kineto.conf")
        with open(settings, "w", encoding="ascii") as file:
            file.write("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n")
        process = subprocess.Popen(
            [TORCH_PYTHON, "-c", PROGRAM],
            env=dict(
                self.fixture.environment,
                PYTHONPATH=planted()["PYTHONPATH"],
                PYTHONDONTWRITEBYTECODE="1",
                KINETO_LOG_LEVEL="99",
                KINETO_USE_DAEMON="1",
                KINETO_IPC_SOCKET_DIR=self.folder,
                KINETO_CONFIG=settings,
                OBSERVER=self.folder + "/observer",
            ),
            stderr=subprocess.DEVNULL,  # PyTorch warns of a profile that was cut
        )
        self.fixture.processes.append(process)
        self.fixture.wait_for(lambda: self.daemon.asked > 0, "Kineto's first question", 60)
        trains = self.folder + "/observer"
        self.fixture.wait_for(lambda: os.path.exists(trains), "the first step", 60)

    def observer(self):
        """Of the training thread, after its last step."""
        with open(self.folder + "/observer", encoding="ascii") as file:
            return file.read().rsplit(".")[-1]

    def ask_for_a_profile(self, length_ms):
        def configuration():
            return "\n".join(
                [
                    f"PROFILE_START_TIME={time.time_ns() // 1_000_000 + AHEAD_MS}",
                    f"ACTIVITIES_DURATION_MSECS={length_ms}",
                    "ACTIVITIES_WARMUP_PERIOD_SECS=0",
                    f"ACTIVITIES_LOG_FILE={self.folder}/profile.json",
                ]
            )

        self.daemon.configuration = configuration
        self.assertTrue(self.daemon.given.wait(60))

    def profile(self):
        """Kineto's events, once it has written them all."""
        self.ask_for_a_profile(PROFILE_MS)
        # Kineto renames it when it is whole.
        pattern = f"{self.folder}/profile_*.json"
        self.fixture.wait_for(lambda: glob.glob(pattern), "Kineto's profile", 60)
        with open(glob.glob(pattern)[0], encoding="utf-8") as file:
            text = file.read()
        # Times are microseconds with three digits behind the point: integers, or 256 ns are lost.
        found = json.loads(text, parse_float=lambda number: int(number.replace(".", "")))
        base_ns = found["baseTimeNanoseconds"]
        events = [event for event in found["traceEvents"] if event["ph"] == "X"]
        return [
            (event["name"], event["tid"], base_ns + event["ts"], event["dur"])
            for event in events
            if isinstance(event["tid"], int)
        ]

    @staticmethod
    def tasks(events):
        """{(name, tid): [(begin, duration)]} of ITT."""
        names = {e.id: e.text for e in events if e.name == "syncline:name"}
        tids = {e.thread: e.tid for e in events if e.name == "syncline:thread"}
        stacks, found = {}, {}
        for event in events:
            if event.name == "syncline_itt:task_begin":
                stacks.setdefault(event.thread, []).append(event)
            elif event.name == "syncline_itt:task_end" and stacks.get(event.thread):
                begin = stacks[event.thread].pop()
                key = names.get(begin.fields["name"]), tids.get(begin.thread)
                found.setdefault(key, []).append((begin.time_ns, event.time_ns - begin.time_ns))
        return {key: sorted(tasks) for key, tasks in found.items()}

    def recorded(self):
        return sum(block["events"] for block in self.fixture.blocks().values())

    def test_both_say_the_same_of_the_same_operators(self):
        self.start()
        session = self.fixture.begin_session(events=EVENTS)
        self.fixture.set_gates(1)
        self.fixture.wait_for(lambda: self.recorded() > 500, "events", 60)
        before_ns = realtime_minus_monotonic_ns()
        profile = self.profile()
        after_ns = realtime_minus_monotonic_ns()
        for process in self.fixture.processes:
            process.kill()
        events, _ = self.fixture.end_session(session)
        itt = self.tasks(events)
        for name in NAMES:
            with self.subTest(name):
                kineto = {}
                for found, tid, wall_ns, duration_ns in profile:
                    if found == name:
                        kineto.setdefault(tid, []).append((wall_ns - before_ns, duration_ns))
                self.assertEqual(len(kineto), 1)  # thread
                ((tid, operators),) = kineto.items()
                self.compare(sorted(operators), itt[name, tid], abs(after_ns - before_ns))

    def test_nothing_of_ours_is_left_on_when_a_recording_ends_in_a_profile(self):
        """That PyTorch then takes off the profile first is PyTorch's; whose it is, is cut."""
        self.start()
        session = self.fixture.begin_session(events=EVENTS)
        self.fixture.set_gates(1)
        self.fixture.wait_for(lambda: self.observer() == "ITT", "the observer", 60)
        self.ask_for_a_profile(60_000)
        self.fixture.wait_for(lambda: self.daemon.profiles, "the profile to begin", 60)
        self.fixture.set_gates(0)
        self.fixture.wait_for(lambda: self.observer() == "NONE", "the observer to leave", 60)
        self.fixture.end_session(session)

    def compare(self, kineto, itt, clock_moved_ns):
        """Each operator of Kineto's is one task, and the next one the next."""
        self.assertGreater(len(kineto), 20)
        # By order: which task is the first, most operators' times tell.
        firsts = [bisect.bisect(itt, (o[0] + o[1] // 2,)) - 1 - i for i, o in enumerate(kineto)]
        first = statistics.median_low(firsts)
        pairs = list(zip(itt[first : first + len(kineto)], kineto))
        self.assertEqual(len(pairs), len(kineto))
        strangers = [(a, b) for a, b in pairs if a[0] > sum(b) or b[0] > sum(a)]
        self.assertEqual(strangers, [])
        apart_ns = statistics.median(abs(a[0] - b[0]) for a, b in pairs)
        longer = statistics.median(a[1] / b[1] for a, b in pairs)
        print(f"{len(pairs)} pairs: {apart_ns} ns apart, {longer:.3f} times as long", flush=True)
        # Medians: of any one pair the thread may have been put aside between the two witnesses.
        self.assertLess(apart_ns, 100_000 + clock_moved_ns)
        self.assertTrue(0.8 < longer < 1.25, longer)


if __name__ == "__main__":
    torch_program.main()
