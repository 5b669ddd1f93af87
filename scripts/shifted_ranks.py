# SPDX-License-Identifier: Apache-2.0
"""One rank of a recording of examples/pytorch_fault: its steps, collectives and waits.

Read from the trace as LTTng wrote it. The job is known: DistributedDataParallel over Gloo, whose
driver launches all collectives of a step in the backward pass and then waits for one after the
other, before it copies the bucket's gradients (`aten::as_strided`). A recording that is not like
that is refused. Times of arrays are of the recording's own timeline, in ns.
"""

import dataclasses
import fnmatch
import json
import os

import numpy as np

from scripts import ctf_streams
from scripts.shifted_times import Window, along

STEP = "Optimizer.step#*.step"
LAUNCH = "c10d::*"
CARRIED = "gloo:*"
LOADER = "enumerate(DataLoader)*"
OPERATOR = "convolution"  # of oneDNN
AFTER_WAIT = "aten::as_strided"
# Messages are left out: their positions and times are of connections that no longer fit.
LEFT_OUT = "syncline_net:"


class NotSuch(ValueError):
    """The recording is not of such a job, or something in it is missing."""


class Clocks:
    """From a node's CLOCK_MONOTONIC to the timeline of its recording, and back: estimates."""

    def __init__(self, recording):
        self.folder = os.path.join(recording, "clocks")
        with open(os.path.join(self.folder, "models.json"), encoding="utf-8") as file:
            self.models = json.load(file)
        self._zero_raw = self.models["zero_reference_raw_ns"]
        self._place = {name: place for place, name in enumerate(self.models["nodes"])}
        self.reference = self.models["reference"]

    @staticmethod
    def _columns(line):
        knots = np.array(line["knots"], np.int64)
        return knots[:, 0], knots[:, 2]

    def _lines(self, node):
        """Knots: (the node's raw clock, monotonic), (the reference's raw clock, the node's)."""
        place = self._place[node]
        raw, monotonic = self._columns(self.models["clocks"][place]["monotonic"])
        if place == self.reference:
            return raw, monotonic, raw, raw
        edge = next(
            edge for edge in self.models["edges"]
            if (edge["local"], edge["remote"]) == (self.reference, place)
        )
        return raw, monotonic, *self._columns(edge["map"])

    def to_timeline(self, node, monotonic_ns):
        raw, monotonic, reference, remote = self._lines(node)
        at = along(np.asarray(monotonic_ns, np.int64), monotonic, raw)
        return along(at, remote, reference) - self._zero_raw

    def from_timeline(self, node, timeline_ns):
        raw, monotonic, reference, remote = self._lines(node)
        at = along(np.asarray(timeline_ns, np.int64) + self._zero_raw, reference, remote)
        return along(at, raw, monotonic)


@dataclasses.dataclass
class Steps:
    """Of one rank; arrays of (step) or (step, collective of the step)."""

    first_number: int  # of the first step's first collective
    begin: np.ndarray  # a step begins where the one before ends
    end: np.ndarray
    optimizer: np.ndarray  # begins
    launched: np.ndarray
    entered: np.ndarray
    left: np.ndarray
    wait_begin: np.ndarray
    wait_end: np.ndarray
    host: np.ndarray  # the driver's first event in the step
    loader: np.ndarray  # where the loader's task ends
    operator: np.ndarray  # where the step's first primitive of oneDNN ends

    def __len__(self):
        return len(self.begin)

    def own_work(self):
        """Of each step: without the waits."""
        return self.end - self.begin - (self.wait_end - self.wait_begin).sum(axis=1)


@dataclasses.dataclass
class Rank:
    """A rank's trace."""

    recording: str
    node: str
    rank: int
    schema: ctf_streams.Schema
    events: ctf_streams.Events  # times on the timeline
    thread: np.ndarray  # the thread key of each event; 0 for those without
    driver: int
    carriers: tuple  # thread keys of those that carry collectives out
    carried: np.ndarray  # events: (begin, end) of each collective, in their order
    first_carried: int  # the place in `carried` of the first step's first one
    steps: Steps
    ranks_name: int  # the name that lists the process group's members
    names: dict  # texts, by number
    folder: str  # of the trace, below trace/

    def name_of(self, text):
        return next(number for number, one in self.names.items() if one == text)


class _Reader:
    def __init__(self, recording, node, rank, clocks):
        self._where = f"{recording}: {node}"
        trace = os.path.join(recording, "nodes", node, "trace")
        folder = _trace_folder(trace)
        self._folder = os.path.relpath(folder, trace)
        self.schema, events = ctf_streams.read_trace(folder)
        events.time_ns = clocks.to_timeline(node, events.time_ns)
        gone = [n for n, kind in self.schema.kinds.items() if kind.name.startswith(LEFT_OUT)]
        self.events = events.chosen(~np.isin(events.kind, gone))
        self._names = self._texts("syncline:name", "id")
        self.thread = self._threads()
        self.recording, self.node, self.rank = recording, node, rank

    def _texts(self, kind, key):
        """By the payload's u32 `key`: its last field, a text."""
        kind = self.schema.kinds[self.schema.number(kind)]
        at, texts = kind.offset(key), {}
        text_at = kind.offset(kind.fields[-1][0])
        for event in np.flatnonzero(self.events.kind == kind.number):
            payload = self.events.payload(event)
            number = int.from_bytes(payload[at : at + 4], "little")
            texts[number] = payload[text_at:-1].decode(errors="replace")
        return texts

    def _threads(self):
        thread = self.events.u32(0)
        for number, kind in self.schema.kinds.items():
            if kind.fields[0][0] != "thread":
                thread[self.events.kind == number] = 0
        return thread

    def _matching(self, pattern):
        return [n for n, text in self._names.items() if fnmatch.fnmatchcase(text, pattern)]

    def _tasks(self):
        """(places of begins and ends of tasks, their names, whether they are begins)."""
        begin, end = (self.schema.number(f"syncline_itt:task_{what}") for what in ("begin", "end"))
        at = self.schema.kinds[begin].offset("name")
        places = np.flatnonzero((self.events.kind == begin) | (self.events.kind == end))
        names = self.events.chosen(places).u32(at)
        return places, names, self.events.kind[places] == begin

    def read(self):
        places, names, begins = self._tasks()
        threads = self.thread[places]
        launches = np.isin(names, self._matching(LAUNCH)) & begins
        if not launches.any():
            raise NotSuch(f"{self._where}: no collective was launched")
        keys, counts = np.unique(threads[launches], return_counts=True)
        driver = int(keys[np.argmax(counts)])
        carried, carriers = self._carried(places, names, begins, threads)
        on = threads == driver
        steps, first = self._steps(places[on], names[on], begins[on], carried)
        return Rank(
            *(self.recording, self.node, self.rank, self.schema, self.events, self.thread, driver),
            *(carriers, carried, first, steps, self._group()["ranks"], self._names, self._folder),
        )

    def _group(self):
        """The fields of the first syncline_torch:group."""
        kind = self.schema.kinds[self.schema.number("syncline_torch:group")]
        found = np.flatnonzero(self.events.kind == kind.number)
        if not len(found):
            raise NotSuch(f"{self._where}: no process group was announced")
        payload = self.events.payload(found[0])
        fields = {"place": found[0]}
        for name, size, _, _ in kind.fields:
            at = kind.offset(name)
            fields[name] = int.from_bytes(payload[at : at + size], "little")
        return fields

    def _carried(self, places, names, begins, threads):
        """Events (begin, end) of each range of a thread that carries collectives out."""
        of = np.isin(names, self._matching(CARRIED))
        pairs = []
        keys = tuple(int(key) for key in np.unique(threads[of]))
        for key in keys:
            mine = np.flatnonzero(of & (threads == key))
            while len(mine) and not begins[mine[0]]:
                mine = mine[1:]
            mine = mine[: len(mine) // 2 * 2]
            if not (np.all(begins[mine[::2]]) and not np.any(begins[mine[1::2]])):
                raise NotSuch(f"{self._where}: ranges of collectives are not whole")
            pairs.append(places[mine].reshape(-1, 2))
        pairs = np.concatenate(pairs)
        return pairs[np.argsort(self.events.time_ns[pairs[:, 0]])], keys

    def _steps(self, places, names, begins, carried):
        """(Steps, the place in `carried` of the first one's first collective)."""
        time_ns = self.events.time_ns[places]
        ends = np.flatnonzero(np.isin(names, self._matching(STEP)) & ~begins)
        optimizer = np.flatnonzero(np.isin(names, self._matching(STEP)) & begins)
        launches = np.flatnonzero(np.isin(names, self._matching(LAUNCH)) & begins)
        group = self._group()
        number = group["sequence"] - np.sum(time_ns[launches] < self.events.time_ns[group["place"]])
        entered = self.events.time_ns[carried]
        columns, count = [], None
        shift = int(np.searchsorted(entered[:, 0], time_ns[launches[0]]))
        for last, this in zip(ends[:-1], ends[1:]):
            mine = launches[(launches > last) & (launches < this)]
            waits = self._waits(names, begins, mine[-1] if len(mine) else this, this)
            count = count or len(mine)
            if len(mine) != count or len(waits) != count or count == 0:
                raise NotSuch(
                    f"{self._where}: a step has {len(mine)} collectives and {len(waits)} waits"
                )
            nth = int(np.searchsorted(launches, mine[0]))
            own = entered[nth + shift : nth + shift + count]
            if len(own) < count:
                break
            within = slice(last + 1, this)
            columns.append((
                time_ns[last], time_ns[this], time_ns[optimizer[optimizer < this][-1]],
                time_ns[mine], own[:, 0], own[:, 1], time_ns[waits - 1], time_ns[waits],
                *self._points(time_ns[within], names[within], begins[within]), nth,
            ))
        *arrays, nths = (np.array(column) for column in zip(*columns))
        steps = Steps(int(number + nths[0]), *arrays)
        if np.any(steps.entered < steps.launched) or np.any(steps.left < steps.entered):
            raise NotSuch(f"{self._where}: collectives begin before they are launched")
        return steps, int(nths[0]) + shift

    def _waits(self, names, begins, launch, end):
        """What the driver does first behind each wait, of a step whose last launch is given."""
        found = np.isin(names[launch:end], self._matching(AFTER_WAIT))
        first = found[1:] & begins[launch + 1 : end] & ~found[:-1]
        return np.flatnonzero(first) + launch + 1

    def _points(self, time_ns, names, begins):
        """Of a step: its first event, and where its loader and one of its primitives end."""
        loader = time_ns[np.isin(names, self._matching(LOADER)) & ~begins]
        work = np.flatnonzero(np.isin(names, self._matching(OPERATOR)))
        if len(loader) != 1 or len(work) < 2:
            raise NotSuch(f"{self._where}: a step has {len(loader)} batches")
        return time_ns[0], loader[0], time_ns[work[1]]


def _trace_folder(trace):
    for folder, _, files in os.walk(trace):
        if "metadata" in files:
            return folder
    raise NotSuch(f"{trace}: no trace")


@dataclasses.dataclass
class Recording:
    """All ranks of a recording; what they have in common, in arrays by (step, collective)."""

    path: str
    ranks: list
    clocks: Clocks
    first: list  # of each rank's steps the first that all have
    began: np.ndarray

    def __len__(self):
        return len(self.began)

    def window(self, rank, first, count):
        """Some of a rank's steps; `first` is 1 or more, so that a collective is before them."""
        steps, begin = self.ranks[rank].steps, self.first[rank] + first
        of = slice(begin, begin + count)
        names = ("begin", "end", "launched", "entered", "left", "wait_begin", "wait_end")
        zero = int(self.began[first - 1].max())
        return Window(
            zero, *(getattr(steps, name)[of] for name in names), self.began[first : first + count]
        )


def read_recording(path):
    with open(os.path.join(path, "recording.json"), encoding="utf-8") as file:
        nodes = json.load(file)["nodes"]
    clocks = Clocks(path)
    ranks = []
    for node in nodes:
        if len(node["processes"]) != 1:
            raise NotSuch(f"{path}: node {node['name']} does not have one process")
        number = node["processes"][0]["rank"]
        ranks.append(_Reader(path, node["name"], number, clocks).read())
    ranks.sort(key=lambda one: one.rank)
    collectives = ranks[0].steps.launched.shape[1]
    newest = max(rank.steps.first_number for rank in ranks)
    first = [(newest - rank.steps.first_number) // collectives for rank in ranks]
    count = min(len(rank.steps) - skip for rank, skip in zip(ranks, first))
    if any((newest - rank.steps.first_number) % collectives for rank in ranks) or count < 1:
        raise NotSuch(f"{path}: the ranks have no steps in common")
    entered = [rank.steps.entered[skip : skip + count] for rank, skip in zip(ranks, first)]
    return Recording(path, ranks, clocks, first, np.maximum.reduce(entered))
