# SPDX-License-Identifier: Apache-2.0
"""Counts what tests/integration/test_tensorflow_profile.py expects, with TensorFlow's own protos.

Usage: .venv-tensorflow/bin/python tests/golden/tensorflow_profile/count.py > expected.json

Shares nothing with Syncline's reader: every send and receive with its key is looked at one by one.
With --trim NS the profiles are cut to their first NS nanoseconds before (that is how the kept
recording was made small): an event that ends later is as absent as if the profiler had stopped.
"""

import argparse
import collections
import glob
import json
import os
import re

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from tensorflow.tsl.profiler.protobuf import xplane_pb2  # pylint: disable=wrong-import-position

HERE = os.path.dirname(os.path.abspath(__file__))
NODES = ("master-0", "worker-0")


def path_of(node, golden=HERE):
    (found,) = glob.glob(os.path.join(golden, "run", "nodes", node, "xspace", "*.pb"))
    return found


def load(path):
    space = xplane_pb2.XSpace()
    with open(path, "rb") as file:
        space.ParseFromString(file.read())
    return space


def stats_of(plane, stats):
    """{name: value}."""
    found = {}
    for stat in stats:
        kind = stat.WhichOneof("value")
        value = getattr(stat, kind)
        if kind == "ref_value":
            value = plane.stat_metadata[value].name
        found[plane.stat_metadata[stat.metadata_id].name] = value
    return found


def begin_of(space):
    for plane in space.planes:
        stats = stats_of(plane, plane.stats)
        if "profile_start_time" in stats:
            return stats["profile_start_time"]
    raise ValueError("no profile_start_time")


def trim(path, length_ns):
    space = load(path)
    for plane in space.planes:
        for line in plane.lines:
            kept = [
                event
                for event in line.events
                if line.timestamp_ns * 1000 + event.offset_ps + event.duration_ps
                <= length_ns * 1000
            ]
            copies = [xplane_pb2.XEvent.FromString(event.SerializeToString()) for event in kept]
            del line.events[:]
            line.events.extend(copies)
        for stat in plane.stats:
            if plane.stat_metadata[stat.metadata_id].name == "profile_stop_time":
                stat.uint64_value = begin_of(space) + length_ns
    with open(path, "wb") as file:
        file.write(space.SerializeToString(deterministic=True))


def events_of(space):
    """(begin ns, end ns, name, stats, line) of every event, wall clock."""
    begin = begin_of(space)
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                at = begin + line.timestamp_ns + event.offset_ps // 1000
                yield (
                    at,
                    at + event.duration_ps // 1000,
                    plane.event_metadata[event.metadata_id].name,
                    stats_of(plane, event.stats),
                    line.id,
                )


def operators_of(events):
    return [event for event in events if re.fullmatch(r"[^:]+:[^: ][^:]*", event[2])]


def count(node):
    """What one profile holds, and its ends of tensors."""
    events = list(events_of(load(path_of(node))))
    operators = operators_of(events)
    processes = [e for e in events if e[2] == "ExecutorState::Process"]
    keys = {e[2].split(":")[0]: e[3]["key"] for e in operators if e[2].endswith(":_Recv")}
    sends, receives = {}, {}
    for at, end, name, stats, line in operators:
        if not name.endswith(":_Send"):
            continue
        parts = stats["key"].split(";")
        around = [p for p in processes if p[4] == line and p[0] <= at and end <= p[1]]
        if parts[0] != parts[2] and around:
            sends[around[-1][3]["id"], stats["key"]] = at
    for at, _, name, stats, _ in events:
        if name == "ExecutorState::ProcessAsync::Done" and stats["name"] in keys:
            parts = keys[stats["name"]].split(";")
            if parts[0] != parts[2]:
                receives[stats["step_id"], keys[stats["name"]]] = at
    counted = {
        "events": len(events),
        "operators": len(operators),
        "steps": sum(e[2] == "RunGraph" for e in events),
        "types": dict(sorted(collections.Counter(e[2].split(":")[1] for e in operators).items())),
    }
    return counted, sends, receives


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trim", type=int, metavar="NS")
    options = parser.parse_args()
    sends, receives, nodes = {}, {}, {}
    for node in NODES:
        if options.trim:
            trim(path_of(node), options.trim)
        nodes[node], sent, received = count(node)
        sends.update(sent)
        receives.update(received)
    both = sends.keys() & receives.keys()
    edges = collections.Counter(key.split(";")[3] for _, key in both)
    expected = {
        "nodes": nodes,
        "edges": dict(sorted(edges.items())),
        "matched": len(both),
        "backwards_by_wall_clock": sum(receives[key] < sends[key] for key in both),
    }
    print(json.dumps(expected, indent=2))


if __name__ == "__main__":
    main()
