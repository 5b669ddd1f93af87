# SPDX-License-Identifier: Apache-2.0
"""Turns the profiles of a recorded job on CPUs into those of the same job on GPUs with NCCL.

Each operator's time becomes that of a kernel which it launches, each of Gloo's works a collective's
kernel, and what the program waits for it a call that synchronizes. All times stay as they were.
"""

import bisect
import glob
import json
import os

OPERATORS = ("aten::conv2d", "aten::linear", "aten::relu", "aten::cross_entropy_loss")
US = 1.0


def on_gpus(run):
    """Writes the recording's profiles anew. By file: how many collectives got a kernel."""
    found = {}
    for path in glob.glob(os.path.join(run, "nodes", "*", "kineto", "*.kineto.json")):
        with open(path, encoding="utf-8") as file:
            profile = json.load(file)
        found[path] = _turn(profile)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(profile, file)
        _say_size(path)
    return found


def _say_size(path):
    index = os.path.join(os.path.dirname(path), "profiles.json")
    with open(index, encoding="utf-8") as file:
        pieces = json.load(file)
    for piece in pieces["profiles"]:
        if piece["file"] == os.path.basename(path):
            piece["bytes"] = os.path.getsize(path)
    with open(index, "w", encoding="utf-8") as file:
        json.dump(pieces, file)


def _turn(profile):
    spans = [e for e in profile["traceEvents"] if e.get("ph") == "X"]
    works = sorted((e for e in spans if e["name"].startswith("gloo:")), key=lambda e: e["ts"])
    operators = sorted(
        (
            e
            for e in spans
            if e.get("cat") == "cpu_op"
            and (e["name"] in OPERATORS or e["name"].endswith("Backward0"))
            and not e["name"].startswith("autograd::")
        ),
        key=lambda e: e["ts"],
    )
    calls = [e for e in spans if e["name"].startswith("c10d::allreduce")]
    calls.sort(key=lambda e: e["ts"])
    profile["traceEvents"] = [
        e for e in profile["traceEvents"] if not str(e.get("name", "")).startswith("gloo:")
    ]
    made = _Made(profile["traceEvents"])
    for operator in operators:
        made.kernel(operator, operator["ts"] + US, operator["dur"] - US, "gemm", 7)
    begins = [e["ts"] for e in operators]
    next_call = collectives = 0
    for work in works:
        # Gloo takes the works from a queue, in the order of the calls.
        if next_call == len(calls) or calls[next_call]["ts"] > work["ts"]:
            continue
        made.kernel(calls[next_call], work["ts"], work["dur"], "ncclDevKernel_AllReduce_Sum_f32", 9)
        next_call += 1
        collectives += 1
        # The program goes on at the next operator: Gloo's thread may note its end only later.
        behind = bisect.bisect(begins, work["ts"])
        ends = [work["ts"] + work["dur"]] + begins[behind : behind + 1]
        made.wait(calls[0], work["ts"], min(ends))
    return collectives


class _Made:
    """Appends events."""

    def __init__(self, events):
        self.events = events
        self.correlation = 1_000_000

    def kernel(self, parent, begin, length, name, stream):
        self.correlation += 1
        launch = {"correlation": self.correlation}
        self._call(parent, "cudaLaunchKernel", parent["ts"], 0.5 * US, launch)
        arguments = {"device": 0, "stream": stream, "correlation": self.correlation}
        arguments |= {"grid": [8, 1, 1], "block": [128, 1, 1]}
        self._add("kernel", name, 0, stream, begin, max(length, 0.1), arguments)

    def wait(self, parent, begin, end):
        if end > begin:
            self._call(parent, "cudaStreamSynchronize", begin, end - begin, {})

    def _call(self, parent, name, begin, length, arguments):
        self._add("cuda_runtime", name, parent["pid"], parent["tid"], begin, length, arguments)

    def _add(self, category, name, pid, tid, begin, length, arguments):
        self.events.append(
            {
                **{"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid},
                **{"ts": begin, "dur": length, "args": arguments},
            }
        )
