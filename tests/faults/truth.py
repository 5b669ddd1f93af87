# SPDX-License-Identifier: Apache-2.0
"""The programs' own account of their calls (program.c), and what a recording lacks of it.

A program brackets each of its calls with two readings of the trace clock. An event of the recording
belongs to the call of the same thread and kind in whose bracket it lies; a call without an event is
missing. What is missing must have been said: by a loss whose interval contains the call and whose
count, where it has one, is large enough.
"""

import bisect
import collections
import dataclasses
import struct

HEADER_BYTES = 64
CALL = struct.Struct("<QQiiIIQ")
KINDS = {1: "task_begin", 2: "task_end"}
# Around an interval that was said: the bound of the clocks, and gates that move while calls run.
SLACK_NS = 30_000_000
NO_INTERVAL = ("node missing",)  # reasons of losses that mean the whole window


@dataclasses.dataclass
class Call:
    """Times are those of the node's monotonic clock, the clock of its trace."""

    before_ns: int
    after_ns: int  # 0: it did not return
    pid: int
    tid: int
    kind: str
    switches: int
    cpu_ns: int


@dataclasses.dataclass
class Event:
    time_ns: int  # as recorded, in the same clock
    pid: int | None
    tid: int | None
    kind: str


@dataclasses.dataclass
class Verdict:
    calls: int = 0  # wholly within the window
    found: int = 0  # of them
    missing: int = 0
    unexplained: list = dataclasses.field(default_factory=list)  # (begin, end): missing, not said
    strangers: int = 0  # events that no call explains
    twice: int = 0  # calls with two events


def read(path):
    """All calls that the ring holds, by begin."""
    with open(path, "rb") as file:
        data = file.read()
    (begun,) = struct.unpack_from("<Q", data)
    room = (len(data) - HEADER_BYTES) // CALL.size
    calls = []
    for number in range(min(begun, room)):
        before, after, pid, tid, kind, switches, cpu = CALL.unpack_from(
            data, HEADER_BYTES + number * CALL.size
        )
        if before:
            calls.append(Call(before, after, pid, tid, KINDS[kind], switches, cpu))
    return sorted(calls, key=lambda call: call.before_ns)


def counts(path):
    """(calls begun, programs begun, descriptors closed) until now; zeros while the file is made."""
    with open(path, "rb") as file:
        return struct.unpack("<QQQ", file.read(24).ljust(24, b"\0"))


def begun(path):
    return counts(path)[0]


def match(calls, events):
    """(found, strangers, twice): the indices of calls that have an event; how many events lie in no
    call; how many calls have two."""
    by_thread = collections.defaultdict(list)
    for index, call in enumerate(calls):
        by_thread[call.pid, call.tid].append(index)
    begins = {who: [calls[i].before_ns for i in found] for who, found in by_thread.items()}
    found, strangers, twice = set(), 0, 0
    for event in events:
        # Of a thread that the recording cannot name: whoever made a call just then.
        threads = [(event.pid, event.tid)] if event.tid is not None else list(by_thread)
        for who in threads:
            at = bisect.bisect_right(begins.get(who, []), event.time_ns) - 1
            index = by_thread[who][at] if at >= 0 else None
            if index is not None and is_of(event, calls[index]):
                twice += index in found
                found.add(index)
                break
        else:
            strangers += 1
    return found, strangers, twice


def is_of(event, call):
    """Whether the event may be the call's; of a call that did not return, only its begin is
    known."""
    in_time = call.before_ns <= event.time_ns and (not call.after_ns or
                                                   event.time_ns <= call.after_ns)
    return in_time and call.kind == event.kind


def intervals(losses, window, zero_ns):
    """[(begin, end, count or None)] of a node's losses in report.json, in its own clock."""
    found = []
    for loss in losses:
        if loss["reason"] in NO_INTERVAL:
            found.append((*window, None))
        else:
            found.append((loss["begin_ns"] + zero_ns, loss["end_ns"] + zero_ns, loss["count"]))
    return found


def judge(calls, events, window, losses, zero_ns=0):
    """What the recording has of the calls within the window. `losses` are the node's, as the report
    has them; they and the window are in timeline time, whose zero is `zero_ns` on the node."""
    verdict = Verdict()
    found, verdict.strangers, verdict.twice = match(calls, events)
    window = tuple(at_ns + zero_ns for at_ns in window)
    said = intervals(losses, window, zero_ns)
    missing = []
    for index, call in enumerate(calls):
        if not call.after_ns or call.before_ns < window[0] or call.after_ns > window[1]:
            continue
        verdict.calls += 1
        if index in found:
            verdict.found += 1
        else:
            missing.append(call)
    verdict.missing = len(missing)
    counted = sum(count for _, _, count in said if count is not None)
    left = counted  # what losses with a count can still explain
    for call in missing:
        around = [
            count
            for begin, end, count in said
            if begin - SLACK_NS <= call.before_ns and call.after_ns <= end + SLACK_NS
        ]
        if any(count is None for count in around):
            continue
        if around and left > 0:
            left -= 1
            continue
        verdict.unexplained.append((call.before_ns - zero_ns, call.after_ns - zero_ns))
    return verdict
