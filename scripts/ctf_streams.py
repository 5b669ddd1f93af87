# SPDX-License-Identifier: Apache-2.0
"""The CTF streams of a recording: read into arrays, and written from arrays.

Only what LTTng-UST writes of Syncline's own channel: one class of streams, the large event header,
and events without contexts (docs/event-schema.md). Reading keeps each event's bytes as they were;
what changes is when they happened, and in which order they stand in the stream. Times are
nanoseconds of the node's CLOCK_MONOTONIC.
"""

import dataclasses
import os
import re
import struct

import numpy as np

METADATA_MAGIC = 0x75D11D57
PACKET_MAGIC = 0xC1FC1FC1
METADATA_HEADER_BYTES = 37
PACKET_HEADER = struct.Struct("<I16sIQ")
PACKET_CONTEXT = struct.Struct("<QQQQQQI")
PACKET_BYTES = PACKET_HEADER.size + PACKET_CONTEXT.size
HEADER_BYTES = 6  # of an event: its number, and the lower 32 bits of its time
EXTENDED = 0xFFFF  # in the place of the number: both follow in full
EXTENDED_BYTES = 14
FILLED_BYTES = 1 << 20  # of a packet that is written
PAGE = 4096

EVENT = re.compile(
    r'event \{\s*name = "([^"]+)";\s*id = (\d+);.*?fields := struct \{(.*?)\n\t\};', re.S
)
FIELD = re.compile(
    r"(?:integer \{ size = (?P<bits>\d+);[^}]*\}|(?P<text>string)|floating_point \{[^}]*\})"
    r" _(?P<name>\w+)(?P<many>\[ \w+ \])?;"
)


@dataclasses.dataclass(frozen=True)
class Kind:
    """An event's class: its fields as (name, bytes of one value, is a text, is a sequence)."""

    number: int
    name: str
    fields: tuple

    def fixed_bytes(self):
        """Of the payload; None if events of this kind differ."""
        if any(text or many for _, _, text, many in self.fields):
            return None
        return sum(size for _, size, _, _ in self.fields)

    def offset(self, wanted):
        """Of a field that nothing of varying length precedes, in the payload."""
        at = 0
        for name, size, text, many in self.fields:
            if name == wanted:
                return at
            if text or many:
                break
            at += size
        raise KeyError(f"{self.name}: no field {wanted} at a fixed place")

    def payload_bytes(self, data, at):
        """Of the event whose payload begins at data[at]."""
        begin, count = at, 1
        for name, size, text, many in self.fields:
            if text:
                at = data.index(b"\0", at) + 1
                continue
            if name.endswith("_length"):
                count = int.from_bytes(data[at : at + size], "little")
            at += size * count if many else size
        return at - begin


@dataclasses.dataclass
class Schema:
    """What the metadata of a trace says: the trace's number, and its kinds of events."""

    uuid: bytes
    kinds: dict  # by number

    def number(self, name):
        return next(kind.number for kind in self.kinds.values() if kind.name == name)


@dataclasses.dataclass
class Events:
    """Events of one process in the order of time; arrays of one length, but for the bytes."""

    data: np.ndarray  # uint8: of all payloads
    begin: np.ndarray  # int64: where an event's payload begins
    length: np.ndarray  # int32: and how long it is
    kind: np.ndarray  # uint16
    time_ns: np.ndarray  # int64

    def __len__(self):
        return len(self.time_ns)

    def u32(self, offset):
        """Four bytes of each payload as a number; of shorter payloads it is not defined."""
        at = np.minimum(self.begin + offset, len(self.data) - 4)
        parts = [self.data[at + i].astype(np.uint32) << np.uint32(8 * i) for i in range(4)]
        return parts[0] | parts[1] | parts[2] | parts[3]

    def payload(self, event):
        begin = self.begin[event]
        return self.data[begin : begin + self.length[event]].tobytes()

    def chosen(self, which):
        return Events(
            self.data, self.begin[which], self.length[which], self.kind[which], self.time_ns[which]
        )


def read_schema(path):
    with open(path, "rb") as file:
        raw = file.read()
    text, at = b"", 0
    while at < len(raw):
        magic, uuid, _, content, packet = struct.unpack_from("<I16sIII", raw, at)
        if magic != METADATA_MAGIC:
            raise ValueError(f"{path}: no metadata of CTF 1.8 in packets")
        text += raw[at + METADATA_HEADER_BYTES : at + content // 8]
        at += packet // 8
    text = text.decode()
    if "event.header := struct event_header_large" not in text:
        raise ValueError(f"{path}: its streams do not have the large event header")
    kinds = {}
    for name, number, body in EVENT.findall(text):
        fields = tuple(
            (
                field["name"],
                int(field["bits"] or 64) // 8,
                field["text"] is not None,
                field["many"] is not None,
            )
            for field in FIELD.finditer(body)
        )
        kinds[int(number)] = Kind(int(number), name, fields)
    return Schema(uuid, kinds)


def read_packet(data, at, content_bytes, sizes, kinds, found):
    """Adds (payload begins, kind) of a packet's events to `found`; extended times apart."""
    begins, numbers, full = found
    end, at = at + content_bytes, at + PACKET_BYTES
    while at < end:
        number = data[at] | data[at + 1] << 8
        payload = at + HEADER_BYTES
        if number == EXTENDED:
            number, time_ns = struct.unpack_from("<IQ", data, at + 2)
            payload = at + EXTENDED_BYTES
            full[len(begins)] = time_ns
        size = sizes[number]
        begins.append(payload)
        numbers.append(number)
        at = payload + (kinds[number].payload_bytes(data, payload) if size is None else size)


def read_stream(path, schema):
    """The events of one stream, as Events."""
    with open(path, "rb") as file:
        data = file.read()
    sizes = {number: kind.fixed_bytes() for number, kind in schema.kinds.items()}
    array = np.frombuffer(data, np.uint8)
    parts, at = [], 0
    while at < len(data):
        magic, _, _, _ = PACKET_HEADER.unpack_from(data, at)
        begin_ns, _, content, packet, _, _, _ = PACKET_CONTEXT.unpack_from(
            data, at + PACKET_HEADER.size
        )
        if magic != PACKET_MAGIC or packet == 0:
            raise ValueError(f"{path}: no packet at {at}")
        begins, numbers, full = [], [], {}
        read_packet(data, at, content // 8, sizes, schema.kinds, (begins, numbers, full))
        end = at + content // 8
        at += packet // 8
        if not begins:
            continue
        begin = np.array(begins, np.int64)
        low = sum(array[begin - 4 + i].astype(np.int64) << (8 * i) for i in range(4))
        # An extended time ends with its upper half; its lower one is 8 bytes before the payload.
        for event, time_ns in full.items():
            low[event] = time_ns & 0xFFFFFFFF
        steps = np.diff(low, prepend=begin_ns & 0xFFFFFFFF) & 0xFFFFFFFF
        for event, time_ns in full.items():
            before = begin_ns + steps[:event].sum()
            steps[event] = time_ns - before
        headers = np.full(len(begins), HEADER_BYTES)
        headers[list(full)] = EXTENDED_BYTES
        length = np.append(begin[1:] - headers[1:], end) - begin
        parts.append((begin, length, np.array(numbers), begin_ns + np.cumsum(steps)))
    if not parts:
        return Events(array, *(np.zeros(0, np.int64) for _ in range(4)))
    return Events(array, *(np.concatenate(column) for column in zip(*parts)))


def read_trace(folder):
    """(schema, events of all streams by time) of a directory with a metadata file."""
    schema = read_schema(os.path.join(folder, "metadata"))
    names = sorted(
        name for name in os.listdir(folder)
        if name != "metadata" and os.path.isfile(os.path.join(folder, name))
    )
    streams = [read_stream(os.path.join(folder, name), schema) for name in names]
    offsets = np.cumsum([0] + [len(one.data) for one in streams])
    whole = Events(
        np.concatenate([one.data for one in streams]),
        np.concatenate([one.begin + offset for one, offset in zip(streams, offsets)]),
        *(np.concatenate([getattr(one, name) for one in streams])
          for name in ("length", "kind", "time_ns")),
    )
    return schema, whole.chosen(np.argsort(whole.time_ns, kind="stable"))


def event_bytes(events):
    """(bytes of all events with their headers, where each begins; one more: the end)."""
    lengths = events.length.astype(np.int64) + HEADER_BYTES
    at = np.concatenate([[0], np.cumsum(lengths)])
    place = np.arange(at[-1]) + np.repeat(events.begin - HEADER_BYTES - at[:-1], lengths)
    out = events.data[np.maximum(place, 0)]
    for i in range(2):
        out[at[:-1] + i] = (events.kind >> (8 * i)) & 0xFF
    for i in range(4):
        out[at[:-1] + 2 + i] = (events.time_ns >> (8 * i)) & 0xFF
    return out, at


def write_stream(path, schema, events):
    """Writes events, which are in the order of time; how many bytes and packets that are."""
    if np.any(np.diff(events.time_ns) < 0):
        raise ValueError(f"{path}: events are not in the order of time")
    if np.any(np.diff(events.time_ns) >= 1 << 32):
        raise ValueError(f"{path}: events are too far apart for their headers")
    out, at = event_bytes(events)
    first, packets, total = 0, 0, 0
    with open(path, "wb") as file:
        while first < len(events):
            last = int(np.searchsorted(at, at[first] + FILLED_BYTES - PACKET_BYTES, "right")) - 1
            last = max(last, first + 1)
            content = PACKET_BYTES + int(at[last] - at[first])
            size = -(-content // PAGE) * PAGE
            times = int(events.time_ns[first]), int(events.time_ns[last - 1])
            file.write(PACKET_HEADER.pack(PACKET_MAGIC, schema.uuid, 0, 0))
            file.write(PACKET_CONTEXT.pack(*times, 8 * content, 8 * size, packets, 0, 0))
            file.write(out[at[first] : at[last]].tobytes())
            file.write(bytes(size - content))
            first, packets, total = last, packets + 1, total + size
    return total, packets
