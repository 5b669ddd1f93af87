# SPDX-License-Identifier: Apache-2.0
"""Counts what tests/integration/test_tensorflow_workers.py expects, with TensorFlow's own protos.

Usage: .venv-tensorflow/bin/python tests/golden/tensorflow_workers/count.py > expected.json

Shares nothing with Syncline's reader. --trim NS is its neighbour's: tensorflow_profile/count.py.
"""

import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from tensorflow_profile.count import events_of, load, operators_of, path_of, trim  # noqa: E402

NODES = ("worker-0", "worker-1")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trim", type=int, metavar="NS")
    options = parser.parse_args()
    operators, collectives = {}, {}
    for node in NODES:
        path = path_of(node, HERE)
        if options.trim:
            trim(path, options.trim)
        events = list(events_of(load(path)))
        operators[node] = len(operators_of(events))
        reached = {
            (stats["step_id"], stats["name"]): at
            for at, _, name, stats, _ in events
            if name == "ExecutorState::ProcessAsync::Start"
        }
        for _, end, name, stats, _ in events:
            if "instance_key" not in stats:
                continue
            entered = reached.get((stats["step_id"], name.split(":")[0]))
            if entered is not None:
                members = collectives.setdefault(stats["instance_key"], {})
                members[node] = {"type": name.split(":")[1], "entered": entered, "left": end}
    rows = [{"key": key, "members": members} for key, members in sorted(collectives.items())]
    print(json.dumps({"operators": operators, "collectives": rows}, indent=2))


if __name__ == "__main__":
    main()
