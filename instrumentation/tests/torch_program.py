# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program with the hook that `syncline run` plants, recorded as a test wants it."""

import os
import subprocess
import sys
import textwrap
import unittest

from lttng_fixture import SKIPPED, Fixture, enter_namespaces

BUILD = ""  # the build directory: main() sets it
REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TORCH_PYTHON = os.path.join(REPOSITORY, ".venv-torch", "bin", "python")
EVENTS = ("syncline:*", "syncline_itt:*", "syncline_torch:*")
# A program says `step` after each step, and is done when its input ends.
LOOP = """
import os, select, threading, torch
torch.set_num_threads(1)
network = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(network.parameters(), 0.01)
class ended:
    is_set = staticmethod(lambda limit=0: bool(select.select([0], [], [], limit)[0]))
def step():
    optimizer.zero_grad()
    network(torch.ones(4, 8)).sum().backward()
    optimizer.step()
step()
print("step", flush=True)
def train():
    while not ended.is_set(): step()
"""


def planted(**more):
    folder = os.path.join(BUILD, "lib", "syncline-python")
    return dict(os.environ, PYTHONPATH=folder, PYTHONDONTWRITEBYTECODE="1", **more)


def main(needs_torch=True):
    """Runs the tests of the program's own file; its first argument is the build directory."""
    global BUILD
    if needs_torch and not os.path.exists(TORCH_PYTHON):
        print("skipped: no .venv-torch: scripts/setup --torch makes it")
        sys.exit(SKIPPED)
    enter_namespaces()
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)


class TorchProgram(unittest.TestCase):
    def setUp(self):
        self.fixture = Fixture(BUILD)
        self.addCleanup(self.fixture.close)
        self.fixture.start_daemon()
        self.generation = 0

    def start(self, program, *options, **environment):
        """Runs LOOP and then `program`; back when it has made a step."""
        planted_paths = {"PYTHONPATH": planted()["PYTHONPATH"], "KINETO_LOG_LEVEL": "9"}
        process = subprocess.Popen(
            [TORCH_PYTHON, *options, "-c", LOOP + textwrap.dedent(program)],
            env={**self.fixture.environment, **planted_paths, **environment},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.fixture.processes.append(process)
        line = self.line_of(process)
        self.assertEqual(line, b"step\n", line or process.stderr.read() if process.poll() else "")
        return process

    def line_of(self, process):
        """The program's next line, or what there was of it when the program ended."""
        # Byte by byte: what else has come would stay in a buffer that communicate() does not know.
        line = b""
        while not line.endswith(b"\n") and (byte := os.read(process.stdout.fileno(), 1)):
            line += byte
        return line

    def end(self, process):
        out, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, errors), (0, ""))
        return out

    def record(self, until=None):
        """One recording, which lasts until there is enough in it."""
        session = self.fixture.begin_session(events=EVENTS)
        self.generation += 1
        self.fixture.set_gates(self.generation)
        self.fixture.wait_for(until or (lambda: self.recorded() >= 1000), "events", 60)
        self.fixture.set_gates(0)
        events, discarded = self.fixture.end_session(session)
        self.assertEqual(discarded, 0)
        self.check(events)
        return events

    def recorded(self):
        """Events of the recording that was begun last."""
        mine = f" recording={self.generation} "
        return sum(b["events"] for b in self.fixture.blocks().values() if mine in b["line"])

    def check(self, events):
        """Every name is announced."""
        names = {(e.process, e.id) for e in events if e.name == "syncline:name"}
        of = {e.thread: e.process for e in events if e.name == "syncline:thread"}
        tasks = [e for e in events if e.name.startswith("syncline_itt:task")]
        used = {(of[e.thread], e.fields["name"]) for e in tasks}
        self.assertLessEqual(used, names)

    @staticmethod
    def count(events, text):
        names = {(e.process, e.id): e.text for e in events if e.name == "syncline:name"}
        of = {e.thread: e.process for e in events if e.name == "syncline:thread"}
        return sum(
            names.get((of.get(e.thread), e.fields["name"])) == text
            for e in events
            if e.name == "syncline_itt:task_begin"
        )
