# SPDX-License-Identifier: Apache-2.0
"""Reads what the tests want to know from an XSpace, TensorFlow's profile, without TensorFlow."""

import os
import struct
import subprocess

from tests.integration.fleet import HOST_TENSORFLOW, load

TUPLE = struct.Struct("<6q2iB")  # clocksync/sample_file.cc


def fields(message):
    """(number, value) of each field of a protobuf message; bytes, or an int."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}[kind] if kind != 2 else varint()
            value = message[at : at + size]
            at += size
        yield key >> 3, value


def only(message, number):
    return [value for found, value in fields(message) if found == number]


def planes(xspace):
    """{name: the plane's bytes}."""
    return {only(plane, 2)[0].decode(): plane for plane in only(xspace, 1)}


def window_ns(xspace):
    """(start, stop) of the profile by the worker's wall clock."""
    plane = planes(xspace)["Task Environment"]
    names = {}
    for entry in only(plane, 5):
        metadata = only(entry, 2)[0]
        names[only(metadata, 1)[0]] = only(metadata, 2)[0].decode()
    found = {}
    for stat in only(plane, 6):
        numbers = only(stat, 3) + only(stat, 4)
        if numbers:
            found[names[only(stat, 1)[0]]] = numbers[0]
    return found["profile_start_time"], found["profile_stop_time"]


def event_count(xspace):
    lines = only(planes(xspace)["/host:CPU"], 3)
    return sum(len(only(line, 4)) for line in lines)


def profiles(run, node):
    """The node's list, each with its "xspace" bytes where there are any."""
    directory = os.path.join(run, "nodes", node, "xspace")
    found = load(os.path.join(directory, "profiles.json"))
    assert found["format_version"] == 1
    for profile in found["profiles"]:
        if "file" in profile:
            with open(os.path.join(directory, profile["file"]), "rb") as file:
                profile["xspace"] = file.read()
    return found["profiles"]


def realtimes_ns(tuples):
    """The readings of the wall clock in a host's log of its clocks."""
    (name_bytes,) = struct.unpack_from("<H", tuples, 10)
    rest = tuples[12 + name_bytes :]
    return [fields[2] for fields in TUPLE.iter_unpack(rest[: len(rest) // TUPLE.size * TUPLE.size])]


# Somebody else's profile of two minutes: as TensorBoard asks for one. It is held when another one
# is refused.
HOLDER = """
import grpc, sys
PROFILE = "/tensorflow.ProfilerService/Profile"
def request(session, duration_ms):
    varint = lambda n: bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])
    field = lambda number, data: bytes([number << 3 | 2]) + varint(len(data)) + data
    duration = varint(duration_ms)
    options = b"\\x10\\x01" + b"\\x28\\x01" + b"\\x48" + duration
    return b"\\x08" + duration + field(4, options) + field(6, session) + b"\\x48\\x01"
with grpc.insecure_channel(sys.argv[1], options=[("grpc.enable_http_proxy", 0)]) as channel:
    profile = channel.unary_unary(PROFILE)
    held = None
    for number in range(1000):
        if held is None or held.done():
            held = profile.future(request(b"held-%d" % number, 120_000))
        try:
            profile(request(b"try-%d" % number, 1), timeout=10)
        except grpc.RpcError as error:
            if "Another profiling session active" in error.details() and not held.done():
                break
    print("held", flush=True)
    held.result()
"""


def hold_profiler(host, port):
    """A process on the host that uses the profiler at this port until it is killed."""
    command = [f"{HOST_TENSORFLOW}/bin/python", "-c", HOLDER, f"127.0.0.1:{port}"]
    process = host.popen(command, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "held\n"
    return process
