# SPDX-License-Identifier: Apache-2.0
"""Traces of a job by dice, in which all events of our own occur and some are lost: for comparing
two builds of Syncline (compare_outputs.py). The same seed gives the same bytes.
"""

import collections
import json
import random
import re
import shutil

from scripts import made_up_traces

NAMES = {
    1: "epoch",
    2: "step 1",
    3: "kernel",
    4: "copy",
    5: "domain",
    6: "wait",
    7: "Optimizer.step#SGD.step",
    8: "iteration 3",
    10: "c10d::allreduce_",
    11: "gloo:all_reduce",
    12: "allreduce",
    13: "0",
    14: "default_pg",
    15: "0-1",
    16: "send",
    17: "recv",
    18: "other domain",
}
UNKNOWN = 99  # a name that nobody announces


class RandomNode:
    """A rank by dice: threads that do all that the events can say, go from one stream to another,
    leave tasks open, and lose events."""

    THREADS = 5

    def __init__(self, seed, rank, trace, begin_ns, end_ns, identity, lost_per_mille):
        self._dice = random.Random(2 * seed + rank)
        self._rank = rank
        self._trace = trace
        self._now = dict.fromkeys(range(1, self.THREADS + 1), begin_ns)
        self._stream = {key: key % len(trace.streams) for key in self._now}
        self._open = {key: [] for key in self._now}
        self._number = dict.fromkeys(self._now, 65500)
        self._events = []
        self._end_ns = end_ns
        self._begin_ns = begin_ns
        self._identity = identity
        self._lost_per_mille = lost_per_mille
        self._next_id = 1
        self._sequence = self._position = 0

    def write(self):
        dice = self._dice
        self._events.append((self._begin_ns, 0, "syncline:on", (1, 1, *self._identity)))
        for number, text in NAMES.items():
            self._events.append((self._begin_ns, 0, "syncline:name", (1, number, 1, text)))
        for key in self._now:
            tid = self._identity[0] + key - 1
            self._events.append((self._begin_ns, 0, "syncline:thread", (key, 1, tid, f"t{key}")))
        step_ns = self._begin_ns + 500
        while True:
            thread = min(self._now, key=self._now.get)
            if self._now[thread] >= self._end_ns:
                break
            if thread == 1 and self._now[1] >= step_ns:
                self._step()
                step_ns += 40_000
            what = dice.randrange(20)
            if what < 14:
                self._task(thread)
            elif what < 16:
                self._attached(thread)
            elif what < 18:
                self._aside(thread)
            else:
                self._now[thread] += dice.randrange(200_000 if dice.randrange(20) == 0 else 5000)
        found = len(self._events) + 1 - len(NAMES) - self.THREADS
        self._events.append((self._end_ns + 1000, 0, "syncline:off", (1, 1, found, 0, 5)))
        self._events.sort(key=lambda event: event[0])
        lost = collections.Counter()
        for time_ns, stream, name, values in self._events:
            # One loss is of several events.
            per_mille = 667 if lost[stream] else self._lost_per_mille
            loses = dice.randrange(1000) < per_mille
            if loses and name.startswith("syncline_"):
                lost[stream] += 1
                continue
            if lost[stream]:
                self._trace.streams[stream].lose(lost.pop(stream))
            self._trace.streams[stream].put(name, time_ns, *values)

    def _say(self, thread, name, *values):
        self._now[thread] += 1 + self._dice.randrange(800)
        if self._dice.randrange(60) == 0:
            self._stream[thread] = self._dice.randrange(len(self._trace.streams))
        self._events.append((self._now[thread], self._stream[thread], name, (thread, *values)))

    def _task(self, thread):
        dice, tasks_open = self._dice, self._open[thread]
        number = self._number[thread] = (self._number[thread] + 1) % 65536
        if tasks_open and (len(tasks_open) >= 5 or dice.randrange(2)):
            name, domain, _ = tasks_open.pop()
            self._say(thread, "syncline_itt:task_end", domain, name, len(tasks_open), number)
            return
        name, domain = dice.choice([1, 2, 3, 4, 6, 7, 8, 3, 3, UNKNOWN]), dice.choice([5, 5, 18, 0])
        task_id = 0
        depth = len(tasks_open)
        what = dice.randrange(40)
        if what == 0:
            name = 0
            self._say(thread, "syncline_itt:task_begin_text", domain, depth, number, "long name 7")
        elif what == 1:
            name = 0
            self._say(thread, "syncline_itt:task_begin_fn", domain, name, depth, number, 4660,
                      0, 0, 0, 0, 0, 0)
        elif what < 10:
            task_id = self._next_id
            self._next_id += 1
            self._say(thread, "syncline_itt:task_begin_id", domain, name, depth, number,
                      task_id, 0, 0, task_id // 2, 0, 0)
        else:
            self._say(thread, "syncline_itt:task_begin", domain, name, depth, number)
        tasks_open.append((name, domain, task_id))

    def _attached(self, thread):
        dice = self._dice
        other = dice.randrange(1, self.THREADS + 1) if dice.randrange(3) == 0 else thread
        tasks_open = self._open[other]
        task = tasks_open[dice.randrange(len(tasks_open))][2] if tasks_open else self._next_id - 1
        if dice.randrange(10) == 0:
            task = 1000 + dice.randrange(3)
        depth = dice.randrange(4)
        what = dice.randrange(7)
        if what == 0:
            self._say(thread, "syncline_itt:metadata_u64", 5, 3, depth, task, 0, 0,
                      [dice.randrange(9), 7])
        elif what == 1:
            self._say(thread, "syncline_itt:metadata_f64", 5, 3, depth, task, 0, 0,
                      [0x3FF8000000000000])
        elif what == 2:
            self._say(thread, "syncline_itt:metadata_text", 5, 4, depth, task, 0, 0,
                      f"say {dice.randrange(5)}")
        elif what == 3:
            self._say(thread, "syncline_itt:metadata_name", 5, 4, depth, task, 0, 0, 6)
        elif what == 4:
            self._say(thread, "syncline_itt:marker", 5, 2, 1 + dice.randrange(4), task, 0, 0)
        elif what == 5:
            self._say(thread, "syncline_itt:relation", 5, 2, task, 0, 0, 1, 0, 0)
        else:
            self._say(thread, "syncline_itt:counter_u64", 5, 1 + dice.randrange(2),
                      dice.randrange(99))

    def _aside(self, thread):
        dice = self._dice
        number = 1000 + dice.randrange(3)
        what = dice.randrange(10)
        if what == 0:
            self._say(thread, "syncline_itt:task_begin_overlapped", 5, 3, number, 0, 0, 0, 0, 0)
        elif what == 1:
            self._say(thread, "syncline_itt:task_end_overlapped", 5, 3, number, 0, 0)
        elif what == 2:
            self._say(thread, "syncline_itt:frame_begin", 5, number, 0, 0)
        elif what == 3:
            self._say(thread, "syncline_itt:frame_end", 5, number, 0, 0)
        elif what == 4:
            self._say(thread, f"syncline_itt:event_{dice.choice(['start', 'end'])}", 6)
        elif what == 5:
            self._say(thread, "syncline_itt:sync", 1 + dice.randrange(4), 70 + dice.randrange(2), 0)
        elif what == 6:
            now = self._now[thread]
            self._say(thread, "syncline_itt:frame_submit", 5, number, 0, 0,
                      self._begin_ns + (now - self._begin_ns) // 2 + 1, now)
        elif what == 7:
            self._now[thread] += 1
            pid = self._identity[0]
            tid = pid + thread - 1 if dice.randrange(2) else 7000 + thread  # known, or not
            self._events.append((self._now[thread], self._stream[thread], "other:tick",
                                 (pid, tid, number, "tick")))
        elif what == 8 and dice.randrange(60) == 0:
            self._say(thread, "syncline:pause")
        elif what == 9 and dice.randrange(20) == 0:
            self._say(thread, "syncline:resume")

    def _step(self):
        """Both ranks do the same: an all-reduce, a transfer, a message."""
        main, worker = 1, self.THREADS
        rank, depth = self._rank, len(self._open[main])
        if self._sequence % 5 == 0:
            self._say(main, "syncline_torch:group", 13, 14, 15, rank, 2, self._sequence)
            self._say(main, "syncline_net:connection", 5, 0, 0, self._sequence // 5, 9, 10, 10,
                      f"10.0.0.{rank}", f"10.0.0.{1 - rank}")
        self._say(main, "syncline_torch:collective", 13, 12, self._sequence, 64)
        number = self._number
        for thread, kind, name, at in (
            (main, "begin", 10, depth),
            (worker, "begin", 11, len(self._open[worker])),
            (main, "end", 10, depth),
            (worker, "end", 11, len(self._open[worker])),
        ):
            number[thread] = (number[thread] + 1) % 65536
            self._say(thread, f"syncline_itt:task_{kind}", 5, name, at, number[thread])
        self._say(main, "syncline_torch:transfer_begin", self._sequence, 13, 16 + rank, 1 - rank,
                  0, 8)
        self._say(main, "syncline_torch:transfer_end", self._sequence, -1, 0)
        moved = "syncline_net:send" if rank == 0 else "syncline_net:receive"
        self._say(main, moved, 5, self._position, 9, self._now[main])
        self._position += 9
        self._sequence += 1
        if self._sequence % 40 == 0:
            self._say(main, "syncline_torch:operators", 2 if self._sequence % 80 else 1)


def traces(root, seed, length_ns=4_000_000, lost_per_mille=2):
    """Two nodes' trace directories, as arguments of `syncline merge`."""
    made = []
    begin_ns = made_up_traces.BEGIN_NS
    for rank, host in enumerate(("a", "b")):
        with made_up_traces.Trace(f"{root}/{host}", 3, host) as trace:
            RandomNode(seed, rank, trace, begin_ns, begin_ns + length_ns,
                       (4000 + rank, 5, 7), lost_per_mille).write()
        made.append(f"{host}={root}/{host}")
    return made


def recording(pattern, out, seed, length_ns=4_000_000, lost_per_mille=2):
    """The recording `pattern` with other traces: what two ranks did from T + 0.5 s on."""
    shutil.copytree(pattern, out)
    with open(f"{out}/recording.json", encoding="utf-8") as file:
        nodes = json.load(file)["nodes"]
    for rank, node in enumerate(nodes):
        directory = f"{out}/nodes/{node['name']}/trace/ust/uid/0/64-bit"
        with open(f"{directory}/metadata", encoding="utf-8", errors="replace") as file:
            offset_ns = int(re.search(r"offset = (\d+)", file.read())[1])
        shutil.rmtree(directory)
        process = node["processes"][0]
        identity = (process["own_pid"], process["pid_namespace_inode"], process["start_ticks"])
        begin_ns = node["start"]["gate_begin_monotonic_ns"] + 500_000_000
        with made_up_traces.Trace(directory, 3, node["name"], offset_ns) as trace:
            RandomNode(seed, rank, trace, begin_ns, begin_ns + length_ns, identity,
                       lost_per_mille).write()
