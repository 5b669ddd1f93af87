#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a CTF 1.8 trace with random types: generate.py SEED DIRECTORY.

Every type, size, alignment, byte order and header layout that CTF 1.8 allows and babeltrace2 2.0.4
reads, as compare.py needs. The same seed gives the same bytes. Traps of babeltrace2 2.0.4 that are
kept out, each because the specification says otherwise:
- an empty string, text array or text sequence prints the text of the one before;
- numbers of 61 to 63 bits are wrong in octal and hexadecimal;
- it asserts on lengths and tags inside of array elements, variant options and event contexts;
- a byte order may only change at a byte boundary (that one is the specification's own).
"""
import os
import random
import struct
import sys
import uuid

SCALAR_SIZES = [1, 2, 3, 5, 7, 8, 9, 12, 16, 17, 24, 31, 32, 33, 48, 63, 64]


class Bits:
    """A packet being written: bit positions count from its start."""

    def __init__(self, big):
        self.big = big
        self.data = bytearray()
        self.position = 0

    def align(self, alignment):
        self.position += -self.position % alignment
        self._grow()

    def _grow(self):
        self.data.extend(bytes((self.position + 7) // 8 - len(self.data)))

    def put(self, value, size, big=None):
        big = self.big if big is None else big
        value &= (1 << size) - 1
        start = self.position
        self.position += size
        self._grow()
        for i in range(size):
            bit = value >> (size - 1 - i if big else i) & 1
            byte, offset = divmod(start + i, 8)
            self.data[byte] |= bit << (7 - offset if big else offset)

    def put_bytes(self, data):
        assert self.position % 8 == 0
        self.data.extend(data)
        self.position += 8 * len(data)


class Integer:
    def __init__(self, rng, size=None, signed=None, alignment=None, base=None, clock="",
                 native=True):
        self.size = size or rng.choice(SCALAR_SIZES)
        self.signed = rng.random() < 0.4 if signed is None else signed
        self.big = None  # the trace's own
        self.alignment = alignment or rng.choice([1, 1, 2, 4, 8, 8, 16, 32])
        if not native and self.size % 8 == 0 and rng.random() < 0.3:
            self.big = rng.random() < 0.5
            self.alignment = max(8, self.alignment)
        self.base = base or rng.choice([10, 10, 10, 16, 8, 2])
        if 60 < self.size < 64 or (self.signed and self.size == 64):
            self.base = 10
        self.clock = clock

    def text(self):
        order = "" if self.big is None else f" byte_order = {'be' if self.big else 'le'};"
        mapped = f" map = clock.{self.clock}.value;" if self.clock else ""
        return (f"integer {{ size = {self.size}; align = {self.alignment}; base = {self.base};"
                f" signed = {str(self.signed).lower()};{order}{mapped} }}")

    def random(self, rng):
        low = -(1 << self.size - 1) if self.signed else 0
        high = low + (1 << self.size) - 1
        return rng.choice([low, high, 0, rng.randint(low, high), rng.randint(low, high)])

    def write(self, bits, value):
        bits.align(self.alignment)
        bits.put(value, self.size, self.big)

    def fill(self, bits, rng, _):
        value = self.random(rng)
        self.write(bits, value)
        return value


class Float:
    def __init__(self, rng):
        self.double = rng.random() < 0.5
        self.alignment = rng.choice([8, 16, 32, 64])
        self.big = rng.choice([None, None, True, False])

    def text(self):
        digits = "exp_dig = 11; mant_dig = 53;" if self.double else "exp_dig = 8; mant_dig = 24;"
        order = "" if self.big is None else f" byte_order = {'be' if self.big else 'le'};"
        return f"floating_point {{ {digits} align = {self.alignment};{order} }}"

    def fill(self, bits, rng, _):
        value = rng.choice([0.0, -1.5, rng.uniform(-1e9, 1e9), 1e-30])
        raw = struct.unpack(">Q", struct.pack(">d", value))[0] if self.double else \
            struct.unpack(">I", struct.pack(">f", value))[0]
        bits.align(self.alignment)
        bits.put(raw, 64 if self.double else 32, self.big)


class Enum:
    def __init__(self, rng, labels=None):
        self.container = Integer(rng, size=rng.choice([3, 8, 16, 32]), base=10)
        self.alignment = self.container.alignment
        low, high = (-4, 3) if self.container.signed else (0, 7)
        if labels is None:
            self.maps = [("red", low, low), ("green", low + 1, low + 3),
                         ("overlap", low + 2, low + 4),
                         ("with space", high, high)]
            self.values = list(range(low, high + 1))
        else:
            self.maps = [(label, low + i, low + i) for i, label in enumerate(labels)]
            self.values = [low + i for i in range(len(labels))]
        self.low = low

    def text(self):
        body = ", ".join(f'"{label}" = {low}' + (f" ... {high}" if high != low else "")
                         for label, low, high in self.maps)
        return f"enum : {self.container.text()} {{ {body} }}"

    def fill(self, bits, rng, _):
        value = rng.choice(self.values)
        self.container.write(bits, value)
        return value


class String:
    alignment = 8

    def text(self):
        return "string"

    def fill(self, bits, rng, _):
        bits.align(8)
        text = "".join(rng.choice("abc xyz\"\\'?\n\té") for _ in range(rng.randrange(1, 6)))
        bits.put_bytes(text.encode() + b"\0")


class Text:
    """A character array; `length` None: a sequence counted by the field before it."""

    def __init__(self, rng, length):
        self.length = length
        self.alignment = 8
        self.rng = rng

    def element(self):
        return "integer { size = 8; align = 8; signed = false; encoding = UTF8; }"

    def fill(self, bits, rng, length):
        bits.align(8)
        length = self.length if length is None else length
        text = "".join(rng.choice("abcd") for _ in range(rng.randrange(1, length + 1))).encode()
        bits.put_bytes(text.ljust(length, b"\0"))


class Array:
    def __init__(self, rng, depth, length):
        self.item = random_type(rng, depth + 1, plain=True)
        self.alignment = self.item.alignment
        self.length = length

    def fill(self, bits, rng, length):
        bits.align(self.alignment)
        for _ in range(self.length if length is None else length):
            self.item.fill(bits, rng, None)


class Struct:
    """Members are (name, type, reference): a reference names the length or tag before it."""

    def __init__(self, rng, depth, name="f", plain=False):
        self.members = []
        self.plain = plain  # no member refers to another one
        self.least = rng.choice([1, 1, 8, 16])
        for i in range(rng.randrange(1, 5)):
            self._add(rng, depth, f"_{name}{i}")
        self.alignment = max([self.least] + [kind.alignment for _, kind, _ in self.members])

    def _add(self, rng, depth, name):
        choice = rng.choice([0, 2, 5]) if self.plain else rng.randrange(10)
        if choice == 0 and depth < 3:
            self.members.append((name, Array(rng, depth, rng.randrange(4)), None))
        elif choice == 1 and depth < 3:
            self.members.append((f"_{name}_length", Integer(rng, signed=False, base=10), None))
            self.members.append((name, Array(rng, depth, None), f"_{name}_length"))
        elif choice == 2:
            self.members.append((name, Text(rng, rng.randrange(1, 6)), None))
        elif choice == 3:
            length = Integer(rng, size=8, signed=False, base=10)
            self.members.append((f"_{name}_length", length, None))
            self.members.append((name, Text(rng, None), f"_{name}_length"))
        elif choice == 4 and depth < 3:
            labels = ["a", "b", "c"]
            self.members.append((f"_{name}_tag", Enum(rng, labels), None))
            self.members.append((name, Variant(rng, depth, labels), f"_{name}_tag"))
        else:
            self.members.append((name, random_type(rng, depth + 1, self.plain), None))

    def text(self):
        return f"struct {{ {self.body()} }} align({self.least})"

    def body(self):
        parts = []
        for name, kind, reference in self.members:
            parts.append(declaration(name, kind, reference))
        return " ".join(parts)

    def fill(self, bits, rng, _):
        bits.align(self.alignment)
        values = {}
        counted = {reference: kind for _, kind, reference in self.members if reference}
        for name, kind, reference in self.members:
            if name in counted and isinstance(kind, Integer):
                least = 1 if isinstance(counted[name], Text) else 0
                values[name] = min(rng.randrange(least, 4), (1 << kind.size) - 1)
                kind.write(bits, values[name])
            else:
                values[name] = kind.fill(bits, rng, values[reference] if reference else None)


class Variant:
    alignment = 1

    def __init__(self, rng, depth, labels):
        self.options = [(label, random_type(rng, depth + 1, plain=True)) for label in labels]

    def fill(self, bits, rng, tag):
        index = tag if tag >= 0 else tag + 4
        self.options[index][1].fill(bits, rng, None)


def declaration(name, kind, reference):
    if isinstance(kind, (Array, Text)):
        length = kind.length if reference is None else reference
        element = kind.element() if isinstance(kind, Text) else kind.item.text()
        return f"{element} {name}[{length}];"
    if isinstance(kind, Variant):
        options = " ".join(f"{option.text()} {label};" for label, option in kind.options)
        return f"variant <{reference}> {{ {options} }} {name};"
    return f"{kind.text()} {name};"


def random_type(rng, depth, plain=False):
    choice = rng.randrange(12)
    if choice < 6:
        return Integer(rng, native=False)
    if choice == 6:
        return Float(rng)
    if choice == 7:
        return Enum(rng)
    if choice == 8:
        return String()
    if choice == 9 and depth < 3:
        return Struct(rng, depth, plain=plain)
    return Integer(rng, native=False)


class Stream:
    """A stream class with a random header layout and random events."""

    def __init__(self, rng, index):
        self.index = index
        self.header = rng.choice(["custom", "compact", "large", "none"])
        self.stamp = Integer(rng, size=rng.choice([27, 32, 48, 64]), signed=False, base=10,
                             clock="c")
        self.identity = Integer(rng, size=rng.choice([3, 8, 16]), signed=False, base=10)
        self.header_alignment = rng.choice([1, 8, 32])
        self.context = Struct(rng, 1, name="s") if rng.random() < 0.5 else None
        self.extra = Integer(rng, base=10) if rng.random() < 0.5 else None
        self.events = []
        for _ in range(1 if self.header == "none" else rng.randrange(1, 5)):
            context = Struct(rng, 1, name="c", plain=True) if rng.random() < 0.3 else None
            self.events.append((context, Struct(rng, 0, name="p")))

    def header_text(self):
        if self.header == "none":
            return f"struct {{ {self.stamp.text()} timestamp; }}"
        if self.header == "custom":
            return (f"struct {{ {self.identity.text()} id; {self.stamp.text()} timestamp; }}"
                    f" align({self.header_alignment})")
        compact = self.header == "compact"
        bits, last, stamp, align = (5, 31, 27, 1) if compact else (16, 65535, 32, 8)

        def number(size, alignment, mapped=""):
            return f"integer {{ size = {size}; align = {alignment}; signed = false; {mapped}}}"
        clock = "map = clock.c.value; "
        return (f"struct {{ enum : {number(bits, align)}"
                f" {{ compact = 0 ... {last - 1}, extended = {last} }} id;"
                f" variant <id> {{ struct {{ {number(stamp, align, clock)} timestamp; }} compact;"
                f" struct {{ {number(32, 8)} id; {number(64, 8, clock)} timestamp; }} extended;"
                " } v;"
                " } align(8)")

    def write_header(self, bits, rng, event, time):
        if self.header in ("none", "custom"):
            if self.header == "custom":
                bits.align(max(self.header_alignment, self.identity.alignment,
                               self.stamp.alignment))
                self.identity.write(bits, event)
            else:
                bits.align(self.stamp.alignment)
            self.stamp.write(bits, time)
            return
        short, last, stamp = (5, 31, 27) if self.header == "compact" else (16, 65535, 32)
        bits.align(8)
        if rng.random() < 0.3:
            bits.put(last, short)
            bits.align(8)
            bits.put(event, 32)
            bits.put(time, 64)
        else:
            bits.put(event, short)
            bits.put(time, stamp)

    def metadata(self):
        extra = "" if self.extra is None else f" {self.extra.text()} extra;"
        number = "integer { size = 64; align = 8; signed = false; }"
        clock = "integer { size = 64; align = 8; signed = false; map = clock.c.value; }"
        context = f"event.context := {self.context.text()};" if self.context else ""
        text = (f"stream {{ id = {self.index}; event.header := {self.header_text()};\n"
                f" packet.context := struct {{ {clock} timestamp_begin; {clock} timestamp_end;"
                f" {number} content_size; {number} packet_size;{extra} }};\n {context} }};\n")
        for i, (event_context, payload) in enumerate(self.events):
            identity = "" if self.header == "none" else f"id = {i}; "
            event_context = f"context := {event_context.text()}; " if event_context else ""
            text += (f'event {{ name = "e{self.index}_{i}"; {identity}stream_id = {self.index};'
                     f" {event_context}fields := {payload.text()}; }};\n")
        return text

    def packet(self, rng, big, header, time):
        bits = Bits(big)
        bits.put(0xC1FC1FC1, 32)
        bits.put_bytes(header)
        bits.put(self.index, 32)
        bits.align(8)
        sizes = bits.position
        for _ in range(4):
            bits.put(0, 64)
        if self.extra is not None:
            self.extra.fill(bits, rng, None)
        begin = time
        for _ in range(rng.randrange(0, 30)):
            time += rng.randrange(0, 5000)
            event = rng.randrange(len(self.events))
            self.write_header(bits, rng, event, time)
            if self.context:
                self.context.fill(bits, rng, None)
            event_context, payload = self.events[event]
            if event_context:
                event_context.fill(bits, rng, None)
            payload.fill(bits, rng, None)
        content = bits.position
        bits.align(8 * rng.choice([1, 64, 4096]))
        patch = Bits(big)
        for value in (begin, time, content, bits.position):
            patch.put(value, 64)
        bits.data[sizes // 8:sizes // 8 + 32] = patch.data
        return bytes(bits.data), time


def generate(seed, directory):
    rng = random.Random(seed)
    big = rng.random() < 0.5
    identity = uuid.UUID(int=rng.getrandbits(128))
    os.makedirs(directory, exist_ok=True)
    streams = [Stream(rng, i) for i in range(rng.randrange(1, 4))]
    with open(os.path.join(directory, "metadata"), "w", encoding="utf-8") as out:
        out.write("/* CTF 1.8 */\n"
                  f'trace {{ major = 1; minor = 8; uuid = "{identity}";\n'
                  f' byte_order = {"be" if big else "le"}; packet.header := struct {{\n'
                  "  integer { size = 32; align = 8; signed = false; } magic;\n"
                  "  integer { size = 8; align = 8; signed = false; } uuid[16];\n"
                  "  integer { size = 32; align = 8; signed = false; } stream_id; }; };\n"
                  'clock { name = "c"; freq = 1000000000;'
                  f' offset = {rng.randrange(1 << 40)}; }};\n')
        for stream in streams:
            out.write(stream.metadata())
    for stream in streams:
        for instance in range(rng.randrange(1, 3)):
            time = rng.randrange(1 << 45)
            with open(os.path.join(directory, f"stream{stream.index}_{instance}"), "wb") as out:
                for _ in range(rng.randrange(1, 6)):
                    data, time = stream.packet(rng, big, identity.bytes, time)
                    out.write(data)


if __name__ == "__main__":
    generate(int(sys.argv[1]), sys.argv[2])
