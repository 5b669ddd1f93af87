# SPDX-License-Identifier: Apache-2.0
"""Garbage collections and initialised accelerators, as the PyTorch hook tells them.

Usage: torch_garbage_test.py BUILD_DIRECTORY. Skipped where .venv-torch is not.
"""

import unittest

import torch_program
from torch_program import EVENTS, TorchProgram

COLLECTION = "garbage collection"
MARK = "accelerator initialised: "
# Of the program: what it sees of gc.callbacks, and collections that it counts by itself.
OWN = """
    import gc, sys, time
    gc.disable()  # only those that it asks for
    gc.freeze()  # and short ones
    counts = {}
    def own(phase, info):
        key = phase, threading.current_thread().name
        counts[key] = counts.get(key, 0) + 1
    gc.callbacks.append(own)
    hook = sys.modules["syncline_torch"].start.hook
    def recorded():
        return hook.native.gate() != 0 and hook.operators.is_here()
    def idle():  # with few events
        step()
        time.sleep(0.005)
    def collections(count=20):
        while not recorded(): idle()
        for _ in range(count):
            step()
            gc.collect(0)
"""


class Spans:
    """The tasks of a recording, by thread, each inside those around it."""

    def __init__(self, test, events):
        self.test = test
        self.names = {(e.process, e.id): e.text for e in events if e.name == "syncline:name"}
        self.of = {e.thread: e.process for e in events if e.name == "syncline:thread"}
        self.done = []  # (thread, domain, name, names around it, begin, end)
        self.generations = []
        self.open = {}
        for event in events:
            kind = event.name.partition(":")[2]
            if kind == "task_begin":
                self.begin(event)
            elif kind == "task_end":
                self.end(event)
            elif kind.startswith("metadata") and self.text(event, "key") == "generation":
                test.assertEqual(self.open[event.thread][-1][1], COLLECTION)
                self.generations += event.fields["values"]

    def text(self, event, key):
        return self.names[self.of[event.thread], event.fields[key]]

    def begin(self, event):
        stack = self.open.setdefault(event.thread, [])
        if not stack:  # the first that is recorded may lie inside others
            stack += [(None, None, 0)] * event.depth
        self.test.assertEqual(event.depth, len(stack))
        stack.append((self.text(event, "domain"), self.text(event, "name"), event.time_ns))

    def end(self, event):
        stack = self.open.setdefault(event.thread, [])
        if len(stack) <= event.depth:  # begun before the recording
            self.test.assertFalse([name for _, name, _ in stack if name])
            return
        self.test.assertEqual(event.depth, len(stack) - 1)
        domain, name, begin = stack.pop()
        if name is None:
            return
        self.test.assertEqual(name, self.text(event, "name"))
        around = tuple(name for _, name, _ in stack)
        self.done.append((event.thread, domain, name, around, begin, event.time_ns))

    def collections(self):
        found = [span for span in self.done if span[2] == COLLECTION]
        self.test.assertEqual({span[1] for span in found} - {"python"}, set())
        return found

    def marks(self):
        found = [span for span in self.done if span[2].startswith(MARK)]
        self.test.assertEqual({span[1] for span in found} - {"syncline"}, set())
        return sorted(span[2][len(MARK) :] for span in found)


class GarbageTest(TorchProgram):
    def begin(self):
        self.session = self.fixture.begin_session(events=EVENTS)
        self.generation += 1
        self.fixture.set_gates(self.generation)

    def finish(self):
        self.fixture.set_gates(0)
        events, discarded = self.fixture.end_session(self.session)
        self.assertEqual(discarded, 0)
        return Spans(self, events)

    def said(self, process, text):
        self.assertEqual(process.stdout.readline(), text + "\n")

    def run_recorded(self, program):
        """Records until the program says `done`; what it says afterwards, and the spans."""
        process = self.start(OWN + program)
        self.begin()
        self.said(process, "done")
        spans = self.finish()
        return self.end(process), spans, process

    def test_each_is_a_task_in_its_thread_while_it_is_recorded(self):
        out, spans, _ = self.run_recorded(
            """
    before = list(gc.callbacks)
    for generation in 0, 1, 2: gc.collect(generation)
    while not recorded(): idle()
    gc.collect(1)
    collections(20)
    worker = threading.Thread(target=lambda: [gc.collect(2) for _ in range(3)])
    worker.start(); worker.join()
    during = list(gc.callbacks)
    print("done", flush=True)
    while gc.callbacks != before: idle()
    gc.collect()
    while not ended.is_set(): idle()
    print(gc.callbacks == before, during[:-1] == before, len(during), callable(during[-1]))
    print(counts["start", "MainThread"], counts["stop", "MainThread"])
    """
        )
        self.assertEqual(out, "True True 2 True\n25 25\n")
        found = spans.collections()
        threads = [thread for thread, *_ in found]
        self.assertEqual(sorted(threads.count(t) for t in set(threads)), [3, 21])
        self.assertEqual(spans.generations, [1] + [0] * 20 + [2] * 3)
        operators = {span[0] for span in spans.done if span[1] == "PyTorch"}
        self.assertEqual(len(operators & set(threads)), 1)

    def test_again_and_again(self):
        process = self.start(
            OWN
            + """
    before = list(gc.callbacks)
    while not ended.is_set():
        while not recorded() and not ended.is_set(): idle()
        if ended.is_set(): break
        collections(5)
        print("done", flush=True)
        while gc.callbacks != before: idle()
        print("out", flush=True)
    """
        )
        for _ in range(3):
            self.begin()
            self.said(process, "done")
            self.assertEqual(len(self.finish().collections()), 5)
            self.said(process, "out")
        self.end(process)

    def test_inside_operators(self):
        """The observer's ranges and the collections are on one stack."""
        _, spans, _ = self.run_recorded(
            """
    class Collects(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            gc.collect(0)
            return x + 1
        @staticmethod
        def backward(context, g):
            gc.collect(0)
            return g
    class Dies:
        def __init__(self): self.me = self
        def __del__(self): torch.ones(2) + 1  # an operator inside a collection
    while not recorded(): idle()
    for _ in range(10): Collects.apply(torch.ones(2, requires_grad=True)).sum().backward()
    for _ in range(10):
        Dies()
        gc.collect()
    print("done", flush=True)
    while not ended.is_set(): idle()
    """
        )
        around = [span[3] for span in spans.collections()]
        self.assertEqual(len(around), 30)
        self.assertEqual(around.count(()), 10)
        inside = {name for names in around for name in names}
        self.assertTrue(any("Collects" in name for name in inside), inside)
        self.assertGreaterEqual(
            sum(span[3] == (COLLECTION,) for span in spans.done if span[2] == "aten::add"), 10
        )

    def test_a_program_that_clears_the_list_or_replaces_it(self):
        """In the middle of a collection, too; afterwards nothing of ours is in either list."""
        out, spans, _ = self.run_recorded(
            """
    real = gc.callbacks
    class Clears:
        def __init__(self): self.me = self
        def __del__(self): real.clear()
    def until_it_is_back():
        while not real: idle()
    collections(3)
    gc.callbacks.clear()
    step()
    until_it_is_back()
    collections(3)
    Clears()  # its end is never heard of
    gc.collect()
    until_it_is_back()
    gc.collect()
    gc.callbacks = []  # a name, no more
    collections(3)
    kept = list(real)
    real[:] = kept + kept  # twice
    collections(3)
    print("done", flush=True)
    end = time.monotonic() + 0.3  # the hook is called until all of it is done
    while real or hook.awake or time.monotonic() < end: idle()
    gc.callbacks.extend(kept)  # ours is inert
    real.extend(kept)
    gc.collect()
    for call in kept:
        for arguments in (), ("start",), ("start", {}), (b"start", 1), (1, 2), ("stop", None):
            assert call(*arguments) is None
    while not ended.is_set(): idle()
    print(len(gc.callbacks), len(real))
    """
        )
        self.assertEqual(out, "1 1\n")
        # The end of one was hidden: the next one's begin ended it.
        self.assertEqual(len(spans.collections()), 3 + 3 + 1 + 1 + 3 + 3)

    def test_a_recording_that_ends_inside_a_collection(self):
        """None of the program's callbacks is passed over, and ours is out soon."""
        process = self.start(
            OWN
            + """
    class Slow:
        def __init__(self): self.me = self
        def __del__(self):
            print("inside", flush=True)
            while hook.native.gate(): time.sleep(0.001)
            end = time.monotonic() + 0.1
            while time.monotonic() < end: pass  # the hook is called here, and waits
            assert len(gc.callbacks) == 3
    collections(2)
    gc.callbacks.append(lambda *_: own(*_))
    Slow()
    gc.collect()
    while len(gc.callbacks) != 2: idle()
    gc.collect()
    print(counts["start", "MainThread"], counts["stop", "MainThread"])
    """
        )
        self.begin()
        self.said(process, "inside")
        spans = self.finish()
        self.assertEqual(self.end(process), "6 6\n")
        self.assertEqual(len(spans.collections()), 2)  # the third has no end in it

    def test_a_signals_handler_that_raises_during_a_collection(self):
        """It is the program that hears of it, though our callback is called in between."""
        out, spans, _ = self.run_recorded(
            """
    import signal
    class Now(Exception): pass
    came = heard = 0
    armed = False  # on a busy machine the next one comes before this one has been heard
    def now(*_):
        global came, armed
        if armed:
            came += 1
            armed = False
            raise Now
    signal.signal(signal.SIGUSR1, now)
    gc.callbacks.remove(own)
    junk = [[] for _ in range(50_000)]  # some 1 ms
    while not recorded(): idle()
    # From another process: no thread of this one runs during a collection.
    child = os.fork()
    if child == 0:
        parent = os.getppid()
        for _ in range(100):
            time.sleep(0.003)
            os.kill(parent, signal.SIGUSR1)
        os._exit(0)
    while True:
        try:
            armed = True
            while os.waitpid(child, os.WNOHANG)[0] == 0:
                gc.collect()
            break
        except Now: heard += 1
        except ChildProcessError: break  # it came as the child was waited for
    print("done", flush=True)
    while not ended.is_set(): idle()
    print(heard == came, came > 20)
    """
        )
        self.assertEqual(out, "True True\n")
        self.assertGreater(len(spans.collections()), 5)

    def test_a_forked_child(self):
        """Its gate is opened by itself; the parent's callback is there already."""
        process = self.start(
            OWN
            + """
    collections(3)
    child = os.fork()
    if child == 0:
        gc.collect(0)  # nobody records it yet
        while hook.native.gate() != 1: time.sleep(0.001)
        collections(4)
        os._exit(0 if own in gc.callbacks and len(gc.callbacks) == 2 else 1)
    status = os.waitpid(child, 0)[1]
    collections(2)
    print("done", flush=True)
    while not ended.is_set(): idle()
    print(status)
    """
        )
        self.begin()
        self.fixture.wait_for(lambda: len(self.fixture.blocks()) == 2, "the child's block", 60)
        self.fixture.set_gates(1)
        self.said(process, "done")
        spans = self.finish()
        self.assertEqual(self.end(process), "0\n")
        processes = [spans.of[thread] for thread, *_ in spans.collections()]
        self.assertEqual(sorted(processes.count(p) for p in set(processes)), [4, 5])

    def marks_of(self, program):
        process = self.start(program + "\ntrain()")
        self.begin()
        self.fixture.wait_for(lambda: self.recorded() >= 500, "events", 60)
        marks = self.finish().marks()
        self.end(process)
        return marks

    def test_no_accelerator_is_initialised(self):
        """Also where one is said to be there, and nobody may ask."""
        program = """
def never(*_): raise AssertionError("asked")
for module in torch.cuda, torch.xpu, torch.mtia, torch.accelerator: module.is_available = never
"""
        self.assertEqual(self.marks_of(program), [])

    def test_initialised_accelerators(self):
        for program, marks in (
            ("torch.cuda.is_initialized = lambda: True", ["cuda"]),
            ("torch.xpu.is_initialized = lambda: True", ["xpu"]),
            (
                "import types; torch.cuda.is_initialized = lambda: 1 / 0\n"
                "torch.utils.rename_privateuse1_backend('mine')\n"
                "torch.mine = types.ModuleType('torch.mine')\n"
                "torch.mine.is_initialized = lambda: True",
                ["mine"],
            ),
        ):
            with self.subTest(program):
                self.assertEqual(self.marks_of(program), marks)

    def test_the_profiler_is_asked_for_those_that_this_pytorch_has(self):
        """By name: no PyTorch here traces a device."""
        program = """
import enum, syncline_accelerators as ours
Activity = enum.Enum("Activity", "CPU CUDA XPU MTIA HPU PrivateUse1")
for used, supported, asked in (
    ([], Activity, []),
    (["cuda"], Activity, ["CUDA"]),
    (["xpu", "mtia", "hpu"], Activity, ["XPU", "MTIA", "HPU"]),
    (["mine"], Activity, ["PrivateUse1"]),
    (["xla"], Activity, []),
    (["cuda", "xpu"], [Activity.CPU, Activity.XPU], ["XPU"]),
):
    found = ours.activities(used, supported)
    assert found == {Activity[name] for name in asked}, (used, found)
assert {activity.name for activity in torch.autograd._supported_activities()} == {"CPU"}
"""
        self.assertEqual(self.marks_of(program), [])

    def test_one_that_is_initialised_while_it_is_recorded(self):
        out, spans, _ = self.run_recorded(
            """
    while not recorded(): idle()
    torch.cuda.is_initialized = lambda: True
    while not hook.accelerators.told: idle()
    end = time.monotonic() + 1.2  # it is looked at again, and not told again
    while time.monotonic() < end: idle()
    print("done", flush=True)
    while not ended.is_set(): idle()
    """
        )
        self.assertEqual(out, "")
        self.assertEqual(spans.marks(), ["cuda"])


if __name__ == "__main__":
    torch_program.main()
