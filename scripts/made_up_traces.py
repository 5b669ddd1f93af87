# SPDX-License-Identifier: Apache-2.0
"""Traces as LTTng-UST writes those of our own events (docs/event-schema.md), made up: for comparing
two builds of Syncline (compare_outputs.py) and for timing them (bench_merge.py).

The same arguments give the same bytes.
"""

import os
import random
import struct

TYPES = {
    "u8": ("uint8_t", "B"),
    "u16": ("uint16_t", "H"),
    "u32": ("uint32_t", "I"),
    "u64": ("uint64_t", "Q"),
    "i32": ("int32_t", "i"),
    "i64": ("int64_t", "q"),
    "f64": ("double_t", "d"),
}
D = [("d1", "u64"), ("d2", "u64"), ("d3", "u64")]
P = [("p1", "u64"), ("p2", "u64"), ("p3", "u64")]
E = [("e1", "u64"), ("e2", "u64"), ("e3", "u64")]
THREAD = [("thread", "u32")]
PLACE = [*THREAD, ("domain", "u32")]
NAMED = [*PLACE, ("name", "u32")]
TASK = [*NAMED, ("depth", "u16"), ("number", "u16")]
KEYED = [*PLACE, ("key", "u32"), ("depth", "u16"), *D]
MOVED = [*THREAD, ("connection", "u64"), ("begin", "u64"), ("bytes", "u64"), ("since", "u64")]

# As in instrumentation/*/tracepoints.h. "str" is a text, "u64[]" a length and numbers.
EVENTS = {
    "syncline:on": [
        ("generation", "u32"),
        ("process", "u32"),
        ("pid", "i32"),
        ("pidns", "u64"),
        ("start_ticks", "u64"),
    ],
    "syncline:off": [
        ("generation", "u32"),
        ("process", "u32"),
        ("events", "u64"),
        ("lost", "u64"),
        ("cost_ns", "u64"),
    ],
    "syncline:pause": THREAD,
    "syncline:resume": THREAD,
    "syncline:thread": [*THREAD, ("process", "u32"), ("tid", "i32"), ("name", "str")],
    "syncline:name": [("process", "u32"), ("id", "u32"), ("kind", "u8"), ("text", "str")],
    "syncline_itt:task_begin": TASK,
    "syncline_itt:task_begin_id": [*TASK, *D, *P],
    "syncline_itt:task_begin_fn": [*TASK, ("fn", "u64"), *D, *P],
    "syncline_itt:task_begin_text": [*PLACE, ("depth", "u16"), ("number", "u16"), ("name", "str")],
    "syncline_itt:task_end": TASK,
    "syncline_itt:task_begin_overlapped": [*NAMED, *D, *P],
    "syncline_itt:task_end_overlapped": [*NAMED, *D],
    "syncline_itt:metadata_u64": [*KEYED, ("values", "u64[]")],
    "syncline_itt:metadata_f64": [*KEYED, ("values", "u64[]")],
    "syncline_itt:metadata_text": [*KEYED, ("text", "str")],
    "syncline_itt:metadata_name": [*KEYED, ("text", "u32")],
    "syncline_itt:marker": [*NAMED, ("scope", "u8"), *D],
    "syncline_itt:frame_begin": [*PLACE, *D],
    "syncline_itt:frame_end": [*PLACE, *D],
    "syncline_itt:frame_submit": [*PLACE, *D, ("begin", "u64"), ("end", "u64")],
    "syncline_itt:counter_u64": [*NAMED, ("value", "u64")],
    "syncline_itt:counter_f64": [*NAMED, ("value", "f64")],
    "syncline_itt:event_start": [*THREAD, ("name", "u32")],
    "syncline_itt:event_end": [*THREAD, ("name", "u32")],
    "syncline_itt:relation": [*PLACE, ("kind", "u8"), *D, *E],
    "syncline_itt:sync": [*THREAD, ("kind", "u8"), ("object", "u64"), ("name", "u32")],
    "syncline_net:connection": [
        *THREAD,
        ("connection", "u64"),
        ("sent", "u64"),
        ("received", "u64"),
        ("retransmits", "u32"),
        ("rtt_us", "u32"),
        ("local_port", "u16"),
        ("remote_port", "u16"),
        ("local", "str"),
        ("remote", "str"),
    ],
    "syncline_net:send": MOVED,
    "syncline_net:receive": MOVED,
    "syncline_torch:operators": [*THREAD, ("on", "u8")],
    "syncline_torch:group": [
        *THREAD,
        ("group", "u32"),
        ("description", "u32"),
        ("ranks", "u32"),
        ("rank", "i32"),
        ("size", "u32"),
        ("sequence", "u64"),
    ],
    "syncline_torch:collective": [
        *THREAD,
        ("group", "u32"),
        ("name", "u32"),
        ("sequence", "u64"),
        ("bytes", "u64"),
    ],
    "syncline_torch:root": [*THREAD, ("group", "u32"), ("root", "i32")],
    "syncline_torch:transfer_begin": [
        *THREAD,
        ("d1", "u64"),
        ("group", "u32"),
        ("name", "u32"),
        ("peer", "i32"),
        ("tag", "i32"),
        ("bytes", "u64"),
    ],
    "syncline_torch:transfer_end": [
        *THREAD,
        ("d1", "u64"),
        ("peer", "i32"),
        ("waited", "u64"),
    ],
    # Another provider's; which thread it was stands in its context.
    "other:tick": [("vpid", "i32"), ("vtid", "i32"), ("count", "u64"), ("what", "str")],
}
CONTEXTS = {"other:tick": 2}  # so many of the first fields
IDS = {name: number for number, name in enumerate(EVENTS)}

HEAD = """/* CTF 1.8 */
typealias integer {{ size = 8; align = 8; signed = false; }} := uint8_t;
typealias integer {{ size = 16; align = 8; signed = false; }} := uint16_t;
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;
typealias integer {{ size = 32; align = 8; signed = true; }} := int32_t;
typealias integer {{ size = 64; align = 8; signed = true; }} := int64_t;
typealias floating_point {{ exp_dig = 11; mant_dig = 53; align = 8; }} := double_t;
trace {{ major = 1; minor = 8; uuid = "53594e43-4c49-4e45-8000-6d6164652075"; byte_order = le;
  packet.header := struct {{
    uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; uint64_t stream_instance_id; }}; }};
env {{ hostname = "{host}"; domain = "ust"; tracer_name = "lttng-ust";
  tracer_buffering_scheme = "uid"; tracer_buffering_id = 0; }};
clock {{ name = "monotonic"; freq = 1000000000; offset = {offset}; }};
typealias integer {{ size = 32; align = 8; map = clock.monotonic.value; }} := uint32_clock_t;
typealias integer {{ size = 64; align = 8; map = clock.monotonic.value; }} := uint64_clock_t;
stream {{ id = 0;
  event.header := struct {{
    enum : uint16_t {{ compact = 0 ... 65534, extended = 65535 }} id;
    variant <id> {{
      struct {{ uint32_clock_t timestamp; }} compact;
      struct {{ uint32_t id; uint64_clock_t timestamp; }} extended;
    }} v;
  }} align(8);
  packet.context := struct {{
    uint64_clock_t timestamp_begin; uint64_clock_t timestamp_end; uint64_t content_size;
    uint64_t packet_size; uint64_t packet_seq_num; uint64_t events_discarded; uint32_t cpu_id; }};
}};
"""
UNIX_NS = 1_700_000_000_000_000_000
PACKET_BYTES = 1 << 18
SILENCE_NS = 1 << 31  # then the whole time is written


def metadata(host, offset_ns):
    text = HEAD.format(host=host, offset=offset_ns)
    for name, fields in EVENTS.items():
        body = context = ""
        for index, (field, kind) in enumerate(fields):
            if index == CONTEXTS.get(name):
                body, context = "", f" context := struct {{{body} }};"
            if kind == "str":
                body += f" string _{field};"
            elif kind.endswith("[]"):
                element = TYPES[kind[:-2]][0]
                body += f" uint32_t __{field}_length; {element} _{field}[ __{field}_length ];"
            else:
                body += f" {TYPES[kind][0]} _{field};"
        number = IDS[name]
        text += f'event {{ name = "{name}"; id = {number}; stream_id = 0;{context}'
        text += f" fields := struct {{{body} }}; }};\n"
    return text


def _packer(name):
    """What makes the event's payload of its values."""
    fields = EVENTS[name]
    if all(kind in TYPES for _, kind in fields):
        return struct.Struct("<" + "".join(TYPES[kind][1] for _, kind in fields)).pack

    def pack(*values):
        data = b""
        for (_, kind), value in zip(fields, values):
            if kind == "str":
                data += value.encode() + b"\0"
            elif kind.endswith("[]"):
                data += struct.pack(f"<I{len(value)}{TYPES[kind[:-2]][1]}", len(value), *value)
            else:
                data += struct.pack("<" + TYPES[kind][1], value)
        return data

    return pack


PACK = {name: _packer(name) for name in EVENTS}


class Stream:
    """One file; events are put into it in the order of time."""

    def __init__(self, path, cpu):
        self._file = open(path, "wb")
        self._cpu = cpu
        self._body = bytearray()
        self._begin_ns = self._last_ns = 0
        self._sequence = 0
        self._discarded = 0

    def put(self, name, time_ns, *values):
        if len(self._body) > PACKET_BYTES:
            self.flush()
        if not self._body:
            self._begin_ns = time_ns
        if not self._body or time_ns - self._last_ns >= SILENCE_NS:
            self._body += struct.pack("<HIQ", 65535, IDS[name], time_ns)
        else:
            self._body += struct.pack("<HI", IDS[name], time_ns & 0xFFFFFFFF)
        self._last_ns = time_ns
        self._body += PACK[name](*values)

    def lose(self, count):
        """The tracer says of the packet that ends here that so many events are missing."""
        self._discarded += count
        self.flush()

    def flush(self):
        if not self._body:
            return
        head = struct.pack("<I16sIQ", 0xC1FC1FC1, b"SYNCLINE\x80\0made u", 0, self._cpu)
        content = 8 * (len(head) + 6 * 8 + 4 + len(self._body))
        head += struct.pack("<QQQQQQI", self._begin_ns, self._last_ns, content, content,
                            self._sequence, self._discarded, self._cpu)
        self._file.write(head + self._body)
        self._sequence += 1
        self._body.clear()

    def close(self):
        self.flush()
        self._file.close()


class Trace:
    """A directory with `streams` files."""

    def __init__(self, directory, streams, host="made-up", offset_ns=UNIX_NS):
        os.makedirs(directory)
        with open(os.path.join(directory, "metadata"), "w", encoding="utf-8") as file:
            file.write(metadata(host, offset_ns))
        self.streams = [Stream(f"{directory}/syncline_{i}", i) for i in range(streams)]

    def close(self):
        for stream in self.streams:
            stream.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


BEGIN_NS = 1_000_000_000


def announce(trace, names, threads, process=1, pid=4000, at_ns=BEGIN_NS):
    """What a process says of itself: `names` by id, `threads` as pairs of key and tid."""
    stream = trace.streams[0]
    stream.put("syncline:on", at_ns, 1, process, pid, 5, 7)
    for number, text in names.items():
        stream.put("syncline:name", at_ns, process, number, 1, text)
    for key, tid in threads:
        stream.put("syncline:thread", at_ns, key, process, tid, f"thread {tid}")


def tasks(directory, events, streams=2, threads=8, lost=0):
    """Plain tasks of a training job: steps with operators with kernels in them, in `threads`
    threads, of which each stays on its processor. Of each stream `lost` events are missing near its
    begin. Returns the number of events."""
    names = {1: "train"} | {i: f"gradients/layer_{i}/Conv2DBackpropFilter" for i in range(2, 202)}
    names[202] = "step"
    dice = random.Random(1)
    written = 0
    with Trace(directory, streams) as trace:
        announce(trace, names, [(key, 5000 + key) for key in range(1, threads + 1)])
        written += 1 + len(names) + threads
        begin, end = IDS["syncline_itt:task_begin"], IDS["syncline_itt:task_end"]
        pack = struct.Struct("<HIIIIHH").pack  # header and payload
        # A thread's step, as (kind, name, depth, ns): some variants of it, used by turns.
        variants = []
        for _ in range(16):
            step = [(begin, 202, 0, 200)]
            for _ in range(20):
                name = dice.randrange(2, 202)
                step.append((begin, name, 1, dice.randrange(50, 400)))
                for _ in range(2):
                    kernel = dice.randrange(2, 202)
                    step.append((begin, kernel, 2, dice.randrange(50, 200)))
                    step.append((end, kernel, 2, dice.randrange(500, 4000)))
                step.append((end, name, 1, dice.randrange(50, 200)))
            step.append((end, 202, 0, 200))
            variants.append(step)
        for number, stream in enumerate(trace.streams):
            mine = list(range(number + 1, threads + 1, streams))
            numbers = dict.fromkeys(mine, 0)
            now = BEGIN_NS + 1000 + number
            stream.put("syncline_itt:task_begin", now, mine[0], 1, 202, 0, 0)
            stream.put("syncline_itt:task_end", now + 10, mine[0], 1, 202, 0, 1)
            numbers[mine[0]] = 2
            if lost:
                stream.lose(lost)
                now += 10
                stream.put("syncline_itt:task_begin", now, mine[0], 1, 202, 0, 2)
                stream.put("syncline_itt:task_end", now + 10, mine[0], 1, 202, 0, 3)
                numbers[mine[0]] = 4
                written += 2
            now += 20
            written += 2
            turn = 0
            while written < events * (number + 1) // streams:
                thread = mine[turn % len(mine)]
                count = numbers[thread]
                step = variants[turn * 7 % len(variants)]
                body = stream._body
                for kind, name, depth, pause in step:
                    now += pause
                    body += pack(kind, now & 0xFFFFFFFF, thread, 1, name, depth, count & 0xFFFF)
                    count += 1
                numbers[thread] = count
                written += len(step)
                turn += 1
                stream._last_ns = now
                if len(body) > PACKET_BYTES:
                    stream.flush()
                    # The first event of a packet has its whole time.
                    now += 10
                    stream.put("syncline_itt:task_begin", now, thread, 1, 202, 0, count & 0xFFFF)
                    stream.put("syncline_itt:task_end", now + 5, thread, 1, 202, 0,
                               (count + 1) & 0xFFFF)
                    numbers[thread] = count + 2
                    now += 10
                    written += 2
    return written


def overlapped(directory, size):
    """`size` overlapped tasks that are open at once, with five metadata each."""
    with Trace(directory, 1) as trace:
        announce(trace, {1: "domain", 2: "request", 3: "key"}, [(1, 5001)])
        put, now = trace.streams[0].put, BEGIN_NS
        for i in range(1, size + 1):
            now += 100
            put("syncline_itt:task_begin_overlapped", now, 1, 1, 2, i, 0, 0, 0, 0, 0)
        for i in range(5 * size):
            now += 100
            put("syncline_itt:metadata_u64", now, 1, 1, 3, 0, 1 + i * 7919 % size, 0, 0, [i])
        for i in range(1, size + 1):
            now += 100
            put("syncline_itt:task_end_overlapped", now, 1, 1, 2, i, 0, 0)
    return 7 * size


def metadata_elsewhere(directory, size):
    """Tasks with ids in `size` threads, open at once; another thread says five things of each."""
    with Trace(directory, 1) as trace:
        threads = [(i, 5000 + i) for i in range(1, size + 2)]
        announce(trace, {1: "domain", 2: "work", 3: "key"}, threads)
        put, now = trace.streams[0].put, BEGIN_NS
        for i in range(1, size + 1):
            now += 100
            put("syncline_itt:task_begin_id", now, i, 1, 2, 0, 0, i, 0, 0, 0, 0, 0)
        for i in range(5 * size):
            now += 100
            put("syncline_itt:metadata_u64", now, size + 1, 1, 3, 0, 1 + i * 7919 % size, 0, 0, [i])
        for i in range(1, size + 1):
            now += 100
            put("syncline_itt:task_end", now, i, 1, 2, 0, 1)
    return 7 * size


def short_threads(directory, size):
    """`size` processes with one thread each that runs one task."""
    with Trace(directory, 1) as trace:
        put, now = trace.streams[0].put, BEGIN_NS
        for i in range(1, size + 1):
            now += 100
            put("syncline:on", now, 1, i, 4000 + i, 5, i)
            put("syncline:thread", now, i, i, 4000 + i, "main")
            put("syncline_itt:task_begin", now + 10, i, 0, 0, 0, 0)
            put("syncline_itt:task_end", now + 20, i, 0, 0, 0, 1)
            put("syncline:off", now + 30, 1, i, 5, 0, 5)
    return 5 * size


def foreign_threads(directory, size):
    """Two events of another provider by each of `size` threads."""
    with Trace(directory, 1) as trace:
        put, now = trace.streams[0].put, BEGIN_NS
        for i in range(2 * size):
            now += 100
            put("other:tick", now, 4000, 5000 + i % size, i, "tick")
    return 2 * size


def lanes(directory, size):
    """`size` overlapped tasks that are open at once, several times over."""
    with Trace(directory, 1) as trace:
        announce(trace, {1: "domain", 2: "request"}, [(1, 5001)])
        put, now = trace.streams[0].put, BEGIN_NS
        for again in range(3):
            for i in range(1, size + 1):
                now += 100
                put("syncline_itt:task_begin_overlapped", now, 1, 1, 2, i, again, 0, 0, 0, 0)
            for i in range(1, size + 1):
                now += 100
                put("syncline_itt:task_end_overlapped", now, 1, 1, 2, i, again, 0)
    return 6 * size
