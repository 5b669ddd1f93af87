# SPDX-License-Identifier: Apache-2.0
"""shifted_test.py: what scripts/shifted-corpus makes of times, streams and verdicts."""

import os
import struct
import sys
import tempfile
import types
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)

try:
    import numpy as np
except ImportError:
    print("shifted_test: skipped: numpy is missing (.venv-parquet: scripts/setup)")
    sys.exit(77)

from scripts import (  # noqa: E402  (after the path is set)
    ctf_streams,
    shifted_recording,
    shifted_rules,
    shifted_score,
    shifted_times,
)

MS = 1_000_000
STEPS = 20
CARRY_NS, NOTICE_NS = 2 * MS, MS // 10  # a collective, and until a driver goes on behind it


def job(works_ms, seed=1):
    """Windows of ranks that work so long in each step, with one collective at its end."""
    rng = np.random.default_rng(seed)
    works = [rng.integers(0.8 * ms * MS, 1.2 * ms * MS, STEPS) for ms in works_ms]
    begin = np.zeros(len(works), np.int64)
    columns = [[] for _ in works]
    for step in range(STEPS):
        entered = [int(start + work[step]) for start, work in zip(begin, works)]
        began = max(entered)
        for rank, column in enumerate(columns):
            end = began + CARRY_NS + NOTICE_NS
            column.append((begin[rank], end, entered[rank], began))
            begin[rank] = end
    windows = []
    for column in columns:
        start, end, entered, began = np.array(column, np.int64).T
        one = entered[:, None]
        windows.append(shifted_times.Window(
            0, start, end, one, one, (began + CARRY_NS)[:, None], one, end[:, None], began[:, None]
        ))
    return windows


def added(window, amount_ns):
    return shifted_times.Added(window.begin + MS, np.full(STEPS, amount_ns, np.int64))


class Times(unittest.TestCase):
    def test_along_is_exact_and_goes_on_outside(self):
        far = 1 << 52
        old, new = np.array([far, far + 10, far + 20]), np.array([5, 15, 45])
        times = far + np.array([-3, 0, 5, 10, 15, 20, 21])
        self.assertEqual(shifted_times.along(times, old, new).tolist(), [2, 5, 10, 15, 30, 45, 46])

    def test_nothing_added_changes_nothing(self):
        windows = job((10, 12, 11))
        all_moved = shifted_times.replay(windows, [shifted_times.NOTHING] * 3)
        for window, moved in zip(windows, all_moved):
            np.testing.assert_array_equal(moved.old, moved.new)
            np.testing.assert_array_equal(moved.entered, window.entered)
            np.testing.assert_array_equal(moved.left, window.left)

    def test_who_is_last_holds_all_up(self):
        windows = job((10, 20))
        more = [shifted_times.NOTHING, added(windows[1], 3 * MS)]
        for rank, moved in enumerate(shifted_times.replay(windows, more)):
            self.assertEqual(moved.new[-1] - moved.old[-1], STEPS * 3 * MS)
            grown = moved.own_work - shifted_times.replay(windows, more[:1] * 2)[rank].own_work
            self.assertEqual(set(grown.tolist()), {3 * MS if rank == 1 else 0})

    def test_who_has_time_left_holds_nobody_up(self):
        windows = job((10, 20))
        more = [added(windows[0], 2 * MS), shifted_times.NOTHING]
        first, second = shifted_times.replay(windows, more)
        self.assertEqual(second.new[-1], second.old[-1])
        np.testing.assert_array_equal(first.entered, windows[0].entered + 2 * MS)
        np.testing.assert_array_equal(first.left, windows[0].left)

    def test_nobody_goes_on_before_the_last_came(self):
        for seed in range(20):
            windows = job((10, 11, 10, 12), seed)
            more = [added(window, rank * MS) for rank, window in enumerate(windows)]
            all_moved = shifted_times.replay(windows, more)
            began = np.maximum.reduce([moved.entered for moved in all_moved])
            for window, moved in zip(windows, all_moved):
                self.assertTrue(np.all(np.diff(moved.old) > 0))
                self.assertTrue(np.all(np.diff(moved.new) > 0))
                goes_on = shifted_times.along(window.wait_end, moved.old, moved.new)
                self.assertTrue(np.all(goes_on >= began + CARRY_NS))
                self.assertTrue(np.all(moved.left == began + CARRY_NS))

    def test_a_delay_stands_before_its_event(self):
        windows = job((10, 10))
        moved = shifted_times.replay(windows, [added(windows[0], MS), shifted_times.NOTHING])[0]
        at = windows[0].begin[3] + MS
        before, behind = shifted_times.along(np.array([at - 1, at]), moved.old, moved.new)
        self.assertEqual(behind - before, MS + 1)

    def test_no_thread_carries_two_collectives_out_at_once(self):
        entered, left = np.array([0, 10, 20, 30]), np.array([15, 40, 25, 50])
        wanted = np.full(4, 7)
        threads, begins, ends = shifted_times.carried_by(entered, left, wanted, (7, 8))
        self.assertEqual(threads.tolist(), [7, 8, 7, 7])
        for thread in (7, 8):
            mine = threads == thread
            self.assertTrue(np.all(begins[mine][1:] > ends[mine][:-1]))


METADATA = """/* CTF 1.8 */
event {
	name = "a:fixed";
	id = 0;
	stream_id = 0;
	fields := struct {
		integer { size = 32; align = 8; signed = 0; encoding = none; base = 10; } _thread;
		integer { size = 16; align = 8; signed = 0; encoding = none; base = 10; } _depth;
	};
};
event {
	name = "a:text";
	id = 1;
	stream_id = 0;
	fields := struct {
		integer { size = 32; align = 8; signed = 0; encoding = none; base = 10; } _thread;
		string _name;
		integer { size = 64; align = 8; signed = 0; encoding = none; base = 10; } __values_length;
		integer { size = 64; align = 8; signed = 0; } _values[ __values_length ];
	};
};
stream {
	id = 0;
	event.header := struct event_header_large;
};
"""


class Streams(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        text = METADATA.encode()
        size = 8 * (ctf_streams.METADATA_HEADER_BYTES + len(text))
        head = struct.pack("<I16sIII", ctf_streams.METADATA_MAGIC, b"u" * 16, 0, size, size)
        with open(self.path("metadata"), "wb") as file:
            file.write(head + bytes(5) + text)
        self.schema = ctf_streams.read_schema(self.path("metadata"))

    def path(self, name):
        return os.path.join(self._folder.name, name)

    def events(self, times_ns):
        payloads = [
            struct.pack("<IH", i, 3) if i % 2 else
            struct.pack("<I", i) + b"x" * (i % 5) + b"\0" + struct.pack("<QQQ", 2, i, i)
            for i in range(len(times_ns))
        ]
        lengths = np.array([len(one) for one in payloads])
        kinds = np.array([0 if i % 2 else 1 for i in range(len(times_ns))])
        data = np.frombuffer(b"".join(payloads), np.uint8)
        begin = np.cumsum(lengths) - lengths
        return ctf_streams.Events(data, begin, lengths, kinds, np.array(times_ns, np.int64))

    def same(self, one, other):
        np.testing.assert_array_equal(one.time_ns, other.time_ns)
        np.testing.assert_array_equal(one.kind, other.kind)
        for event in range(len(one)):
            self.assertEqual(one.payload(event), other.payload(event))

    def test_schema(self):
        self.assertEqual(self.schema.kinds[0].fixed_bytes(), 6)
        self.assertEqual(self.schema.kinds[0].offset("depth"), 4)
        self.assertIsNone(self.schema.kinds[1].fixed_bytes())
        self.assertEqual(self.schema.number("a:text"), 1)

    def test_what_is_written_is_read(self):
        # Over the edge of 32 bits, and in more than one packet.
        times_ns = (1 << 32) * 7 - 500 + np.cumsum(np.arange(70_000) % 50_000)
        events = self.events(times_ns)
        size, packets = ctf_streams.write_stream(self.path("stream"), self.schema, events)
        self.assertGreater(packets, 1)
        self.assertEqual(size, os.path.getsize(self.path("stream")))
        self.same(ctf_streams.read_stream(self.path("stream"), self.schema), events)

    def test_extended_headers(self):
        content = b"".join((
            struct.pack("<HI", 0, 105), struct.pack("<IH", 1, 0),
            struct.pack("<HIQ", ctf_streams.EXTENDED, 0, 9 << 32), struct.pack("<IH", 2, 0),
            struct.pack("<HI", 0, 7), struct.pack("<IH", 3, 0),
        ))
        size = 8 * (ctf_streams.PACKET_BYTES + len(content))
        with open(self.path("stream"), "wb") as file:
            file.write(ctf_streams.PACKET_HEADER.pack(ctf_streams.PACKET_MAGIC, b"u" * 16, 0, 0))
            file.write(ctf_streams.PACKET_CONTEXT.pack(100, (9 << 32) + 7, size, size, 0, 0, 0))
            file.write(content)
        read = ctf_streams.read_stream(self.path("stream"), self.schema)
        self.assertEqual(read.time_ns.tolist(), [105, 9 << 32, (9 << 32) + 7])
        self.assertEqual(read.u32(0).tolist(), [1, 2, 3])
        self.assertEqual(read.length.tolist(), [6, 6, 6])

    def test_order_is_wanted(self):
        with self.assertRaises(ValueError):
            ctf_streams.write_stream(self.path("stream"), self.schema, self.events([5, 4]))


class Names(unittest.TestCase):
    def test_one_name_becomes_another_text(self):
        def table(texts):
            out = b"SYNCNAM1" + bytes(8)
            for number, text in enumerate(texts, 1):
                out += shifted_recording.NAME_RECORD.pack(number, len(text), 2, 0) + text + b"\0"
                out += bytes(-len(out) % 4)
            return out

        names = table([b"abc", b"0-1", b"last"])
        renamed = shifted_recording.renamed(names + bytes(64), 2, b"0-1023")
        self.assertEqual(renamed, table([b"abc", b"0-1023", b"last"]))


class Samples(unittest.TestCase):
    def test_a_thief_is_the_last_process(self):
        lines = ["R 1 50", "P 0 7", "t 0 1", "p 2 1 1 0 0", "G 1 =/", "P 3 9"]
        self.assertEqual(
            shifted_recording.with_thief(lines),
            ["G 1 =/", "P 0 7", "P 3 9", shifted_recording.THIEF, "R 1 50", "t 0 1", "p 2 1 1 0 0"],
        )


def verdict(kind, ranks=(), undecided=False):
    told = [
        {
            **{"rank": rank, "causes": [{"cause": cause}] if cause else [], "python": None},
            **{"longer_work": None, "unexplained_ns": 10 * MS},
        }
        for rank, cause in ranks
    ]
    return {"kind": kind, "ranks": told, "undecided": undecided}


class Scores(unittest.TestCase):
    def outcome(self, label, answer, kind=""):
        rank, cause = label if label else (0, None)
        one = types.SimpleNamespace(rank=rank, cause=cause, shifted=label is not None, kind=kind)
        return shifted_score.outcome_of(one, answer)[0]

    def test_outcomes(self):
        slow = (1, "input")
        right = verdict("cause", [slow])
        self.assertEqual(self.outcome(slow, right), "named")
        self.assertEqual(self.outcome((0, "input"), right), "wrong")
        self.assertEqual(self.outcome((1, "garbage_collection"), right), "wrong")
        self.assertEqual(self.outcome((1, None), right), "wrong")
        self.assertEqual(self.outcome(None, right), "wrong")
        self.assertEqual(self.outcome(slow, verdict("cause", [slow, (0, "throttled")])), "wrong")
        late = verdict("late_cause_unknown", [(1, None)])
        self.assertEqual(self.outcome(slow, late), "unknown")
        self.assertEqual(self.outcome((0, "input"), late), "other_unknown")
        self.assertEqual(self.outcome(None, late), "other_unknown")
        self.assertEqual(self.outcome(slow, verdict("nobody", undecided=True)), "undecided")
        self.assertEqual(self.outcome(None, verdict("nobody")), "missed")
        self.assertEqual(self.outcome(None, verdict("work_differs", [(0, None)])), "wrong")

    def test_operators(self):
        def late(operators, longer_ns=6 * MS):
            told = verdict("late_cause_unknown", [(1, None)])
            named = [{"operator": one} for one in operators]
            told["ranks"][0]["longer_work"] = {"longer_ns": longer_ns, "operators": named}
            return told

        mine = (1, None)
        self.assertEqual(self.outcome(mine, late(["convolution"]), "operator"), "unknown")
        self.assertEqual(self.outcome(mine, late(["convolution"]), "host"), "wrong")
        self.assertEqual(self.outcome(mine, late(["aten::mul"]), "operator"), "wrong")
        self.assertEqual(self.outcome(mine, late([]), "operator"), "wrong")
        aten, one = late(["aten::mul"]), types.SimpleNamespace(rank=1, cause=None, shifted=True)
        one.kind = "host"
        self.assertEqual(shifted_score.outcome_of(one, aten, 7 * MS)[0], "unknown", "it is so")
        # Not most of it.
        self.assertEqual(self.outcome(mine, late(["aten::mul"], 4 * MS), "operator"), "unknown")
        self.assertEqual(self.outcome((0, None), late(["aten::mul"]), "operator"), "other_unknown")
        self.assertEqual(self.outcome(None, late(["aten::mul"])), "other_unknown")

    def test_limits(self):
        self.assertAlmostEqual(shifted_score.upper_limit(0, 22), 1 - 0.05 ** (1 / 22), places=6)
        limit = shifted_score.upper_limit(2, 40)
        self.assertAlmostEqual(shifted_score.binomial_tail(2, 40, limit), 0.05, places=6)
        self.assertEqual(shifted_score.upper_limit(5, 5), 1)
        self.assertAlmostEqual(shifted_score.binomial_tail(1, 2, 0.5), 0.75)

    def test_change_point(self):
        rng = np.random.default_rng(3)
        steps = rng.normal(40, 1, (2, 80)) * MS
        self.assertIsNone(shifted_rules.change_point(steps))
        steps[:, 50:] *= 1.2
        steps[1, 50:] += 2 * MS
        self.assertEqual(shifted_rules.change_point(steps), 1)
        steps[:, :50] *= 1.15  # what is left is less than 10 %
        self.assertIsNone(shifted_rules.change_point(steps))


if __name__ == "__main__":
    unittest.main()
