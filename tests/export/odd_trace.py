# SPDX-License-Identifier: Apache-2.0
"""A CTF trace of events with all that makes a table of them hard: numbers beyond 63 bits, fields
that are a number here and a text there, nested ones, more kinds of events than a table keeps apart.
"""

import os
import struct

CLASSES = 100  # the first one is odd, each of the others has a field that no other has

HEAD = """/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
trace { major = 1; minor = 8; byte_order = le;
  packet.header := struct { uint32_t magic; uint32_t stream_id; }; };
clock { name = monotonic; freq = 1000000000; };
typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := time_t;
stream { id = 0;
  packet.context := struct { time_t timestamp_begin; time_t timestamp_end;
                             uint64_t content_size; uint64_t packet_size; };
  event.header := struct { uint16_t id; time_t timestamp; }; };
event { name = "odd:odd"; id = 0; stream_id = 0; fields := struct {
  uint64_t _thread; int64_t _depth; string _name; struct { uint32_t _id; } _inner;
  uint8_t _bytes; uint32_t _begin[2]; uint64_t _since; }; };
"""


def metadata():
    return HEAD + "".join(
        f'event {{ name = "odd:{i}"; id = {i}; stream_id = 0; '
        f"fields := struct {{ uint8_t _only{i}; int64_t _id; uint64_t _duration_ps; }}; }};\n"
        for i in range(1, CLASSES)
    )


def event(number, is_odd):
    """Its bytes."""
    kind = 0 if is_odd else 1 + number // 2 % (CLASSES - 1)
    head = struct.pack("<HQ", kind, 1000 + 10 * number)
    if kind > 0:
        large = (1 << 64) - number if number % 3 == 0 else number
        return head + struct.pack("<BqQ", kind, -number, large)
    thread = (1 << 63) - 1 + number % 4  # on both sides of what 64 bits with a sign can hold
    text = b"a \"text\"\xc3\xa9"[: number % 10]
    if text.endswith(b"\xc3"):
        text = b""
    head += struct.pack("<Qq", thread, (-1) ** number * number) + text + b"\0"
    return head + struct.pack("<IBIIQ", number, number % 256, 7, number, 1 << 62)


def write(directory, events, odd_until):
    """Every second one of the events in front of number `odd_until` is odd, the others by turns."""
    os.mkdir(directory)
    with open(os.path.join(directory, "metadata"), "w", encoding="utf-8") as file:
        file.write(metadata())
    contents = b"".join(event(i, i % 2 == 0 and i < odd_until) for i in range(events))
    size = 8 + 32 + len(contents)
    with open(os.path.join(directory, "channel_0"), "wb") as file:
        file.write(struct.pack("<II", 0xC1FC1FC1, 0))
        file.write(struct.pack("<QQQQ", 1000, 1000 + 10 * events, 8 * size, 8 * size))
        file.write(contents)
