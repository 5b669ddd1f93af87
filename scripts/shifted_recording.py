# SPDX-License-Identifier: Apache-2.0
"""Writes a recording whose ranks are windows of real ones, with other times.

Each rank is on a node of its own. The first node has the clock of the first recording's reference
node, all others that of its second node, and the traces are rewritten for these clocks
(made_clocks.py). What is not a rank's own is left out: messages, TCP connections, the traces of
steps outside of the window. Samples of the kernel's counters stay: each is taken when the rank was
where it had been, so that time that was added is time in which nothing grew.
"""

import dataclasses
import json
import os
import shutil
import struct

import numpy as np

from scripts import ctf_streams, made_clocks
from scripts.shifted_times import along, carried_by

START_NS = 20_000_000  # on the timeline: where the first step begins
EARLIER_NS, LATER_NS = 300_000_000, 100_000_000  # samples around it
ANNOUNCED_NS = 1_000_000  # before the window
FIRST_NUMBER = 1000  # of collectives
COLLECTION = ("python", "garbage collection")  # domain, name
# instrumentation/abi/control_block.h
RANK, ON_NS, EVENTS_AT_ON, SLOTS, SLOT_BYTES, SLOT_EVENTS = 56, 1800, 1832, 12, 64, 8
NAMES_HEADER, NAME_RECORD = 16, struct.Struct("<IHBB")
DOMAIN_KIND, TEXT_KIND = 1, 2
# Lines of samples.txt that have times, and at which of their words these begin.
TIMES = {letter: (2, 3) for letter in "tgpums"} | {"H": (1, 2), "R": (1,)}
RUN_QUEUE, CPU = 5, 6  # words of a `t` line
TICK_NS = 10_000_000  # of the processor time of other processes
THIEF = "P 3 4000001 1 1 0 0 0 =thief"  # a process outside of the job


@dataclasses.dataclass
class Part:
    """One rank of a recording that is made: steps of a real one, and what they become."""

    rank: object  # shifted_ranks.Rank
    first: int  # of its steps, and how many
    count: int
    moved: object  # shifted_times.Moved
    added: object  # shifted_times.Added
    collections: bool = False  # what was added is Python's garbage collection
    queued: bool = False  # what was added was spent waiting for a CPU
    clocks: object = None  # of its recording


class Trace:
    """The events of a part, and their new times."""

    def __init__(self, part, ranks, rank):
        self._part, self._schema, self._events = part, part.rank.schema, part.rank.events
        steps = part.rank.steps
        of = slice(part.first, part.first + part.count)
        self._begin = steps.optimizer[part.first - 1]
        self._end = steps.end[of][-1]
        self._old_number = steps.first_number + part.first * steps.launched.shape[1]
        places, times_ns, threads = self._choose(of)
        self.events = self._compact(places, times_ns)
        self._set_threads(threads)
        self._renumber_ranks(ranks, rank)
        if part.collections:
            self._add_collections()
        self.events = self.events.chosen(np.argsort(self.events.time_ns, kind="stable"))
        self._count_tasks((*part.rank.carriers, part.rank.driver))

    def _of_kind(self, name):
        return np.flatnonzero(self._events.kind == self._schema.number(name))

    def _task_kinds(self):
        return tuple(self._schema.number(f"syncline_itt:task_{what}") for what in ("begin", "end"))

    def _choose(self, of):
        """(places of the events that stay, their new times, and their new threads)."""
        part, events, thread = self._part, self._events, self._part.rank.thread
        moved = part.moved
        front = [self._of_kind(f"syncline:{what}") for what in ("on", "thread", "name")]
        front.append(self._of_kind("syncline_torch:operators"))
        groups = self._of_kind("syncline_torch:group")
        front.append(groups[events.time_ns[groups] < self._begin][-1:])
        front = np.concatenate([one for one in front if len(one)])
        within = (events.time_ns >= self._begin) & (events.time_ns <= self._end)
        within &= (thread != 0) & ~np.isin(thread, part.rank.carriers)
        within[front] = False
        within = np.flatnonzero(within)
        collectives = part.rank.steps.launched.shape[1]
        begin = part.rank.first_carried + of.start * collectives
        carried = part.rank.carried[begin : begin + part.count * collectives]
        off = self._of_kind("syncline:off")[-1:]
        places = np.concatenate([front, within, carried.ravel(), off])
        new = along(events.time_ns[within], moved.old, moved.new)
        threads, *pairs = carried_by(
            moved.entered.ravel(), moved.left.ravel(), thread[carried[:, 0]], part.rank.carriers
        )
        pairs = np.stack(pairs, axis=1)
        first = along(self._begin, moved.old, moved.new) - ANNOUNCED_NS
        last = max(moved.new[-1], pairs.max()) + ANNOUNCED_NS
        times = np.concatenate([
            first + np.arange(len(front)), new, pairs.ravel(), np.full(len(off), last)
        ])
        self.window = int(first) + START_NS, int(last) + START_NS
        own = thread[places]
        own[len(front) + len(within) : len(places) - len(off)] = np.repeat(threads, 2)
        return places, times + START_NS, own

    def _compact(self, places, times_ns):
        """The chosen events with bytes of their own."""
        chosen = self._events.chosen(places)
        at = np.concatenate([[0], np.cumsum(chosen.length.astype(np.int64))])
        place = np.arange(at[-1]) + np.repeat(chosen.begin - at[:-1], chosen.length)
        return ctf_streams.Events(
            chosen.data[place], at[:-1].copy(), chosen.length.astype(np.int64), chosen.kind,
            times_ns,
        )

    def _set(self, places, kind, field, values, size):
        at = self.events.begin[places] + self._schema.kinds[kind].offset(field)
        for i in range(size):
            self.events.data[at + i] = (np.asarray(values, np.int64) >> (8 * i)) & 0xFF

    def _append(self, payloads, kinds, times):
        """More events, behind the others."""
        events, at = self.events, len(self.events.data)
        lengths = np.array([len(one) for one in payloads])
        data = np.frombuffer(b"".join(payloads), np.uint8)
        self.events = ctf_streams.Events(
            np.concatenate([events.data, data]),
            np.concatenate([events.begin, at + np.cumsum(lengths) - lengths]),
            np.concatenate([events.length, lengths]),
            np.concatenate([events.kind, kinds]),
            np.concatenate([events.time_ns, times]),
        )

    def _places(self, name):
        kind = self._schema.number(name)
        return kind, np.flatnonzero(self.events.kind == kind)

    def _renumber_ranks(self, ranks, rank):
        """Who it is of how many, and which collectives these are."""
        kind, groups = self._places("syncline_torch:group")
        self._set(groups, kind, "rank", rank, 4)
        self._set(groups, kind, "size", ranks, 4)
        at = self._schema.kinds[kind].offset("sequence")
        for place in groups:
            begin = self.events.begin[place] + at
            old = int.from_bytes(self.events.data[begin : begin + 8].tobytes(), "little")
            new = max(old - self._old_number, 0) + FIRST_NUMBER
            self._set(np.array([place]), kind, "sequence", new, 8)
        kind, names = self._places("syncline:name")
        for place in names:
            payload = self.events.payload(place)
            if int.from_bytes(payload[4:8], "little") == self._part.rank.ranks_name:
                self._append([payload[:9] + members(ranks) + b"\0"], [kind], [0])
                self.events.begin[place] = self.events.begin[-1]
                self.events.length[place] = self.events.length[-1]
                self.events = self.events.chosen(slice(0, -1))

    def _add_collections(self):
        """A garbage collection wherever something was added, and the driver's tasks renumbered."""
        part, moved = self._part, self._part.moved
        begins = along(part.added.at - 1, moved.old, moved.new) + START_NS + 1
        ends = along(part.added.at, moved.old, moved.new) + START_NS - 1
        begin, end = self._task_kinds()
        domain, name = (part.rank.name_of(text) for text in COLLECTION)
        payload = struct.pack("<IIIHH", part.rank.driver, domain, name, 0, 0)
        count = len(begins)
        self._append(
            [payload] * (2 * count),
            np.repeat([begin, end], count),
            np.concatenate([begins, ends]),
        )

    def _set_threads(self, threads):
        """The carriers', of which a collective may have another one now."""
        kind = self._schema.number("syncline_itt:task_begin")
        places = np.flatnonzero(np.isin(threads, self._part.rank.carriers))
        ends = self._schema.number("syncline_itt:task_end")
        tasks = np.isin(self.events.kind[places], (kind, ends))
        self._set(places[tasks], kind, "thread", threads[places[tasks]], 4)

    def _count_tasks(self, threads):
        """The begins and ends of each thread's tasks, anew: a gap would be a loss."""
        begin, end = self._task_kinds()
        tasks, of = np.isin(self.events.kind, (begin, end)), self.events.u32(0)
        for thread in threads:
            places = np.flatnonzero(tasks & (of == thread))
            self._set(places, begin, "number", np.arange(len(places)), 2)

    def finish(self, node, clocks):
        """The events by the node's own clock, counted in the last one."""
        kind, off = self._places("syncline:off")
        self._set(off, kind, "events", len(self.events), 8)
        self._set(off, kind, "lost", 0, 8)
        self.events.time_ns = clocks.from_timeline(node, self.events.time_ns)
        return self.events


def with_thief(lines):
    """Lines of samples.txt with one more process, the last one; what it refers to comes first."""
    first = [line for line in lines if line[0] in "GL"]
    processes = [line for line in lines if line[0] == "P"]
    rest = [line for line in lines if line[0] not in "GLP"]
    return [*first, *processes, THIEF, *rest]


def members(ranks):
    return f"0-{ranks - 1}".encode()


def renamed(names, number, text):
    """The bytes of a .names file in which one name is another text."""
    out, at = bytearray(names[:NAMES_HEADER]), NAMES_HEADER
    while at + NAME_RECORD.size <= len(names):
        found, length, kind, flags = NAME_RECORD.unpack_from(names, at)
        if found == 0:
            break
        begin = at + NAME_RECORD.size
        old = names[begin : begin + length]
        new = text if found == number else old
        out += NAME_RECORD.pack(found, len(new), kind, flags) + new + b"\0"
        out += bytes(-len(out) % 4)
        at = begin + -(-(length + 1) // 4) * 4
    return bytes(out)


class Samples:
    """The lines of a part's samples.txt with other times."""

    def __init__(self, part, node, clocks):
        self._part, self._node, self._clocks = part, node, clocks
        self._first = int(part.moved.new[0]) + START_NS - EARLIER_NS
        self._last = int(part.moved.new[-1]) + START_NS + LATER_NS

    def rewrite(self, lines):
        """Those of the window, and all that have no time."""
        words = [line.split(" ") for line in lines]
        timed = [line for line in words if line[0] in TIMES]
        if not timed:
            return [" ".join(line) for line in words]
        old = np.array([int(line[TIMES[line[0]][0]]) for line in timed])
        part = self._part
        at = part.clocks.to_timeline(part.rank.node, old)
        new = along(at, part.moved.old, part.moved.new) + START_NS
        shown = np.maximum(new, self._first)
        stamps = self._clocks.from_timeline(self._node, shown)
        # What was added grows in one jump, when the thread runs again.
        grown = part.added.until(at) if part.queued else np.zeros(len(at), np.int64)
        driver = self._driver(words)
        thief, processor = sum(line[0] == "P" for line in words), "0"
        keep = (new >= self._first) & (new <= self._last)
        number = {id(line): i for i, line in enumerate(timed)}
        out = []
        for line in words:
            i = number.get(id(line))
            if i is None:
                out.append(" ".join(line))
            elif keep[i] or line[0] == "R":
                places = TIMES[line[0]]
                lasted = int(line[places[-1]]) - int(line[places[0]])
                line[places[0]] = str(stamps[i])
                if len(places) == 2:
                    line[places[1]] = str(stamps[i] + lasted)
                taken = part.queued and line[0] == "t" and line[1] == driver
                if taken:
                    line[RUN_QUEUE] = str(int(line[RUN_QUEUE]) + int(grown[i]))
                    processor = processor if line[CPU] == "-1" else line[CPU]
                out.append(" ".join(line))
                if taken:
                    cpu_ns = int(grown[i]) // TICK_NS * TICK_NS
                    out.append(" ".join(["p", str(thief), *line[2:4], str(cpu_ns), processor]))
        return with_thief(out) if part.queued else out

    @staticmethod
    def _driver(words):
        """The number of the recorded process's first thread."""
        processes = [line for line in words if line[0] == "P"]
        recorded = next(i for i, line in enumerate(processes) if line[1] == "0")
        threads = [line for line in words if line[0] == "T"]
        return next(
            str(i) for i, line in enumerate(threads)
            if line[1] == str(recorded) and line[2] == processes[recorded][2]
        )


class Made:
    """A recording below `out`, made of parts; its clocks are those of one real recording."""

    def __init__(self, out, parts, base, clocks):
        self._out, self._parts, self._base, self._clocks = out, parts, base, clocks

    def write(self):
        with open(os.path.join(self._base, "recording.json"), encoding="utf-8") as file:
            recording = json.load(file)
        sources = [node["name"] for node in recording["nodes"]][:2]
        names = [made_clocks.name(rank) for rank in range(len(self._parts))]
        nodes = [sources[min(rank, 1)] for rank in range(len(names))]
        os.makedirs(os.path.join(self._out, "clocks"))
        made_clocks.write(self._base, self._out, sources[0], nodes, names)
        recording["reference"]["node"] = names[0]
        by_name = {node["name"]: node for node in recording["nodes"]}
        recording["nodes"], ends = [], []
        for rank, part in enumerate(self._parts):
            trace = Trace(part, len(names), rank)
            ends.append(trace.window[1] + ANNOUNCED_NS)
            node = json.loads(json.dumps(by_name[nodes[rank]]))
            node["name"], node["address"] = names[rank], f"10.1.{rank // 256}.{rank % 256}:7611"
            self._write_node(node, nodes[rank], part, trace)
            recording["nodes"].append(node)
        self._set_window(recording, max(ends))
        with open(os.path.join(self._out, "recording.json"), "w", encoding="utf-8") as file:
            json.dump(recording, file)

    @staticmethod
    def _set_window(recording, end_ns):
        recording["window"].update(
            requested_ns=end_ns, begin_timeline_ns=0, end_timeline_ns=end_ns
        )
        for node in recording["nodes"]:
            start, stop = node["start"], node["stop"]
            for clock in ("raw_ns", "ns"):
                for edge in ("begin", "end"):
                    key = f"gate_{edge}_monotonic_{clock}"
                    stop[key] = start[key] + end_ns
            stop["requested_monotonic_raw_ns"] = start["requested_monotonic_raw_ns"] + end_ns

    def _write_node(self, node, source, part, trace):
        rank = int(node["name"].rpartition("-")[2])
        real = os.path.join(part.rank.recording, "nodes", part.rank.node)
        made = os.path.join(self._out, "nodes", node["name"])
        events = trace.finish(source, self._clocks)
        folder = part.rank.folder
        streams = os.path.join(made, "trace", folder)
        os.makedirs(streams)
        shutil.copy(os.path.join(real, "trace", folder, "metadata"), streams)
        path = os.path.join(streams, "syncline_0")
        size, packets = ctf_streams.write_stream(path, part.rank.schema, events)
        shutil.copy(os.path.join(real, "node.json"), made)
        on, off = (int(t) for t in self._clocks.from_timeline(source, np.array(trace.window)))
        with open(os.path.join(part.rank.recording, "recording.json"), encoding="utf-8") as file:
            real_nodes = {one["name"]: one for one in json.load(file)["nodes"]}
        process = real_nodes[part.rank.node]["processes"][0]
        process.update(
            rank=rank, world_size=len(self._parts), events=len(events), lost=0,
            on_monotonic_ns=on, off_monotonic_ns=off,
        )
        node["processes"] = [process]
        node["streams"] = [{
            "path": f"{folder}/syncline_0", "bytes": size, "packets": packets,
            "sequence_gaps": 0, "discarded_events": 0, "closed": True,
        }]
        self._write_process(real, made, part, (rank, on, off, len(events)))
        self._write_samples(real, made, source, part)

    def _write_process(self, real, made, part, facts):
        rank, on, off, count = facts
        os.makedirs(os.path.join(made, "processes"))
        for name in os.listdir(os.path.join(real, "processes")):
            with open(os.path.join(real, "processes", name), "rb") as file:
                data = bytearray(file.read())
            if name.endswith(".block"):
                (slots,) = struct.unpack_from("<I", data, SLOTS)
                events = sum(
                    struct.unpack_from("<Q", data, at + SLOT_EVENTS)[0]
                    for at in range(slots, len(data), SLOT_BYTES)
                )
                struct.pack_into("<ii", data, RANK, rank, len(self._parts))
                struct.pack_into("<QQ", data, ON_NS, on, off)
                struct.pack_into("<Q", data, EVENTS_AT_ON, events - count)
            else:
                data = renamed(bytes(data), part.rank.ranks_name, members(len(self._parts)))
            with open(os.path.join(made, "processes", name), "wb") as file:
                file.write(data)

    def _write_samples(self, real, made, source, part):
        path = os.path.join("evidence", "samples.txt")
        with open(os.path.join(real, path), encoding="utf-8") as file:
            head, *lines = file.read().splitlines()
        os.makedirs(os.path.join(made, "evidence"))
        lines = Samples(part, source, self._clocks).rewrite(lines)
        with open(os.path.join(made, path), "w", encoding="utf-8") as file:
            file.write("\n".join([head, *lines]) + "\n")
