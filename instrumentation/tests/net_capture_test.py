# SPDX-License-Identifier: Apache-2.0
"""Programs that use sockets, recorded with a real LTTng and compared with their own word.

Usage: net_capture_test.py BUILD_DIRECTORY [unittest arguments]
"""

import collections
import os
import signal
import subprocess
import sys
import threading
import unittest
from dataclasses import dataclass

import lttng_fixture
from itt_capture_test import Names
from lttng_fixture import Fixture

BUILD = None
PLACED = {"syncline_net:send": "send", "syncline_net:receive": "receive"}
UNPLACED = {"syncline_net:send_unplaced": "send", "syncline_net:receive_unplaced": "receive"}


@dataclass(frozen=True)
class Call:
    """What a call moved, by its own word or by an event's."""

    direction: str
    tid: int
    ports: tuple
    begin: int
    bytes: int


class Recording:
    def __init__(self, events):
        self.events = events
        self.names = Names(events)
        self.connections = {}  # (pid, cookie) -> its announcement
        for event in self.of("connection"):
            self.connections[self.names.pid(event), event.connection] = event

    def of(self, *kinds):
        return [e for e in self.events if e.name in ["syncline_net:" + kind for kind in kinds]]

    def ports(self, event):
        announced = self.connections[self.names.pid(event), event.connection]
        return announced.local_port, announced.remote_port

    def placed(self):
        """Calls with the times in which they lie."""
        for event in self.of("send", "receive"):
            call = Call(
                PLACED[event.name],
                self.names.tid(event),
                self.ports(event),
                event.begin,
                event.bytes,
            )
            yield call, event.since, event.time_ns


def read_truth(path):
    """Call -> (before, after)."""
    calls = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            direction, *numbers = line.split("\t")
            tid, local, remote, begin, count, t0, t1 = map(int, numbers)
            calls[Call(direction, tid, (local, remote), begin, count)] = (t0, t1)
    return calls


class NetTest(unittest.TestCase):
    def setUp(self):
        self.fixture = Fixture(BUILD)
        self.addCleanup(self.fixture.close)
        self.truth = os.path.join(self.fixture.directory, "truth")
        self.fixture.start_daemon()

    def start(self, *scenario, **environment):
        preload = os.path.join(self.fixture.build, "lib/libsyncline_net.so")
        if scenario[0].startswith("closed-late"):
            preload += ":" + os.path.join(self.fixture.build, "tests/net_slow.so")
        process = self.fixture.start(
            *scenario,
            self.truth,
            program="tests/net_traps",
            registered=True,
            LD_PRELOAD=preload,
            **environment,
        )
        watchdog = threading.Timer(120, process.kill)  # a deadlock is a failure, not a long wait
        watchdog.start()
        self.addCleanup(watchdog.cancel)
        return process

    def said(self, process, word):
        lines = []
        for line in process.stdout:
            if line.rstrip("\n") == word:
                return lines
            lines.append(line.split())
        self.fail(f"{word} was not said: {lines}, {process.stderr.read()}")

    def go(self, process):
        process.stdin.write("go\n")
        process.stdin.flush()

    def record(self, *scenario, subbuffer="1M", meanwhile=None, **environment):
        """Records from "ready" to "done"; (recording, what the program said)."""
        f = self.fixture
        process = self.start(*scenario, **environment)
        self.said(process, "ready")
        session = f.begin_session(subbuffer=subbuffer, events=("syncline:*", "syncline_net:*"))
        f.set_gates(1)
        self.go(process)
        if meanwhile is not None:
            meanwhile(process)
        lines = self.said(process, "done")
        self.block = f.blocks()[process.pid]
        f.set_gates(0)
        self.go(process)
        self.assertEqual(f.finish(process), "")
        events, discarded = f.end_session(session)
        self.assertEqual(discarded, 0)
        return Recording(events), lines

    def assert_true(self, recording, truth):
        """Every placed transfer is a call of the truth, in its time; which calls those are."""
        seen = set()
        for call, since, until in recording.placed():
            self.assertIn(call, truth)
            before, after = truth[call]
            self.assertLessEqual(before, since, call)
            self.assertLessEqual(since, until, call)
            self.assertLessEqual(until, after, call)
            self.assertNotIn(call, seen)
            seen.add(call)
        return seen


class Positions(NetTest):
    def test_every_byte_has_its_place_also_from_the_middle_of_a_connection_on(self):
        recording, _ = self.record("stream", subbuffer="4M")
        truth = read_truth(self.truth)
        seen = self.assert_true(recording, truth)
        self.assertEqual(len(recording.connections), 6)  # both ends of three
        self.assertFalse(recording.of("doubt", "send_unplaced", "receive_unplaced"))
        # It began in the middle, in every direction.
        for ends in recording.connections:
            placed = [e for e in recording.of("send", "receive") if e.connection == ends[1]]
            self.assertEqual({e.name for e in placed}, set(PLACED))
            self.assertTrue(all(e.begin > 0 for e in placed))
        # Nothing is missing between the first and the last of a direction.
        per_direction = collections.defaultdict(list)
        for call in seen:
            per_direction[call.direction, call.ports].append(call)
        self.assertEqual(len(per_direction), 12)
        for calls in per_direction.values():
            calls.sort(key=lambda call: call.begin)
            for one, next_one in zip(calls, calls[1:]):
                self.assertEqual(one.begin + one.bytes, next_one.begin)
            self.assertGreater(len(calls), 50)

    def test_two_threads_at_once_have_no_order_and_the_others_the_right_one(self):
        recording, _ = self.record("shared", subbuffer="4M")
        where, calls = {}, {}
        with open(self.truth, encoding="utf-8") as lines:
            for line in lines:
                words = line.split("\t")
                if words[0] == "call":
                    tid, sender, number, t0, t1 = map(int, words[1:])
                    calls[tid, sender, number] = (t0, t1)
                else:
                    sender, number, at = map(int, words)
                    where[sender, number] = at
        by_thread = collections.defaultdict(list)
        for (tid, sender, number), times in calls.items():
            by_thread[tid].append((times, where[sender, number]))
        sends = recording.of("send", "send_unplaced")
        self.assertEqual(sum(e.bytes for e in sends), 64 * len(where))
        for event in recording.of("send"):
            tid = recording.names.tid(event)
            own = [at for (t0, t1), at in by_thread[tid] if t0 <= event.since <= t1]
            self.assertEqual(own, [event.begin])
        for event in recording.of("receive"):
            self.assertEqual(event.begin % 64, 0)

    def test_bytes_that_pass_unseen_are_noticed(self):
        recording, _ = self.record("bypass")
        doubts = [(e.direction, e.expected, e.found) for e in recording.of("doubt")]
        self.assertEqual(doubts, [(0, 100, 1100), (0, 1130, 1137)])  # later, and at the end
        sends = [(e.begin, e.bytes) for e in recording.of("send")]
        self.assertEqual(sends, [(0, 100), (1100, 10), (1110, 20)])
        self.assertEqual(sum(e.bytes for e in recording.of("receive")), 1137)


    def test_an_answer_that_is_read_when_the_connection_is_closed(self):
        recording, _ = self.record("half-closed")
        self.assertEqual(recording.of("send_unplaced", "receive_unplaced", "doubt"), [])
        self.assert_true(recording, read_truth(self.truth))
        self.assertEqual(sum(e.bytes for e in recording.of("receive")), 20 * 400)


class Life(NetTest):
    def test_files_pipes_unix_and_datagram_sockets_are_not_recorded(self):
        recording, _ = self.record("files")
        self.assertEqual(recording.of("connection", "send", "receive", "send_unplaced"), [])

    def test_a_number_that_means_another_thing_now(self):
        recording, lines = self.record("reuse")
        said = {line[0]: int(line[1]) for line in lines}
        sent = collections.Counter()
        for event in recording.of("send"):
            sent[recording.ports(event)[0]] += event.bytes
        self.assertEqual(sent.pop(said["first"]), 100)  # and nothing of the file
        self.assertEqual(sorted(sent.values()), [70, 100])
        self.assertFalse(recording.of("doubt", "send_unplaced", "receive_unplaced"))

    def test_results_and_errors_stay(self):
        recording, _ = self.record("errors")
        self.assertGreaterEqual(sum(e.bytes for e in recording.of("receive")), 20)

    def test_signal_handlers_may_send(self):
        recording, lines = self.record("signals", subbuffer="4M")
        truth = read_truth(self.truth)
        handler = int(dict((line[0], line[1]) for line in lines)["handler"])
        main = [
            e
            for e in recording.of("send")
            if any(c.ports == recording.ports(e) for c in list(truth)[:1])
        ]
        self.assertEqual(sum(e.bytes for e in main), 10000 * 20)
        self.assertEqual([e.begin for e in main], [20 * i for i in range(10000)])
        # What the handlers sent inside our own code is not there, is counted, and nothing of it is
        # wrong.
        sends = recording.of("send", "send_unplaced")
        from_handlers = [e for e in sends if e.connection != main[0].connection]
        self.assertEqual(len(from_handlers) + self.block["lost"], handler // 16)
        others = [e for e in recording.of("send") if e.connection != main[0].connection]
        self.assertGreater(len(others), 10)
        self.assertLessEqual(sum(e.bytes for e in others), handler)
        begins = [e.begin for e in others]
        self.assertEqual(begins, sorted(set(begins)))
        self.assertTrue(all(begin % 16 == 0 for begin in begins))

    def test_a_child_records_its_own_and_a_shared_connection_is_doubted(self):
        def open_the_gate_of_the_child(process):
            self.said(process, "child")
            self.fixture.wait_for_blocks(2)
            self.fixture.set_gates(1)
            self.go(process)

        recording, _ = self.record("fork", meanwhile=open_the_gate_of_the_child)
        truth = read_truth(self.truth)
        self.assert_true(recording, truth)
        children = [c for c in truth if c.direction == "send" and c.bytes == 11]
        placed = {call for call, *_ in recording.placed()}
        self.assertLessEqual(set(children), placed)
        (doubt,) = recording.of("doubt")
        self.assertEqual((doubt.expected, doubt.found), (1000, 1500))
        self.assertEqual({c.bytes for c in placed if c.bytes in (33, 44)}, {33, 44})

    def test_children_go_on_at_once_and_have_a_block_when_they_need_one(self):
        """Also while the session daemon hangs, for which LTTng-UST would wait 20 s here."""
        f = self.fixture
        process = self.start("children")
        for daemon_hangs, recorded in ((False, False), (True, False), (True, True)):
            self.said(process, "ready")
            before = set(f.blocks())
            if daemon_hangs:
                f.daemon.send_signal(signal.SIGSTOP)
            if recorded:
                f.set_gates(1)
            self.go(process)
            try:
                ((_, behind_ms),) = self.said(process, "child")
                self.assertEqual(set(f.blocks()), before)
                self.go(process)
                self.said(process, "connected")
                self.assertEqual(len(f.blocks()), len(before) + 1)
                self.go(process)
            finally:
                f.daemon.send_signal(signal.SIGCONT)
            self.assertLess(int(behind_ms), 10000)
        process.kill()
        process.wait()

    def test_five_hundred_threads(self):
        recording, _ = self.record("threads", subbuffer="4M")
        truth = read_truth(self.truth)
        self.assertEqual(self.assert_true(recording, truth), set(truth))
        self.assertEqual(len({call.tid for call in truth}), 500)

    def test_without_descriptors(self):
        recording, _ = self.record("descriptors")
        truth = read_truth(self.truth)
        self.assertEqual(self.assert_true(recording, truth), set(truth))


class Closed(NetTest):
    """Programs that close every descriptor that they find, LTTng's among them: between recordings,
    and in one. They live on, what they open meanwhile is left alone, and the next recording has
    them again."""

    def next_recording(self, generation, processes):
        f = self.fixture
        # To be asked for its events shows a program that its connection is gone.
        f.wait_for(lambda: f.lttng("list", "-u").stdout.count("net_traps") >= processes, "LTTng")
        session = f.begin_session(events=("syncline:*", "syncline_net:*"))
        f.set_gates(generation)
        return session

    def check(self, form, processes=1):
        f = self.fixture
        process = self.start("closed-" + form)
        self.said(process, "awake")
        self.go(process)
        self.said(process, "ready")
        session = self.next_recording(1, processes)
        self.go(process)
        self.said(process, "closed")
        f.set_gates(0)
        events, discarded = f.end_session(session)
        self.assertEqual((len(Recording(events).of("send")), discarded), (20, 0))
        session = self.next_recording(2, processes)
        self.go(process)
        self.said(process, "done")
        f.set_gates(0)
        events, _ = f.end_session(session)
        self.go(process)
        self.assertEqual(f.finish(process), "")
        recording = Recording(events)
        self.assertEqual(len(recording.of("send")), 10)
        self.assertEqual(len(recording.of("receive")), 10)

    def test_close_range(self):
        self.check("close_range")

    def test_closefrom(self):
        self.check("closefrom")

    def test_system_call(self):
        self.check("raw")

    def test_loop_in_a_child(self):
        self.check("child", processes=2)

    def test_loop_in_a_child_while_lttng_is_sent_descriptors(self):
        self.check("late-child", processes=2)

    def test_loop_in_a_child_that_forks_later(self):
        self.check("late-children", processes=2)

    def test_loop_before_a_fork(self):
        self.check("daemon", processes=2)

    def test_the_numbers_are_used_again(self):
        self.check("filled")


class Manners(NetTest):
    def test_a_program_without_tcp_makes_no_block(self):
        preload = os.path.join(self.fixture.build, "lib/libsyncline_net.so")
        environment = dict(self.fixture.environment, LD_PRELOAD=preload)
        done = subprocess.run(
            ["sh", "-c", "echo one | cat; grep -c root /etc/passwd >/dev/null; echo two"],
            env=environment,
            capture_output=True,
            text=True,
        )
        self.assertEqual((done.stdout, done.stderr), ("one\ntwo\n", ""))
        self.assertFalse(os.path.exists(self.fixture.runtime))

    def test_without_its_provider_the_program_runs(self):
        """LTTng is missing on this node, or the installation is damaged."""
        folder = os.path.join(self.fixture.directory, "lib")
        os.mkdir(folder)
        for name in ("libsyncline_net.so", "libsyncline_block.so"):
            os.symlink(os.path.join(self.fixture.build, "lib", name), os.path.join(folder, name))
        done = subprocess.run(
            [os.path.join(self.fixture.build, "tests/net_traps"), "errors"],
            env=dict(
                self.fixture.environment, LD_PRELOAD=os.path.join(folder, "libsyncline_net.so")
            ),
            input="\n\n",
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_attached_again_and_again(self):
        f = self.fixture
        process = self.start("stream")
        self.said(process, "ready")
        for generation in range(1, 7):
            session = f.begin_session(events=("syncline:*", "syncline_net:*"), subbuffer="4M")
            f.set_gates(generation)
            f.wait_for(lambda: f.blocks()[process.pid]["events"] > 100, "events")
            f.set_gates(0)
            events, _ = f.end_session(session)
            recording = Recording(events)
            self.assertTrue(recording.connections)
            self.assertFalse(recording.of("doubt"))
            self.last = recording
        self.go(process)
        self.said(process, "done")
        self.go(process)
        f.finish(process)
        truth = read_truth(self.truth)
        for call, *_ in self.last.placed():
            self.assertIn(call, truth)


if __name__ == "__main__":
    lttng_fixture.enter_namespaces()
    BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
