# SPDX-License-Identifier: Apache-2.0
"""Reads a recording's raw traces with babeltrace2: an independent witness of what LTTng wrote.

Nothing of Syncline is used here but the event schema (docs/event-schema.md).
"""

import collections
import dataclasses
import glob
import os
import re
import subprocess

LINE = re.compile(r"^\[(-?[\d.]+)\] (?:\(\S+\) )?(?:\S+ )?(\w+:\w+): (.*)$")
FIELD = re.compile(r'(\w+) = (?:"((?:[^"\\]|\\.)*)"|(-?\d+))')


@dataclasses.dataclass
class Event:
    time_ns: int
    name: str
    fields: dict


@dataclasses.dataclass
class Task:
    """One task between its begin and end, in the clock the events were read in."""

    thread: int
    name: str
    begin_ns: int
    end_ns: int
    depth: int


def trace_directory(run, node):
    return os.path.join(run, "nodes", node, "trace")


def read_events(directory, wall_clock=False):
    """All events of one node, in LTTng's monotonic clock or in wall-clock time as the node had
    it."""
    clock = "--clock-seconds" if wall_clock else "--clock-cycles"
    command = ["babeltrace2", clock, "--no-delta", "--names=payload", directory]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    events = []
    for line in text.splitlines():
        match = LINE.match(line)
        if not match:
            raise AssertionError(f"babeltrace2 wrote a line that is not understood: {line}")
        time, name, payload = match.groups()
        fields = {
            key: word if number == "" else int(number)
            for key, word, number in ((m[1], m[2], m[3] or "") for m in FIELD.finditer(payload))
        }
        events.append(Event(nanoseconds(time), name, fields))
    return events


def nanoseconds(text):
    seconds, dot, fraction = text.partition(".")
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0")) if dot else int(text)


def task_names(events):
    """{(process, id): text} as the trace announces them. One process per node: ids suffice."""
    return {e.fields["id"]: e.fields["text"] for e in events if e.name == "syncline:name"}


def tasks(events):
    """Complete nested tasks of all threads, by begin; ones that the window cuts are left out."""
    names = task_names(events)
    stacks = collections.defaultdict(list)
    found = []
    for event in events:
        thread = event.fields.get("thread")
        if event.name in ("syncline_itt:task_begin", "syncline_itt:task_begin_id"):
            stacks[thread].append(event)
        elif event.name == "syncline_itt:task_end" and stacks[thread]:
            begin = stacks[thread].pop()
            found.append(
                Task(
                    thread,
                    names[begin.fields["name"]],
                    begin.time_ns,
                    event.time_ns,
                    begin.fields["depth"],
                )
            )
    return sorted(found, key=lambda task: task.begin_ns)


def count_spans(events):
    """How many spans a timeline has to show: every begin, and every end whose begin came
    earlier."""
    open_tasks = collections.Counter()
    spans = 0
    for event in events:
        if event.name.startswith("syncline_itt:task_begin") and "overlapped" not in event.name:
            open_tasks[event.fields["thread"]] += 1
            spans += 1
        elif event.name == "syncline_itt:task_end":
            if open_tasks[event.fields["thread"]]:
                open_tasks[event.fields["thread"]] -= 1
            else:
                spans += 1
    return spans


def trace_exists(run, node):
    return bool(
        glob.glob(os.path.join(trace_directory(run, node), "**", "metadata"), recursive=True)
    )
