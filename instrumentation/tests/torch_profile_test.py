# SPDX-License-Identifier: Apache-2.0
"""Kineto as `syncline run --kineto` has it, in programs that would notice it, or die of it.

Usage: torch_profile_test.py BUILD_DIRECTORY. Skipped without .venv-torch (scripts/setup --torch).

Each program does while it is profiled what ends programs that use PyTorch's profiler carelessly
(docs/decisions/0008-kineto-in-process.md). It must end as it would have, say nothing, and the
profiles of it must be whole or be said to be missing.
"""

import collections
import glob
import json
import os
import subprocess
import unittest

import torch_program
from lttng_fixture import Fixture
from torch_program import EVENTS, TORCH_PYTHON, planted

# Of endings: more by hand.
REPEATS = int(os.environ.get("SYNCLINE_TEST_REPEATS", "2"))
# A program says what it does and goes on when it is told to.
PROGRAM = """
import ctypes, os, sys, threading, torch
torch.set_num_threads(1)
network = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(network.parameters(), 0.01)
def step():
    optimizer.zero_grad()
    network(torch.ones(4, 8)).sum().backward()
    optimizer.step()
def wait(word):
    step()
    heard = []
    listener = threading.Thread(target=lambda: heard.append(sys.stdin.readline()))
    listener.start()
    print(word, flush=True)
    while not heard: step()
    listener.join()
def own(name="own", **more):
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu, **more) as profile:
        for _ in range(50): step()
    names = [event.name for event in profile.events()]
    assert names.count("Optimizer.step#SGD.step") == 50, names.count("Optimizer.step#SGD.step")
wait("ready")
"""


class Profiles(unittest.TestCase):
    def setUp(self):
        self.fixture = Fixture(torch_program.BUILD)
        self.addCleanup(self.fixture.close)
        self.fixture.start_daemon()
        self.fixture.begin_session(events=EVENTS)
        self.folder = os.path.join(self.fixture.runtime, "kineto")

    def start(self, text, **environment):
        process = subprocess.Popen(
            [TORCH_PYTHON, "-c", PROGRAM + text],
            env={
                **self.fixture.environment,
                "PYTHONPATH": planted()["PYTHONPATH"],
                "PYTHONDONTWRITEBYTECODE": "1",
                "SYNCLINE_KINETO": "1",
                "KINETO_LOG_LEVEL": "99",
                **environment,
            },
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.fixture.processes.append(process)
        self.hear(process, "ready")
        return process

    def hear(self, process, word):
        said = process.stdout.readline().strip()
        if said != word:
            process.kill()
            self.fail(f"{said!r} is not {word!r}: {process.communicate()}")

    def tell(self, process):
        process.stdin.write("\n")
        process.stdin.flush()

    def pieces(self):
        """By pid, those that are listed."""
        found = {}
        for path in glob.glob(self.folder + "/*.pieces"):
            with open(path, encoding="ascii") as file:
                for piece in json.load(file)["profiles"]:
                    found.setdefault(piece["own_pid"], []).append(piece)
        return found

    def states(self, process):
        return [piece["state"] for piece in self.pieces().get(process.pid, [])]

    def record(self, generation, process):
        self.fixture.set_gates(generation)
        self.wait_for_a_profile(process)
        self.let_it_train(process)

    def wait_for_a_profile(self, process):
        try:
            self.fixture.wait_for(lambda: self.runs(process), "a profile", 60)
        except TimeoutError as error:
            listed = self.pieces().get(process.pid)
            raise TimeoutError(f"{error}; listed: {listed}") from None

    def let_it_train(self, process):
        def events():
            return self.fixture.blocks()[process.pid]["events"]

        before = events()
        self.fixture.wait_for(lambda: events() > before + 3000, "operators", 60)

    def runs(self, process):
        pieces = self.pieces().get(process.pid, [])
        return bool(pieces) and pieces[-1]["end_realtime_ns"] == 0

    def stop(self, process):
        self.fixture.set_gates(0)
        self.fixture.wait_for(lambda: not self.runs(process), "the profile's end", 60)

    def profile(self, piece):
        with open(os.path.join(self.folder, piece["file"]), encoding="utf-8") as file:
            return json.load(file)["traceEvents"]

    def names(self, piece):
        return collections.Counter(e["name"] for e in self.profile(piece) if e["ph"] == "X")

    def ends_well(self, process, code=0, said=""):
        output, errors = process.communicate(timeout=60)
        # C's exit() destroys the observer of a thread before anybody can take it off.
        errors = "".join(e for e in errors.splitlines(True) if "Leaked callback handle" not in e)
        self.assertEqual((process.returncode, output, errors), (code, said, ""))

    def is_refused_until(self, process, state, word):
        """There is no profile for now; there is one when the program has said the word."""
        self.fixture.set_gates(1)
        self.fixture.wait_for(lambda: state in self.states(process), "the refusal", 60)
        self.tell(process)
        self.hear(process, word)
        self.wait_for_a_profile(process)
        self.tell(process)
        self.ends_well(process)

    # ---- what is profiled

    def test_nothing_is_without_the_option(self):
        process = self.start("", SYNCLINE_KINETO="")
        self.fixture.set_gates(1)
        self.fixture.wait_for(
            lambda: self.fixture.blocks()[process.pid]["events"] > 100, "ITT's events", 60
        )
        self.tell(process)
        self.ends_well(process)
        self.assertFalse(os.path.exists(self.folder))

    def test_all_threads_with_shapes(self):
        other = """
more = torch.nn.Linear(8, 1)
def train():
    while not over: more(torch.ones(4, 8)).sum().backward()
over = []
trainer = threading.Thread(target=train); trainer.start()
wait("two")
over.append(1); trainer.join()
"""
        process = self.start(other)
        self.tell(process)
        self.hear(process, "two")
        self.record(1, process)
        self.stop(process)
        (piece,) = self.pieces()[process.pid]
        self.assertEqual((piece["state"], piece["piece"]), ("complete", 0), piece)
        events = [e for e in self.profile(piece) if e["name"] == "aten::addmm"]
        self.assertEqual(len({event["tid"] for event in events}), 2)
        self.assertIn(events[0]["args"]["Input Dims"][0], ([1], [8]))
        self.tell(process)
        self.ends_well(process)

    def test_again_and_again(self):
        process = self.start("")
        for generation in range(1, 4):
            self.fixture.set_gates(generation)
            self.wait_for_a_profile(process)
            self.let_it_train(process)
            self.stop(process)
            (piece,) = self.pieces()[process.pid]
            self.assertEqual((piece["state"], piece["piece"]), ("complete", generation - 1), piece)
            self.assertGreater(self.names(piece)["Optimizer.step#SGD.step"], 0)
            os.remove(self.folder + f"/{glob.glob1(self.folder, '*.pieces')[0]}")
        self.tell(process)
        self.ends_well(process)

    def test_main_thread_that_runs_no_python(self):
        """libkineto would complain, were it begun in another one; what is missing is said."""
        text = """
over = []
def train():
    while not over: step()
def listen():
    sys.stdin.readline()
    over.append(1)
threads = [threading.Thread(target=what) for what in (train, listen)]
for thread in threads: thread.start()
print("joining", flush=True)
for thread in threads: thread.join()
wait("joined")
"""
        process = self.start(text)
        self.tell(process)
        self.hear(process, "joining")
        self.is_refused_until(process, "missing", "joined")

    def test_what_cannot_be_written_ends_it(self):
        text = """
import resource
ranges = [torch.profiler.record_function(f"open {i}") for i in range(50)]
for one in ranges: one.__enter__()
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
wait("open")
for one in reversed(ranges): one.__exit__(None, None, None)
"""
        process = self.start(text, MALLOC_MMAP_THRESHOLD_="65536", MALLOC_PERTURB_="165")
        self.record(1, process)
        self.tell(process)
        self.hear(process, "open")
        self.stop(process)
        self.assertIn("could not be written", self.pieces()[process.pid][-1]["failure"])
        self.fixture.set_gates(2)
        self.let_it_train(process)
        self.tell(process)
        self.ends_well(process)
        self.assertFalse(self.runs(process))

    # ---- signals

    def test_what_a_signals_handler_raises_is_the_programs(self):
        """Python calls it wherever the main thread is: here, in what the hook wants of that."""
        text = """
import signal
def handler(*_):
    raise KIND("late")
signal.signal(signal.SIGUSR1, handler)
hook = sys.modules["syncline_torch"].start.hook
turn = hook._turn
def disturbed(*arguments):
    hook._turn = turn
    signal.raise_signal(signal.SIGUSR1)
hook._turn = disturbed
print("armed", flush=True)
try:
    while True: step()
except KIND: wait("caught")
"""
        for kind in ("TimeoutError", "SystemExit"):
            process = self.start(text.replace("KIND", kind))
            self.tell(process)
            self.hear(process, "armed")
            self.fixture.set_gates(1)
            self.hear(process, "caught")
            self.record(1, process)
            self.tell(process)
            self.ends_well(process)
            self.assertEqual(self.states(process), ["complete"])

    def test_a_signal_while_its_own_profile_waits_for_the_end_of_ours(self):
        text = """
import signal
def handler(*_):
    raise TimeoutError("late")
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.03)
try: own()
except TimeoutError: wait("caught")
own()
"""
        process = self.start(text)
        self.record(1, process)
        self.tell(process)
        self.hear(process, "caught")
        self.fixture.wait_for(lambda: self.runs(process), "another profile", 60)
        self.tell(process)
        self.ends_well(process)
        self.assertEqual(self.states(process)[:1], ["cut"])

    # ---- endings

    def test_it_ends_while_it_is_profiled(self):
        for ending in ("", "sys.exit(0)"):
            for _ in range(REPEATS):
                with self.subTest(ending):
                    process = self.start(ending)
                    self.record(1, process)
                    self.tell(process)
                    self.ends_well(process)
                    self.fixture.set_gates(0)
                    (piece,) = self.pieces()[process.pid]
                    self.assertEqual(piece["state"], "complete")
                    self.assertGreater(self.names(piece)["Optimizer.step#SGD.step"], 0)

    def test_it_ends_at_once_while_it_is_profiled(self):
        endings = {
            "os._exit(3)": 3,
            "os.kill(os.getpid(), 15)": -15,
            "ctypes.CDLL(None).exit(3)": 3,
            "ctypes.PyDLL(None).exit(3)": 3,
            # Beside a thread that holds a stream's lock.
            """
c = ctypes.CDLL(None)
c.fdopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(c.fdopen(os.pipe()[0], b"r"))
threading.Thread(target=lambda: c.fgetc(stream), daemon=True).start()
c.exit(3)""": 3,
        }
        for ending, code in endings.items():
            process = self.start(ending)
            self.record(1, process)
            self.tell(process)
            self.ends_well(process, code)
            (piece,) = self.pieces()[process.pid]
            self.assertEqual((piece["state"], "file" in piece), ("failed", False))
            self.assertIn("ended before", piece["failure"])

    def test_it_ends_while_its_profile_is_written(self):
        for _ in range(REPEATS):
            process = self.start("")
            self.record(1, process)
            self.fixture.set_gates(0)
            self.tell(process)
            self.ends_well(process)
            (piece,) = self.pieces()[process.pid]
            self.assertEqual(piece["state"], "complete")
            self.profile(piece)

    # ---- profiles of the program's own

    def test_its_own_profiles_win(self):
        process = self.start('own()\nown(record_shapes=True)\nwait("own")\nown()')
        self.record(1, process)
        self.tell(process)
        self.hear(process, "own")
        # Back again, as soon as the program's are over.
        self.fixture.wait_for(lambda: self.runs(process), "another profile", 60)
        self.tell(process)
        self.ends_well(process)
        pieces = self.pieces()[process.pid]
        # Between the program's last profile and its end there may be room for another piece.
        if pieces[-1]["state"] == "complete":
            pieces.pop()
        self.assertGreaterEqual(len(pieces), 2)
        reasons = {(piece["state"], piece["failure"]) for piece in pieces}
        self.assertEqual(reasons, {("cut", "the program used a profiler of its own")})
        # A piece between two of the program's profiles may hold no step.
        self.assertGreater(self.names(pieces[0])["Optimizer.step#SGD.step"], 0)
        for piece in pieces:
            self.profile(piece)

    def test_its_own_profile_is_only_prepared_when_ours_would_begin(self):
        """PyTorch dies of it, should ours be prepared on top."""
        text = """
cpu = [torch.profiler.ProfilerActivity.CPU]
plan = torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1)
own = torch.profiler.profile(activities=cpu, schedule=plan)
own.start()
wait("warm")
for _ in range(3): own.step(); step()
own.stop()
assert len(own.events()) > 10
wait("alone")
"""
        process = self.start(text)
        self.tell(process)
        self.hear(process, "warm")
        self.is_refused_until(process, "busy", "alone")

    def test_its_own_profile_is_there_before(self):
        text = """
cpu = [torch.profiler.ProfilerActivity.CPU]
with torch.profiler.profile(activities=cpu) as profile: wait("own")
assert len(profile.events()) > 100
del profile
wait("alone")
"""
        process = self.start(text)
        self.tell(process)
        self.hear(process, "own")
        self.is_refused_until(process, "busy", "alone")

    def test_ranges_that_are_open_across_profiles(self):
        """PyTorch writes where a range began: into memory that is freed at the profile's end."""
        text = """
ranges = [torch.profiler.record_function(f"open {i}") for i in range(50)]
for one in ranges: one.__enter__()
wait("open")
cpu = [torch.profiler.ProfilerActivity.CPU]
with torch.profiler.profile(activities=cpu) as profile:
    for one in reversed(ranges): one.__exit__(None, None, None)
    for _ in range(50): step()
wait("closed")
"""
        process = self.start(text, MALLOC_MMAP_THRESHOLD_="65536", MALLOC_PERTURB_="165")
        self.record(1, process)
        self.tell(process)
        self.hear(process, "open")
        self.stop(process)
        self.fixture.set_gates(2)
        self.fixture.wait_for(lambda: "missing" in self.states(process), "the refusal", 60)
        self.tell(process)
        self.hear(process, "closed")
        self.tell(process)
        self.ends_well(process)

    # ---- children

    def test_children_that_are_forked_while_it_is_profiled(self):
        text = """
def child(end):
    pid = os.fork()
    if pid == 0:
        step()
        own()
        end(7)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print([child(end) for end in (os._exit, sys.exit)], flush=True)
wait("children")
print([child(end) for end in (os._exit, sys.exit)], flush=True)
"""
        process = self.start(text)
        self.record(1, process)
        self.tell(process)
        self.hear(process, "[7, 7]")
        self.hear(process, "children")
        self.stop(process)
        self.tell(process)
        self.hear(process, "[7, 7]")
        self.ends_well(process)

    def test_a_childs_own_profile_leaves_the_list_alone(self):
        process = self.start("""
if os.fork() == 0: own(); os._exit(0)
assert os.wait()[1] == 0
wait("child")
""")
        self.record(1, process)
        before = self.pieces()
        self.tell(process)
        self.hear(process, "child")
        self.assertEqual(self.pieces(), before)
        self.tell(process)
        self.ends_well(process)

    def test_another_program_in_the_same_process(self):
        """The number of a piece is never used twice."""
        text = """
if not os.environ.get("AGAIN"):
    command = [sys.executable, "-c", sys.orig_argv[-1]]
    os.execve(sys.executable, command, {**os.environ, "AGAIN": "1"})
"""
        process = self.start(text)
        self.record(1, process)
        self.tell(process)
        self.hear(process, "ready")
        self.record(1, process)
        self.tell(process)
        self.ends_well(process)
        pieces = [(piece["piece"], piece["state"]) for piece in self.pieces()[process.pid]]
        self.assertEqual(pieces, [(0, "failed"), (1, "complete")])

    def test_loaders(self):
        text = """
class Data(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, index): return torch.full((8,), float(index)).add(1)
def load(way):
    loader = torch.utils.data.DataLoader(Data(), 8, num_workers=2, multiprocessing_context=way)
    return sum(batch.sum().item() for batch in loader)
print(load("fork") == 8 * 65 * 32, flush=True)
wait("loaded")
print(load("fork") == 8 * 65 * 32, flush=True)
"""
        process = self.start(text)
        self.record(1, process)
        self.tell(process)
        self.hear(process, "True")
        self.hear(process, "loaded")
        self.stop(process)
        self.tell(process)
        self.hear(process, "True")
        self.ends_well(process)


if __name__ == "__main__":
    torch_program.main()
