# SPDX-License-Identifier: Apache-2.0
"""Programs that do with ITT what breaks collectors, recorded with a real LTTng.

Usage: itt_traps_test.py BUILD_DIRECTORY [unittest arguments]
"""

import collections
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import lttng_fixture
from itt_capture_test import CaptureTest, Names
from lttng_fixture import Fixture, read_truth

BUILD = None


def of(events, *kinds):
    return [e for e in events if e.name in ["syncline_itt:" + kind for kind in kinds]]


class Trap(unittest.TestCase):
    daemon = True

    def setUp(self):
        self.fixture = Fixture(BUILD)
        self.addCleanup(self.fixture.close)
        if self.daemon:
            self.fixture.start_daemon()

    def start(self, *scenario, **environment):
        environment.setdefault("registered", True)
        process = self.fixture.start(*scenario, program="tests/itt_traps", **environment)
        watchdog = threading.Timer(60, process.kill)  # a deadlock is a failure, not a long wait
        watchdog.start()
        self.addCleanup(watchdog.cancel)
        return process

    def said(self, process, word):
        """Waits until the program says `word`; what it said before."""
        lines = []
        for line in process.stdout:
            if line.rstrip("\n") == word:
                return lines
            lines.append(line.split())
        self.fail(f"{word} was not said: {lines}, {process.stderr.read()}")

    def go(self, process):
        process.stdin.write("go\n")
        process.stdin.flush()

    def record(self, *scenario, subbuffer="1M", **environment):
        """Records from "ready" to "done"; (events, what the program said)."""
        f = self.fixture
        process = self.start(*scenario, **environment)
        self.said(process, "ready")
        session = f.begin_session(subbuffer=subbuffer)
        f.set_gates(1)
        self.go(process)
        lines = self.said(process, "done")
        self.block = f.blocks()[process.pid]
        self.go(process)
        self.assertEqual(f.finish(process), "")
        events, discarded = f.end_session(session)
        self.assertEqual(discarded, 0)
        return events, lines

    def names_of(self, events, kind, key="name"):
        names = Names(events)
        return [names.text(e, key) for e in of(events, kind)]


class Calls(Trap):
    def test_the_old_half_of_the_api(self):
        events, _ = self.record("legacy")
        self.assertEqual(self.names_of(events, "event_start"), ["first event", "second event"])
        self.assertEqual(self.names_of(events, "event_end"), ["first event", "second event"])
        self.assertEqual(self.names_of(events, "frame_begin", "domain"), ["old frame"] * 3)
        self.assertEqual(self.names_of(events, "frame_end", "domain"), ["old frame"] * 3)
        self.assertEqual(self.names_of(events, "marker"), ["old mark"] * 2)
        self.assertEqual([e.scope for e in of(events, "marker")], [3, 1])
        self.assertEqual(
            [(e.fn, e.fields["name"]) for e in of(events, "task_begin_fn")], [(0x1234, 0)]
        )
        self.assertEqual(len(of(events, "task_end")), 1)
        self.assertEqual(self.names_of(events, "sync"), ["mutex big lock"])
        self.assertEqual(of(events, "counter_u64", "counter_i64"), [])

    def test_pointers_that_go_live_while_other_threads_call(self):
        events, lines = self.record("going-live", subbuffer="8M")
        truth = {f"task of part {n}": int(pairs) for _, n, pairs in lines}
        self.assertEqual(len(truth), 47)
        for kind in ("task_begin", "task_end"):
            self.assertEqual(collections.Counter(self.names_of(events, kind)), truth)
        self.assertEqual(set(self.names_of(events, "task_begin", "domain")), {"part"})
        self.assertEqual(self.block["lost"], 0)

    def test_what_is_said_of_a_counter_and_of_the_current_task(self):
        events, _ = self.record("said")
        names = Names(events)
        found = [
            (e.kind, names.text(e, "text") or e.value) if "kind" in e.fields else e.value
            for e in of(events, "counter_metadata", "counter_u64")
        ]
        before = [(3, "x" * 255), (5, "B"), (10, 4096)]
        self.assertEqual(found, [*before, 5, 10, *before, (15, 1), 15])
        self.assertEqual(set(self.names_of(events, "counter_metadata")), {"bytes"})
        self.assertEqual(set(self.names_of(events, "counter_metadata", "domain")), {"said"})
        relations = [((e.d1, e.d2, e.d3), (e.e1, e.e2, e.e3)) for e in of(events, "relation")]
        nobody, tail = (0, 0, 0), (4, 5, 6)
        self.assertEqual(relations, [((1, 2, 3), tail), (nobody, tail), (nobody, tail)])
        self.assertEqual(self.block["lost"], 0)

    def test_a_task_of_the_last_recording_is_not_current_in_the_next(self):
        f = self.fixture
        process = self.start("across")
        heads = []
        for number, (before, after) in enumerate((("ready", "between"), ("", "done"))):
            if before:
                self.said(process, before)
            session = f.begin_session()
            f.set_gates(number + 1)
            self.go(process)
            self.said(process, after)
            events, discarded = f.end_session(session)
            f.set_gates(0)
            self.assertEqual(discarded, 0)
            heads.append([(e.d1, e.d2, e.d3) for e in of(events, "relation")])
        self.go(process)
        self.assertEqual(f.finish(process), "")
        self.assertEqual(heads, [[(1, 2, 3)], [(0, 0, 0)]])

    def test_pause_resume_and_detach(self):
        events, _ = self.record("pause")
        kinds = [e.name.split(":")[1] for e in events]
        self.assertEqual(
            [k for k in kinds if k not in ("name", "thread")],
            "on pause resume task_begin task_end task_end pause resume off".split(),
        )
        self.assertEqual(self.names_of(events, "task_begin"), ["task 2"])
        self.assertEqual(self.names_of(events, "task_end"), ["task 2", "task 1"])

    def test_five_hundred_threads_that_end_while_recording(self):
        events, _ = self.record("crowd")
        names = Names(events)
        members = collections.Counter(n for _, _, n in names.threads.values() if "member" in n)
        self.assertEqual(members, {f"member {i}": 1 for i in range(500)})
        depth = collections.Counter()
        for event in of(events, "task_begin", "task_end"):
            self.assertEqual(names.text(event, "name"), "member")
            depth[event.thread] += 1 if event.name.endswith("begin") else -1
        # Also what a thread left open has an end, and what its last destructors began.
        self.assertEqual(set(depth.values()), {0})
        self.assertEqual(len(of(events, "task_begin")), 1000)
        self.assertEqual(self.block["lost"], 0)

    def test_signal_handlers(self):
        events, _ = self.record("signals", subbuffer="4M")
        names = Names(events)
        stacks = collections.defaultdict(list)
        seen = collections.Counter()
        for event in of(events, "task_begin", "task_end"):
            key = event.domain, event.fields["name"]
            stack = stacks[event.thread]
            if event.name.endswith("begin"):
                stack.append(key)
                self.assertEqual(event.depth, len(stack) - 1)
                seen[names.text(event, "name").split()[0]] += 1
            elif stack:
                self.assertEqual(stack.pop(), key)
        self.assertGreater(seen["main"], 100)
        self.assertGreater(seen["thread"], 100)
        self.assertGreater(seen["handler"], 10)

    def test_two_containers_of_one_user_share_no_keys(self):
        """Each has a /dev/shm, thus a runtime directory, of its own; one LTTng records both."""
        f = self.fixture
        places = [f.runtime, f.runtime + "-2"]
        processes = [self.start("legacy", SYNCLINE_RUNTIME_DIR=place) for place in places]
        for process in processes:
            self.said(process, "ready")
        session = f.begin_session()
        for place in places:
            f.block_tool("set", place, 1)
        for process in processes:
            self.go(process)
            self.said(process, "done")
            self.go(process)
            f.finish(process)
        events, _ = f.end_session(session)
        names = Names(events)
        self.assertEqual(
            sorted(p.pid for p in names.processes.values()), sorted(p.pid for p in processes)
        )
        self.assertEqual(
            sorted(names.tid(e) for e in of(events, "task_begin_fn")),
            sorted(p.pid for p in processes),
        )


class Life(Trap):
    def test_forks_with_other_threads_inside_calls(self):
        f = self.fixture
        process = self.start("fork")
        self.said(process, "ready")
        f.begin_session(subbuffer="64k")
        over = threading.Event()

        def toggle():  # recordings begin and end meanwhile, in the children too
            generation = 0
            while not over.wait(0.002):
                generation += 1
                try:
                    f.set_gates(generation if generation % 2 else 0)
                except subprocess.CalledProcessError:
                    pass  # a child ended before its block was opened

        toggler = threading.Thread(target=toggle)
        toggler.start()
        try:
            self.go(process)
            self.said(process, "forked")
        finally:
            over.set()
            toggler.join()
        self.go(process)
        f.finish(process)

    def test_exec(self):
        f = self.fixture
        process = self.start("exec")
        self.said(process, "ready")
        session = f.begin_session()
        f.set_gates(1)
        self.go(process)
        self.said(process, "executed")
        f.set_gates(2)
        self.go(process)
        self.said(process, "done")
        self.go(process)
        f.finish(process)
        events, _ = f.end_session(session)
        self.assertEqual(self.names_of(events, "task_begin"), ["before", "after"])
        on = [e for e in events if e.name == "syncline:on"]
        self.assertEqual([e.pid for e in on], [process.pid] * 2)
        self.assertNotEqual(on[0].process, on[1].process)

    def test_a_library_is_unloaded_with_its_static_part(self):
        events, _ = self.record("unload", os.path.join(BUILD, "tests/itt_plugin.so"))
        expected = [f"task of plugin {i}" for i in range(20)]
        self.assertEqual(self.names_of(events, "task_begin"), expected)
        self.assertEqual(self.names_of(events, "task_end"), ["task of plugin 100"] + expected)
        domains = [f"plugin {i}" for i in range(20)]
        self.assertEqual(self.names_of(events, "task_begin", "domain"), domains)

    def test_calls_at_the_end_of_threads_and_of_the_program(self):
        f = self.fixture
        process = self.start("exit")
        self.said(process, "ready")
        session = f.begin_session()
        f.set_gates(1)
        self.go(process)
        self.assertEqual(f.finish(process), "")
        events, _ = f.end_session(session)
        begun = collections.Counter(self.names_of(events, "task_begin"))
        self.assertEqual(begun, {"task": 30, "made at the end": 1})
        self.assertEqual(events[-1].name, "syncline:off")
        self.assertEqual(events[-1].events, len(events))

    def test_memory_that_is_given_back_as_a_thread_ends_calls_itt(self):
        process = self.start("deep-exit", LD_PRELOAD=os.path.join(BUILD, "tests/itt_allocator.so"))
        self.said(process, "ready")
        self.go(process)
        self.assertEqual(self.fixture.finish(process), "")

    def test_an_allocator_that_calls_itt(self):
        f = self.fixture
        truth = os.path.join(f.directory, "truth")
        options = "--tasks 0 --duration-ms 60000 --threads 2 --temporaries --work-ns 50000 --fork"
        process = f.start(
            "--truth",
            truth,
            *options.split(),
            registered=True,
            LD_PRELOAD=os.path.join(BUILD, "tests/itt_allocator.so"),
        )
        f.wait_for_blocks(2)
        session = f.begin_session()
        f.set_gates(1)
        time.sleep(0.2)
        closing_ns = time.monotonic_ns()
        f.set_gates(0)
        f.stop(process)
        events, discarded = f.end_session(session)
        self.assertEqual(discarded, 0)
        names = Names(events)
        mine = {
            names.text(e, "name")
            for e in of(events, "task_begin")
            if names.text(e, "domain") == "allocator"
        }
        self.assertEqual(mine, {"malloc"})
        others = [
            e
            for e in events
            if e.name.startswith("syncline:") or names.text(e, "domain") != "allocator"
        ]
        CaptureTest.assert_spans(self, others, read_truth(truth), closing_ns)


class Handlers(Trap):
    """Threads whose first call is in a signal handler that interrupted the allocator, in a program
    with more thread-specific keys than a thread has room for."""

    def start(self, *scenario, **environment):
        allocator = os.path.join(BUILD, "tests/strict_allocator.so")
        return super().start(*scenario, LD_PRELOAD=allocator, **environment)

    def test_nothing_is_recorded(self):
        process = self.start("handler")
        for word in ("ready", "done"):
            self.said(process, word)
            self.go(process)
        self.assertEqual(self.fixture.finish(process), "")

    def test_recorded(self):
        events, _ = self.record("handler")
        # One of the main thread, one of each of six threads, and five in handlers.
        self.assertEqual(len(of(events, "task_begin")), 7)
        self.assertEqual(len(of(events, "task_end")), 7)
        self.assertEqual(self.block["lost"], 10)


class Early(Trap):
    def test_what_is_called_before_the_tracer_knows_of_the_session_is_counted(self):
        f = self.fixture
        session = f.begin_session()
        f.daemon.send_signal(signal.SIGSTOP)  # a session daemon too busy for newcomers
        try:
            process = self.start("early", registered=False)
            self.said(process, "ready")
            f.set_gates(1)
            self.go(process)
            f.wait_for(lambda: f.blocks()[process.pid]["lost"] > 20, "calls")
        finally:
            f.daemon.send_signal(signal.SIGCONT)
        self.said(process, "done")
        block = f.blocks()[process.pid]
        self.go(process)
        f.finish(process)
        events, _ = f.end_session(session)
        tasks = of(events, "task_begin", "task_end")
        self.assertGreater(len(tasks), 10)
        self.assertEqual(block["lost"] + len(tasks), 400)  # each call of the program is in one
        self.assertEqual(block["events"] + 1, len(events))  # `off` came later
        self.assertEqual(events[0].name, "syncline:on")


if __name__ == "__main__":
    lttng_fixture.enter_namespaces()
    BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
