# SPDX-License-Identifier: Apache-2.0
"""Records ITT programs with a real LTTng and compares the trace with what they say they did.

Usage: itt_capture_test.py BUILD_DIRECTORY [unittest arguments]
"""

import bisect
import collections
import os
import shutil
import signal
import sys
import threading
import time
import unittest

import lttng_fixture
from lttng_fixture import Fixture, read_truth

BUILD = None


class Names:
    """What the announcements in a trace say, per process."""

    def __init__(self, events):
        self.processes = {}  # process key -> its "on" event
        self.threads = {}  # thread key -> (process key, tid, name)
        self.texts = collections.defaultdict(dict)
        for event in events:
            if event.name == "syncline:on":
                self.processes[event.process] = event
            elif event.name == "syncline:thread":
                self.threads[event.thread] = (event.process, event.tid, event.fields["name"])
            elif event.name == "syncline:name":
                self.texts[event.process][event.id] = event.text

    def tid(self, event):
        return self.threads[event.thread][1]

    def pid(self, event):
        return self.processes[self.threads[event.thread][0]].pid

    def text(self, event, key):
        value = event.fields[key]
        return self.texts[self.threads[event.thread][0]][value] if value else ""


class CaptureTest(unittest.TestCase):
    daemon = True

    def setUp(self):
        self.fixture = Fixture(BUILD)
        self.addCleanup(self.fixture.close)
        self.truth = os.path.join(self.fixture.directory, "truth")
        if self.daemon:
            self.fixture.start_daemon()

    def start_truth(self, *options, **environment):
        """Tasks of 50 us unless asked otherwise: enough of them, and a trace soon read."""
        forever = "--tasks 0 --duration-ms 60000 --work-ns 50000".split()
        return self.fixture.start(
            "--truth", self.truth, *forever, *options, registered=self.daemon, **environment
        )

    def record(self, *options, wait_blocks=1, window_s=0.3, **session):
        """Runs the truth program and records its middle; (events, discarded, facts)."""
        f = self.fixture
        process = self.start_truth(*options)
        f.wait_for_blocks(wait_blocks)
        name = f.begin_session(**session)
        f.set_gates(1)
        time.sleep(window_s)
        self.close_gates()
        f.stop(process)
        events, discarded = f.end_session(name)
        return events, discarded, read_truth(self.truth)

    def close_gates(self):
        """Ends what assert_spans expects: threads go on while one of them writes `off`."""
        self.closing_ns = time.monotonic_ns()
        self.fixture.set_gates(0)

    def assert_spans(self, events, facts, closing_ns=None):
        """Every task of the trace is one of the truth; all that end until closing_ns are there.

        That is CLOCK_MONOTONIC, by default the last close_gates().
        """
        matched = set()
        names = Names(events)
        begins = [
            e for e in events if e.name in ("syncline_itt:task_begin", "syncline_itt:task_begin_id")
        ]
        ends = [e for e in events if e.name == "syncline_itt:task_end"]
        spans = collections.defaultdict(list)
        for fact in facts:
            if fact.kind == "span":
                pid, tid, depth, *times = map(int, fact.values[:7])
                spans[pid, tid].append((times, depth, fact.values[7], fact.values[8]))
        for index, found in ((0, begins), (2, ends)):
            for thread in spans.values():
                thread.sort(key=lambda span: span[0][index])
            starts = {key: [s[0][index] for s in thread] for key, thread in spans.items()}
            for event in found:
                key = names.pid(event), names.tid(event)
                # Calls of one thread do not overlap: the last one that began before the event is
                # its own.
                at = bisect.bisect_right(starts[key], event.time_ns) - 1
                times, *expected = spans[key][at]
                self.assertLessEqual(event.time_ns, times[index + 1], event)
                matched.add((key, times[index]))
                self.assertEqual(
                    [event.depth, names.text(event, "domain"), names.text(event, "name")],
                    expected,
                    event,
                )
        on = max(e.time_ns for e in events if e.name == "syncline:on")
        off = self.closing_ns if closing_ns is None else closing_ns
        inside = {
            (key, t[i])
            for key, thread in spans.items()
            for t, *_ in thread
            for i in (0, 2)
            if t[i] > on and t[i + 1] < off
        }
        self.assertGreater(len(inside), 100)
        self.assertEqual(inside - matched, set())
        return names

    def assert_numbered(self, events):
        """The tasks of each thread have numbers without a gap."""
        numbers = collections.defaultdict(list)
        for event in sorted(events, key=lambda event: event.time_ns):
            if "number" in event.fields:
                numbers[event.thread].append(event.number)
        self.assertTrue(numbers)
        for found in numbers.values():
            counted = [(found[0] + i) % 65536 for i in range(len(found))]
            self.assertEqual(found, counted)

    def count(self, events, name):
        return sum(1 for e in events if e.name == name)


class Recorded(CaptureTest):
    def test_everything_is_there_with_its_names(self):
        kinds = "--metadata --frames --counters --markers --overlapped --ids --temporaries"
        events, discarded, facts = self.record("--threads", 2, *kinds.split())
        self.assertEqual(discarded, 0)
        self.assert_numbered(events)
        names = self.assert_spans(events, facts)
        truth = {"text": [], "number": [], "marker": [], "counter": [], "frame": [], "over": []}
        for fact in facts:
            truth.setdefault(fact.kind, []).append(fact.values)
        on = max(e.time_ns for e in events if e.name == "syncline:on")
        off = self.closing_ns

        def calls(kind, at, value):
            """What calls inside the window left, and what those that touch it may have."""
            touching = [v for v in truth[kind] if int(v[at]) < off and int(v[at + 1]) > on]
            inside = [v for v in touching if int(v[at]) > on and int(v[at + 1]) < off]
            return [collections.Counter(map(value, some)) for some in (inside, touching)]

        def assert_recorded(seen, kind, at, value):
            seen = collections.Counter(seen)
            certain, possible = calls(kind, at, value)
            self.assertGreater(len(certain), 0, kind)
            self.assertEqual(certain - seen, {}, kind)
            self.assertEqual(seen - possible, {}, kind)

        def found(*kinds):
            return [
                e
                for e in events
                if e.name in ["syncline_itt:" + k for k in kinds] and on < e.time_ns < off
            ]

        texts = [
            e.text if e.name.endswith("text") else names.text(e, "text")
            for e in found("metadata_text", "metadata_name")
        ]
        assert_recorded(texts, "text", 3, lambda v: v[7])
        self.assertGreater(
            self.count(events, "syncline_itt:metadata_name"),
            self.count(events, "syncline_itt:metadata_text"),
        )
        assert_recorded(
            (e.fields["values"][0] for e in found("metadata_i64")), "number", 3, lambda v: int(v[7])
        )
        assert_recorded(
            (names.text(e, "name") for e in found("marker")), "marker", 3, lambda v: "mark"
        )
        assert_recorded((e.value for e in found("counter_u64")), "counter", 3, lambda v: int(v[2]))
        self.assertEqual({names.text(e, "name") for e in found("counter_u64")}, {"count"})
        assert_recorded(
            ((names.tid(e), e.d1) for e in found("frame_begin")),
            "frame",
            3,
            lambda v: (int(v[1]), int(v[2])),
        )
        overlapped = {(int(v[1]), int(v[2])): v[8] for v in truth["over"]}
        for event in found("task_begin_overlapped", "task_end_overlapped"):
            self.assertEqual(names.text(event, "name"), overlapped[names.tid(event), event.d1])
        self.assertEqual({name for _, _, name in names.threads.values()}, {"truth 0", "truth 1"})

    def test_the_process_counts_what_the_trace_holds(self):
        f = self.fixture
        process = self.start_truth("--threads", 2)
        f.wait_for_blocks()
        name = f.begin_session()
        f.set_gates(7)
        time.sleep(0.3)
        f.set_gates(0)
        time.sleep(0.1)
        block = f.blocks()[process.pid]
        events, discarded = f.end_session(name)
        self.assertEqual((discarded, block["lost"]), (0, 0))
        self.assertEqual(block["events"], len(events))
        off = [e for e in events if e.name == "syncline:off"]
        self.assertEqual([e.generation for e in off], [7])
        self.assertLessEqual(off[0].events, len(events))
        f.stop(process)
        # The program timed every call from outside, reading a clock twice for each: what our code
        # took is less than that, and not less by more than those readings.
        on = next(e.time_ns for e in events if e.name == "syncline:on")
        calls = []
        for fact in read_truth(self.truth):
            if fact.kind == "span":
                t = list(map(int, fact.values[3:7]))
                calls += [b - a for a, b in (t[:2], t[2:]) if a > on and b < off[0].time_ns]
        self.assertGreater(len(calls), len(events) / 2)
        self.assertLessEqual(block["cost_lo_ns"], sum(calls))
        uninterrupted = sum(ns for ns in calls if ns < 50000)
        self.assertGreaterEqual(block["cost_hi_ns"], uninterrupted - 200 * len(calls))
        self.assertLess(block["cost_lo_ns"], block["cost_ns"])
        self.assertLess(block["cost_ns"], block["cost_hi_ns"])
        self.assertGreater(block["cost_ns"], uninterrupted / 5)
        self.assertLess(block["cost_ns"], sum(calls) * 5)

    def test_five_recordings_of_one_process_each_know_every_name(self):
        f = self.fixture
        process = self.start_truth(
            "--names", 64, "--work-ns", 200000, "--threads", 2, "--temporaries"
        )
        f.wait_for_blocks()
        recordings = []
        for generation in range(1, 6):
            name = f.begin_session()
            f.set_gates(generation)
            time.sleep(0.1)
            self.close_gates()
            time.sleep(0.05)
            recordings.append((*f.end_session(name), self.closing_ns))
        f.stop(process)
        facts = read_truth(self.truth)
        for events, discarded, closing_ns in recordings:
            self.assertEqual(discarded, 0)
            self.assert_numbered(events)
            names = self.assert_spans(events, facts, closing_ns)
            self.assertGreater(len(next(iter(names.texts.values()))), 32)  # of those drawn

    def test_somebody_elses_session_may_filter(self):
        """Events that are handed over whole are filtered by their fields all the same."""
        f = self.fixture
        process = self.start_truth("--depth", 3)
        f.wait_for_blocks()
        name = f.begin_session(events=("syncline:*",))
        wanted = ("syncline_itt:task_begin", "syncline_itt:task_end")
        enable = ("enable-event", "-u", "-s", name, "-c", "syncline", ",".join(wanted))
        f.lttng(*enable, "--filter", "depth == 1")
        f.set_gates(1)
        time.sleep(0.2)
        f.set_gates(0)
        f.stop(process)
        events, _ = f.end_session(name)
        tasks = [event for event in events if event.name in wanted]
        self.assertEqual({event.name for event in tasks}, set(wanted))
        self.assertEqual({event.depth for event in tasks}, {1})

    def test_a_task_open_at_the_start_ends_with_its_name(self):
        events, _, facts = self.record("--depth", 8, "--work-ns", 200000, "--threads", 2)
        self.assert_spans(events, facts)
        begun, orphans = set(), 0
        for event in events:
            if event.name == "syncline_itt:task_begin":
                begun.add((event.thread, event.depth))
            elif event.name == "syncline_itt:task_end":
                orphans += (event.thread, event.depth) not in begun
                begun.discard((event.thread, event.depth))
        self.assertGreater(orphans, 0)  # both threads are inside a task nearly always

    def test_small_buffers_lose_events_and_no_name_is_wrong(self):
        events, discarded, facts = self.record(
            "--threads", 2, "--work-ns", 0, "--names", 4096, window_s=0.1, subbuffer="4k"
        )
        self.assertGreater(discarded, 0)
        by_pid = {}
        for line in self.fixture.block_tool("names", self.names_file()).splitlines():
            number, _, text = line.split(" ", 2)
            by_pid[int(number)] = text
        spans = collections.defaultdict(list)
        for fact in facts:
            if fact.kind == "span":
                spans[fact.values[8]].append((int(fact.values[3]), int(fact.values[4])))
        begins = [e for e in events if e.name == "syncline_itt:task_begin"]
        self.assertGreater(len(begins), 100)
        for times in spans.values():
            times.sort()
        for event in begins:
            name = by_pid[event.fields["name"]]
            at = bisect.bisect_right(spans[name], (event.time_ns, float("inf")))
            # Several threads: the one that began last need not be the one that is meant.
            longest = max(e - b for b, e in spans[name])
            first = bisect.bisect_left(spans[name], (event.time_ns - longest, 0))
            self.assertTrue(any(b <= event.time_ns <= e for b, e in spans[name][first:at]), event)

    def names_file(self):
        files = [n for n in os.listdir(self.fixture.runtime) if n.endswith(".names")]
        self.assertEqual(len(files), 1)
        return os.path.join(self.fixture.runtime, files[0])

    def test_a_forked_child_is_a_process_of_its_own(self):
        events, discarded, facts = self.record("--fork", wait_blocks=2)
        self.assertEqual(discarded, 0)
        names = self.assert_spans(events, facts)
        self.assertEqual(len(names.processes), 2)
        pids = {int(f.values[0]) for f in facts if f.kind == "span"}
        self.assertEqual({on.pid for on in names.processes.values()}, pids)
        keys = [key for key in names.threads]
        self.assertEqual(len(keys), len(set(keys)))
        self.assertEqual(
            {self.count(events, "syncline:on"), self.count(events, "syncline:off")}, {2}
        )

    def test_groups_are_chosen_by_the_environment(self):
        f = self.fixture
        process = self.start_truth("--counters", INTEL_ITTNOTIFY_GROUPS="structure, thread")
        f.wait_for_blocks()
        name = f.begin_session()
        f.set_gates(1)
        time.sleep(0.3)
        f.stop(process)
        events, _ = f.end_session(name)
        self.assertGreater(self.count(events, "syncline_itt:task_begin"), 10)
        self.assertGreater(self.count(events, "syncline_itt:counter_u64"), 10)  # always on
        self.assertEqual(self.count(events, "syncline:off"), 1)  # written at exit


class Robust(CaptureTest):
    daemon = False

    def run_program(self, **environment):
        begin = time.monotonic()
        process = self.fixture.start(
            "--truth", self.truth + ".short", "--tasks", 50, "--threads", 2, "--fork", **environment
        )
        self.assertEqual(self.fixture.finish(process, limit_s=20), "")  # nothing is printed
        return time.monotonic() - begin

    def test_without_a_session_daemon(self):
        self.assertLess(self.run_program(), 2.5)

    def test_with_a_session_daemon_that_does_not_answer(self):
        self.fixture.start_daemon()
        self.fixture.daemon.send_signal(signal.SIGSTOP)
        try:
            self.assertLess(self.run_program(), 2.5)
        finally:
            self.fixture.daemon.send_signal(signal.SIGCONT)

    def consumers(self):
        """The pids of the session daemon and of the daemons that it started."""
        pid = self.fixture.daemon.pid
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as children:
            return [pid, *map(int, children.read().split())]

    def test_daemons_that_stop_while_recording(self):
        """Neither the session daemon nor the consumer is waited for: not by calls, not by forks,
        not by a new process, not at the end."""
        f = self.fixture
        f.start_daemon()
        process = self.start_truth("--threads", 2)
        f.wait_for_blocks()
        f.begin_session(subbuffer="64k")
        f.set_gates(1)
        stopped = self.consumers()
        self.assertGreater(len(stopped), 1)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(0.3)
            self.assertLess(self.run_program(), 2.5)
            begin = time.monotonic()
            self.assertEqual(f.stop(process), "")
            self.assertLess(time.monotonic() - begin, 2.5)
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        tasks = sum(fact.kind == "span" for fact in read_truth(self.truth))
        self.assertGreater(tasks, 0)

    def test_a_session_daemon_that_is_slow(self):
        """It runs for a tenth of the time, also while a program starts, forks and is recorded."""
        f = self.fixture
        f.start_daemon()
        f.begin_session()
        over = threading.Event()

        def hold():
            while not over.wait(0.005):
                f.daemon.send_signal(signal.SIGSTOP)
                over.wait(0.045)
                f.daemon.send_signal(signal.SIGCONT)

        holder = threading.Thread(target=hold)
        holder.start()
        try:
            process = self.start_truth("--threads", 2, "--fork")
            f.wait_for_blocks(2)
            f.set_gates(1)
            self.assertLess(self.run_program(), 2.5)
            begin = time.monotonic()
            self.assertEqual(f.stop(process), "")
            self.assertLess(time.monotonic() - begin, 2.5)
        finally:
            over.set()
            holder.join()

    def test_recording_without_a_session_is_counted_as_lost(self):
        f = self.fixture
        process = self.start_truth()
        f.wait_for_blocks()
        f.set_gates(1)
        time.sleep(0.3)
        block = f.blocks()[process.pid]
        self.assertEqual(block["events"], 0)
        self.assertGreater(block["lost"], 100)
        f.stop(process)

    def test_a_session_daemon_killed_while_recording(self):
        f = self.fixture
        f.start_daemon()
        process = self.start_truth("--threads", 2)
        f.wait_for_blocks()
        f.begin_session()
        f.set_gates(1)
        time.sleep(0.3)
        f.daemon.kill()
        f.daemon.wait()
        f.daemon = None
        f.stop(process)
        names = f.block_tool(
            "names",
            os.path.join(f.runtime, next(n for n in os.listdir(f.runtime) if n.endswith(".names"))),
        )
        self.assertIn("task 0", names)

    def test_with_libraries_missing(self):
        for kept in (["block", "itt"], ["block", "itt", "provider"], ["itt"]):
            folder = os.path.join(self.fixture.directory, "-".join(kept))
            os.makedirs(folder)
            for library in kept:
                shutil.copy(os.path.join(BUILD, f"lib/libsyncline_{library}.so"), folder)
            self.run_program(INTEL_LIBITTNOTIFY64=os.path.join(folder, "libsyncline_itt.so"))

    def test_where_no_block_can_be_made(self):
        plain = os.path.join(self.fixture.directory, "plain")
        with open(plain, "w", encoding="utf-8"):
            pass
        open_to_all = os.path.join(self.fixture.directory, "open")
        os.mkdir(open_to_all, 0o777)
        os.chmod(open_to_all, 0o777)
        target = os.path.join(self.fixture.directory, "target")
        os.mkdir(target, 0o700)
        link = os.path.join(self.fixture.directory, "link")
        os.symlink(target, link)
        for place in (plain, open_to_all, link, "/proc/none", "/" + "x" * 300):
            self.run_program(SYNCLINE_RUNTIME_DIR=place)
        self.assertEqual(os.listdir(open_to_all) + os.listdir(target), [])

    def test_nothing_is_left_of_processes_that_were_not_recorded(self):
        self.run_program()
        self.assertEqual(os.listdir(self.fixture.runtime), ["counters"])

    def test_facts_and_secrets(self):
        f = self.fixture
        process = self.start_truth(RANK="3", SYNCLINE_JOB="night", SYNCLINE_ROLE="worker")
        f.wait_for_blocks()
        line = f.blocks()[process.pid]["line"]
        self.assertIn("job=night rank=3 role=worker", line)
        self.assertIn("--duration-ms 60000", line)
        f.stop(process)


if __name__ == "__main__":
    lttng_fixture.enter_namespaces()
    BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
