# SPDX-License-Identifier: Apache-2.0
"""The hook that `syncline run` plants into Python: programs that would notice it, or break.

Usage: torch_hook_test.py BUILD_DIRECTORY WithoutTorch|WithTorch. The latter is skipped where
.venv-torch is not (scripts/setup --torch); the former runs with any Python.
"""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

import torch_program
from torch_program import EVENTS, LOOP, TORCH_PYTHON, TorchProgram, planted

# Of recordings of one process: more by hand.
REPEATS = int(os.environ.get("SYNCLINE_TEST_REPEATS", "5"))


def python(*arguments, **environment):
    done = subprocess.run(
        [sys.executable, *arguments], env=planted(**environment), capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


class WithoutTorch(unittest.TestCase):
    """Nothing of Syncline but its finder is in a Python that does not import PyTorch."""

    # Of a package called torch, which imports what the hook waits for, as PyTorch does.
    LIKE_TORCH = "import ctypes, json, signal, threading, weakref\nimport torch.light"

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="syncline-test-")
        self.addCleanup(self.folder.cleanup)

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        return path

    def test_nothing_is_loaded_and_the_path_is_as_it_was(self):
        code, said, errors = python(
            "-c",
            "import sys, json; print([p for p in sys.path if 'syncline' in p],"
            " 'ctypes' in sys.modules, 'syncline' in open('/proc/self/maps').read())",
        )
        self.assertEqual((code, said, errors), (0, "[] False False\n", ""))

    def test_a_program_that_asks_for_torch_in_vain(self):
        code, said, _ = python(
            "-c",
            "import importlib.util\n"
            "print(importlib.util.find_spec('torch_that_is_not_there'))\n"
            "try:\n  import torch_that_is_not_there.nn\n"
            "except ModuleNotFoundError as error: print(error.name)",
        )
        self.assertEqual((code, said), (0, "None\ntorch_that_is_not_there\n"))

    def test_without_site_or_isolated_python_is_as_ever(self):
        for option in ("-S", "-I", "-E"):
            code, said, errors = python(
                option, "-c", "import sys; print([f for f in sys.meta_path if 'Torch' in repr(f)])"
            )
            self.assertEqual((code, said, errors), (0, "[]\n", ""), option)

    def test_the_users_own_sitecustomize_runs_first_and_is_the_one_that_is_found(self):
        self.write("sitecustomize.py", "import os\nOWN = os.path.basename(__file__)\nprint('mine')")
        path = planted()["PYTHONPATH"] + ":" + self.folder.name
        done = subprocess.run(
            [sys.executable, "-c", "import sitecustomize; print(sitecustomize.OWN)"],
            env=dict(planted(), PYTHONPATH=path),
            capture_output=True,
            text=True,
        )
        self.assertEqual((done.stdout, done.stderr), ("mine\nsitecustomize.py\n", ""))

    def test_a_sitecustomize_that_fails_is_reported_as_python_reports_it(self):
        self.write("sitecustomize.py", "raise ValueError('mine')")
        reports = []
        for path in (self.folder.name, planted()["PYTHONPATH"] + ":" + self.folder.name):
            done = subprocess.run(
                [sys.executable, "-c", "print('runs')"],
                env=dict(planted(), PYTHONPATH=path),
                capture_output=True,
                text=True,
            )
            self.assertEqual(done.stdout, "runs\n")
            reports.append(done.stderr)
        self.assertEqual(reports[0], reports[1])
        self.assertIn("ValueError: mine", reports[0])

    def with_torch(self, program, body=LIKE_TORCH, **environment):
        """What a program says that imports a package called torch, whose __init__ is `body`."""
        self.write("torch/__init__.py", body)
        self.write("torch/light.py", "on = 1")
        path = planted()["PYTHONPATH"] + ":" + self.folder.name
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            env=dict(
                planted(),
                PYTHONPATH=path,
                SYNCLINE_RUNTIME_DIR=self.folder.name + "/run",
                **environment,
            ),
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_an_import_in_another_thread_finds_what_it_looks_for(self):
        """Python is going through the finders in one thread when another one imports torch."""
        self.write("late.py", "on = 2")
        said = self.with_torch(
            """
            import sys, threading
            class Slow:
                @staticmethod
                def find_spec(name, path=None, target=None):
                    if name == "late":
                        import torch
            sys.meta_path.insert(len(sys.meta_path) - 1, Slow)  # the next one finds files
            import late
            print(late.on, "torch.light" in sys.modules)
            """
        )
        self.assertEqual(said, "2 True\n")

    def test_a_module_that_the_hook_needs_and_another_thread_is_importing(self):
        """Python holds the lock of all imports while the hook is loaded: it must not wait there."""
        self.write(
            "signal.py",
            """
            import sys, time
            end = time.monotonic() + 0.5  # the hook is not to begin
            while "syncline_torch" not in sys.modules and time.monotonic() < end: time.sleep(0.001)
            import late
            from _signal import *
            """,
        )
        self.write("late.py", "")
        self.write("torch/later.py", "")
        said = self.with_torch(
            """
            import sys, threading
            other = threading.Thread(target=__import__, args=["signal"])
            other.start()
            while "signal" not in sys.modules: pass
            import torch
            other.join()
            print("syncline_torch" in sys.modules)
            import torch.later
            print("syncline_torch" in sys.modules)
            """,
            body="import ctypes, json, threading, weakref\nimport torch.light",
        )
        self.assertEqual(said, "False\nTrue\n")

    def test_the_hook_imports_nothing_but_what_it_waits_for(self):
        for kineto in "0", "1":
            said = self.with_torch(
                """
                import sys
                class All:
                    names = []
                    @classmethod
                    def find_spec(cls, name, path=None, target=None): cls.names.append(name)
                sys.meta_path.insert(0, All)
                import torch
                for name in All.names[All.names.index("torch.light") + 1 :]:
                    if name not in sys.builtin_module_names: print(name)
                """,
                body="import sitecustomize\n"
                "for name in sitecustomize._NEEDED: __import__(name)\n"
                "import torch.light",
                SYNCLINE_KINETO=kineto,
            ).split()
            self.assertIn("syncline_torch", said)
            self.assertEqual("syncline_kineto" in said, kineto == "1")
            self.assertEqual([name for name in said if not name.startswith("syncline_")], [])

    def test_a_signals_handler_that_raises_while_the_hook_is_loaded(self):
        """It is the program that hears of it."""
        said = self.with_torch(
            """
            import signal, sys
            class TooLong(Exception): pass
            def stop(*_): raise TooLong
            signal.signal(signal.SIGALRM, stop)
            class Alarm:
                @staticmethod
                def find_spec(name, path=None, target=None):
                    if name == "syncline_torch": signal.raise_signal(signal.SIGALRM)
            sys.meta_path.insert(0, Alarm)
            try: import torch
            except TooLong: print("too long")
            """
        )
        self.assertEqual(said, "too long\n")

    def test_a_torch_that_is_none_of_pytorchs_is_left_alone(self):
        self.assertEqual(self.with_torch("import torch; print(torch.light.on)"), "1\n")


class WithTorch(TorchProgram):
    def test_attached_again_and_again(self):
        """Names are complete each time, and its memory does not grow."""
        process = self.start("train()")
        own_kib = []
        for _ in range(REPEATS):
            events = self.record()
            self.assertGreater(self.count(events, "Optimizer.step#SGD.step"), 2)
            self.assertGreater(self.count(events, "AddmmBackward0"), 2)
            with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                own_kib += [int(line.split()[1]) for line in file if line.startswith("RssAnon")]
        # The first time it needs what it keeps; later ones need room for a new thread now and then.
        self.assertLess(own_kib[-1] - own_kib[1], 4096, own_kib)
        self.end(process)

    def test_training_is_the_same_to_the_bit(self):
        program = """
            import hashlib, sys
            torch.manual_seed(7)
            torch.use_deterministic_algorithms(True)
            network = torch.nn.Sequential(
                torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Flatten(),
                torch.nn.Linear(4 * 36, 10))
            optimizer = torch.optim.SGD(network.parameters(), 0.1, momentum=0.9)
            steps = 0
            wanted = int(os.environ.get("STEPS", 0))
            while steps != wanted if wanted else not ended.is_set():
                steps += 1
                optimizer.zero_grad()
                loss = network(torch.randn(8, 1, 8, 8)).logsumexp(1).mean()
                loss.backward()
                optimizer.step()
            weights = b"".join(p.detach().numpy().tobytes() for p in network.parameters())
            print(steps, hashlib.sha256(weights).hexdigest())
            """
        process = self.start(program)
        for _ in range(2):
            self.record()
        recorded = self.end(process)
        alone = subprocess.run(
            [TORCH_PYTHON, "-c", LOOP + textwrap.dedent(program)],
            env=dict(os.environ, STEPS=recorded.split()[0]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        self.assertEqual(alone.stdout, "step\n" + recorded)

    def test_nothing_is_left_on_afterwards(self):
        process = self.start(
            """
            import sys
            original = torch.autograd.profiler._enable_profiler
            hook = sys.modules["syncline_torch"].start.hook
            ours = hook.step_hook
            seen = set()
            threading.Thread(target=ended.is_set, args=[None]).start()  # one that does not train
            def look():
                return (str(torch._C._autograd._profiler_type()),
                        torch.autograd.profiler._enable_profiler is original, hook.awake)
            while not ended.is_set(0.01):  # asleep when the hook is called
                step()
                seen.add(look())
            # But for the hook after an optimizer step, which is there from the start, and inert.
            hooks = sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks
            print(len({kind for kind, *_ in seen}), *look(), list(hooks.values()) == [ours])
            """
        )
        self.record()
        # It says when it stopped, though it makes no call of ours but the hook's.
        said = " recording=1 off=1 "
        self.fixture.wait_for(lambda: said in self.fixture.blocks()[process.pid]["line"], "off")
        # Seen with and without it, and without it in the end.
        self.assertEqual(self.end(process), "2 ActiveProfilerType.NONE True False True\n")

    def test_the_programs_own_profiler_wins(self):
        """Begun and ended while a recording runs, and begun before one and ended after it."""
        process = self.start(
            """
            from torch.profiler import profile, ProfilerActivity
            while not ended.is_set():
                with profile(activities=[ProfilerActivity.CPU]) as mine:
                    step()
                counts = {a.key: a.count for a in mine.key_averages()}
                assert counts["aten::linear"] == 2, counts
                for _ in range(20): step()
            """
        )
        # Of several of its profiles: between two lie some 1500.
        events = self.record(lambda: self.recorded() >= 6000)
        self.assertGreater(self.count(events, "aten::linear"), 4)
        # On, off, and left to the program's profiler, which it says each time.
        said = [e.fields["on"] for e in events if e.name == "syncline_torch:operators"]
        self.assertEqual(set(said), {0, 1, 2})
        self.end(process)

    def test_a_turn_that_comes_in_the_middle_of_a_transfer(self):
        """Our observer is off for the transfer. The hook is called twice a second, between any two
        bytecodes, and must neither switch it on beneath us nor be undone by us."""
        process = self.start(
            """
            import sys, torch.distributed as dist
            from torch.testing._internal.distributed.fake_pg import FakeStore
            dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
            hook = sys.modules["syncline_torch"].start.hook
            hush, kind = hook.operators.hush, torch._C._autograd._profiler_type
            generation, seen = None, set()
            def interrupted():
                hush()
                if hook.operators.hushed():
                    before = kind().name
                    hook.turn(hook.native.gate() if generation is None else generation, True)
                    seen.add((generation, before, kind().name))
            hook.operators.hush = interrupted
            def send():
                if kind().name != "ITT": return
                dist.send(torch.ones(4), 1)
                seen.add((generation, kind().name))
            while not ended.is_set():
                step()
                send()
            assert kind().name == "ITT"
            generation = 0  # the recording ends
            send()
            assert hook.usable
            with torch.autograd.profiler.profile() as profile: torch.ones(4).cos()
            assert any(event.name == "aten::cos" for event in profile.function_events)
            for line in sorted(map(str, seen)): print(line)
            """
        )
        session = self.fixture.begin_session(events=EVENTS)
        self.fixture.set_gates(1)
        self.generation = 1
        self.fixture.wait_for(lambda: self.recorded() >= 2000, "events", 60)
        none, itt = "NONE", "ITT"
        seen = [(0, none), (0, none, none), (None, itt), (None, none, none)]
        self.assertEqual(self.end(process).splitlines(), [str(line) for line in seen])
        events, _ = self.fixture.end_session(session)
        self.assertGreater(self.count(events, "aten::linear"), 4)

    def test_a_program_that_is_as_deep_as_it_may_be(self):
        """Where the hook cannot be called: that is no error of the program's."""
        process = self.start(
            """
            import sys, time
            def bottom(seconds):
                end = time.monotonic() + seconds
                while time.monotonic() < end: pass
            def deep(levels, seconds):
                bottom(seconds) if levels == 0 else deep(levels - 1, seconds)
            def fits(levels, seconds=0):
                try: deep(levels, seconds)
                except RecursionError: return False
                return True
            levels = sys.getrecursionlimit()
            while not fits(levels): levels -= 1
            hook = sys.modules["syncline_torch"].start.hook
            while not ended.is_set():
                step()
                if hook.native.gate(): assert fits(levels, 0.7)  # it is called twice a second
            assert hook.usable
            """
        )
        self.assertGreater(self.count(self.record(), "aten::linear"), 2)
        self.end(process)

    def test_a_child_that_calls_late(self):
        """When its gate is open already, with the number of its parent's recording."""
        process = self.start(
            """
            import sys, time
            hook = sys.modules["syncline_torch"].start.hook
            while not hook.native.gate() or not hook.operators.is_here(): step()
            for _ in range(20): step()
            child = os.fork()
            if child == 0:
                while hook.native.gate() != 1 or not hook.operators.is_here(): time.sleep(0.01)
                for _ in range(200): step()
                os._exit(0)
            while os.waitpid(child, os.WNOHANG)[0] == 0: step()
            train()
            """
        )
        session = self.fixture.begin_session(events=EVENTS)
        self.generation = 1
        self.fixture.set_gates(1)
        self.fixture.wait_for(lambda: len(self.fixture.blocks()) == 2, "the child's block", 60)
        self.fixture.set_gates(1)
        self.end(process)
        events, _ = self.fixture.end_session(session)
        self.check(events)  # in the child, too
        self.assertEqual(len({e.process for e in events if e.name == "syncline:thread"}), 2)

    def test_a_loop_outside_the_main_thread(self):
        process = self.start(
            "worker = threading.Thread(target=train); worker.start(); worker.join()"
        )
        for _ in range(2):
            events = self.record()
            self.assertGreater(self.count(events, "Optimizer.step#SGD.step"), 2)
        self.end(process)

    def test_a_thread_that_trains_for_a_moment(self):
        """The main thread was alone when the recording began, and waits until that one is over."""
        process = self.start(
            """
            import sys, time
            hook = sys.modules["syncline_torch"].start.hook
            while not hook.operators.is_here(): time.sleep(0.01)
            def go():
                for _ in range(5): step()
            thread = threading.Thread(target=go)
            thread.start()
            thread.join()
            ended.is_set(None)
            """
        )
        events = self.record(lambda: self.recorded() >= 100)
        # Two a step, from the end of the thread's first step on.
        self.assertEqual(self.count(events, "aten::linear"), 8)
        self.end(process)

    def test_signal_handlers_of_the_programs_own(self):
        process = self.start(
            """
            import signal
            heard = []
            signal.signal(signal.SIGALRM, lambda *_: heard.append(threading.current_thread().name))
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
            train()
            signal.setitimer(signal.ITIMER_REAL, 0)
            print(len(heard) > 10, set(heard))
            """
        )
        self.assertGreater(self.count(self.record(), "aten::linear"), 4)
        self.assertEqual(self.end(process), "True {'MainThread'}\n")

    def test_torch_that_is_imported_while_a_recording_runs(self):
        self.generation += 1
        session = self.fixture.begin_session(events=EVENTS)
        process = self.start("train()")
        self.fixture.set_gates(self.generation)
        self.fixture.wait_for(lambda: self.recorded() >= 500, "events")
        self.end(process)
        events, _ = self.fixture.end_session(session)
        self.assertGreater(self.count(events, "aten::linear"), 2)

    def test_forked_and_spawned_data_loaders(self):
        for method in ("fork", "spawn"):
            with self.subTest(method):
                process = self.start(
                    f"""
                    class Numbers(torch.utils.data.Dataset):
                        def __len__(self): return 64
                        def __getitem__(self, i): return torch.full((8,), float(i))
                    while not ended.is_set():
                        loader = torch.utils.data.DataLoader(
                            Numbers(), batch_size=8, num_workers=2,
                            multiprocessing_context={method!r})
                        seen = 0
                        for batch in loader:
                            network(batch).sum().backward()
                            seen += len(batch)
                        assert seen == 64
                    """
                    if method == "fork"
                    else "ended.is_set(None)"
                )
                if method == "fork":
                    self.assertGreater(self.count(self.record(), "aten::linear"), 4)
                self.end(process)

    def test_the_interpreter_ends_while_it_records(self):
        self.generation = 1
        session = self.fixture.begin_session(events=EVENTS)
        process = self.start("train()")
        self.fixture.set_gates(1)
        self.fixture.wait_for(lambda: self.recorded() >= 200, "events")
        self.end(process)
        self.fixture.end_session(session)


if __name__ == "__main__":
    torch_program.main(needs_torch=sys.argv[2] == "WithTorch")
