# SPDX-License-Identifier: Apache-2.0
"""The matrix finds what is missing and was not said: without that, it proves nothing."""

import struct

from tests.faults import truth

MS = 1_000_000
WINDOW = (0, 1000 * MS)


def calls_every_ms(count=900, pid=1):
    kinds = ("task_begin", "task_end")
    return [truth.Call(i * MS, i * MS + 1000, pid, pid, kinds[i % 2], 0, 0) for i in range(count)]


def events_of(calls):
    return [truth.Event(call.before_ns + 500, call.pid, call.tid, call.kind) for call in calls]


def loss(begin_ms, end_ms, count=None, reason="not covered"):
    return {"reason": reason, "begin_ns": begin_ms * MS, "end_ns": end_ms * MS, "count": count}


def judge(calls, events, losses=()):
    return truth.judge(calls, events, WINDOW, list(losses))


def test_a_whole_recording():
    calls = calls_every_ms()
    verdict = judge(calls, events_of(calls))
    assert (verdict.calls, verdict.found, verdict.missing) == (900, 900, 0)
    assert verdict.strangers == verdict.twice == 0


def test_missing_calls_that_nothing_says():
    calls = calls_every_ms()
    verdict = judge(calls, events_of(calls[:400] + calls[500:]))
    assert verdict.missing == len(verdict.unexplained) == 100
    verdict = judge(calls, events_of(calls[:400] + calls[500:]), [loss(100, 200), loss(450, 700)])
    assert verdict.unexplained[0][0] == 400 * MS
    assert len(verdict.unexplained) == 50 - truth.SLACK_NS // MS


def test_missing_calls_with_their_interval():
    calls = calls_every_ms()
    events = events_of(calls[:400] + calls[500:])
    assert judge(calls, events, [loss(390, 510)]).unexplained == []
    assert judge(calls, events, [loss(0, 0, reason="node missing")]).unexplained == []


def test_a_node_whose_clock_is_ahead():
    calls = calls_every_ms()
    for call in calls:
        call.before_ns += 7000 * MS
        call.after_ns += 7000 * MS
    events = events_of(calls[:400] + calls[500:])
    verdict = truth.judge(calls, events, WINDOW, [loss(400, 440)], 7000 * MS)
    assert (verdict.calls, verdict.missing) == (900, 100)
    assert verdict.unexplained[-1] == (499 * MS, 499 * MS + 1000)


def test_a_count_that_is_too_small():
    calls = calls_every_ms()
    events = events_of(calls[:400] + calls[500:])
    assert judge(calls, events, [loss(390, 510, 100)]).unexplained == []
    assert len(judge(calls, events, [loss(390, 510, 70)]).unexplained) == 30


def test_events_that_no_call_made():
    calls = calls_every_ms()
    extra = [truth.Event(2000, 1, 1, "task_begin"), truth.Event(500, 1, 1, "task_begin"),
             truth.Event(500, 1, 1, "task_end")]
    verdict = judge(calls, events_of(calls) + extra)
    assert (verdict.strangers, verdict.twice) == (2, 1)


def test_a_call_that_did_not_return_is_neither_missing_nor_strange():
    calls = calls_every_ms()
    calls[-1].after_ns = 0
    assert judge(calls, events_of(calls)).strangers == 0
    assert judge(calls, events_of(calls[:-1])).missing == 0


def test_threads_are_told_apart():
    calls = sorted(calls_every_ms() + calls_every_ms(pid=2), key=lambda call: call.before_ns)
    verdict = judge(calls, events_of(call for call in calls if call.pid == 2))
    assert (verdict.found, verdict.missing) == (900, 900)


def test_what_a_program_has_written(tmp_path):
    path = tmp_path / "truth"
    call = struct.pack("<QQiiIIQ", 7, 9, 3, 4, 2, 1, 5)
    path.write_bytes(struct.pack("<8Q", 2, 1, 0, 0, 0, 0, 0, 0) + call + bytes(2 * len(call)))
    assert truth.counts(path) == (2, 1, 0)
    assert truth.read(path) == [truth.Call(7, 9, 3, 4, "task_end", 1, 5)]
