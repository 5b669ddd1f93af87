# SPDX-License-Identifier: Apache-2.0
"""The clocks of recordings that are made of a real one, for as many nodes as wanted.

A node has the clock of a real node, and is related to the first one as that is. Only names differ.
"""

import json
import os
import shutil
import struct
import sys


def load(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return json.load(file)


def store(value, *parts):
    with open(os.path.join(*parts), "w", encoding="utf-8") as file:
        json.dump(value, file)


def copied(value):
    return json.loads(json.dumps(value))


def name(rank):
    return f"node-{rank:04}"


def write(base, out, first, sources, names):
    """Fills out/clocks: node names[i] has the clock of base's node sources[i].

    `first` is base's reference node, and the source of the first node alone.
    """
    models = load(base, "clocks", "models.json")
    place = {node: number for number, node in enumerate(models["nodes"])}
    probes = load(base, "clocks", "probes.json")
    edges, stamped = [], []
    for rank in range(1, len(names)):
        source = sources[rank]
        edge = next(
            edge for edge in models["edges"]
            if (edge["local"], edge["remote"]) == (place[first], place[source])
        )
        edges.append({**edge, "local": 0, "remote": rank})
        for a, b, of in ((0, rank, (first, source)), (rank, 0, (source, first))):
            probe = copied(next(
                one for one in probes["edges"]
                if (one["local"]["node"], one["remote"]["node"]) == of
            ))
            probe["local"]["node"], probe["remote"]["node"] = names[a], names[b]
            stamped.append(probe)
            _write_samples(base, out, of, (names[a], names[b]))
    for source, node in zip(sources, names):
        shutil.copy(
            os.path.join(base, "clocks", f"{source}.tuples"),
            os.path.join(out, "clocks", f"{node}.tuples"),
        )
    chosen = [place[source] for source in sources]
    grid, wall = models["grid"], models["wall_clock"]
    store({**probes, "edges": stamped}, out, "clocks", "probes.json")
    store(
        {
            **models,
            "nodes": names,
            "edges": edges,
            "clocks": [models["clocks"][i] for i in chosen],
            "wall_clock": {**wall, "realtime": [wall["realtime"][i] for i in chosen]},
            "grid": {
                **grid, "x": [grid["x"][i] for i in chosen] + grid["x"][len(models["nodes"]) :]
            },
        },
        *(out, "clocks", "models.json"),
    )


def _write_samples(base, out, source, edge):
    """The samples of an edge, and its ends in their head (clocksync/sample_file.h)."""

    def named(ends):
        return b"".join(struct.pack("<H", len(end)) + end.encode() for end in ends)

    def path(folder, ends):
        return os.path.join(folder, "clocks", "--".join(ends) + ".samples")

    with open(path(base, source), "rb") as file:
        samples = file.read()
    if named(source) not in samples:
        sys.exit(f"{path(base, source)}: the names are not where they were")
    with open(path(out, edge), "wb") as file:
        file.write(samples.replace(named(source), named(edge), 1))
