# SPDX-License-Identifier: Apache-2.0
"""oneDNN's primitives in the report, against what oneDNN itself says that it executed.

Usage: torch_primitives_test.py BUILD_DIRECTORY. Skipped without .venv-torch (scripts/setup
--torch).
"""

import collections
import json
import os
import subprocess

import torch_program
from torch_program import TorchProgram

NS_PER_MS = 1e6


def said(output):
    """{(kind, implementation, propagation, shapes): [calls, ms]} of oneDNN's verbose lines."""
    found = collections.defaultdict(lambda: [0, 0.0])
    for line in output.splitlines():
        words = line.split(",")
        if words[0] != "onednn_verbose" or "exec" not in words:
            continue
        kind, implementation, propagation, *_ = words[words.index("exec") + 2 :]
        key = (kind, implementation, propagation.replace("undef", ""), words[-2])
        found[key][0] += 1
        found[key][1] += float(words[-1])
    return found


def of_key(row):
    return tuple(row[key] for key in ("kind", "implementation", "propagation", "shapes"))


class Primitives(TorchProgram):
    def test_calls_and_times_are_those_that_onednn_says(self):
        worked, lines = (os.path.join(self.fixture.directory, name) for name in ("worked", "lines"))
        process = self.start(
            """
            # What comes is more than a pipe holds.
            os.dup2(os.open(os.environ["LINES"], os.O_CREAT | os.O_WRONLY), 1)
            model = torch.nn.Sequential(
                torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.ReLU(),
                torch.nn.Conv2d(32, 32, 3, padding=1), torch.nn.MaxPool2d(2),
                torch.nn.Conv2d(32, 64, 3))
            kind = torch._C._autograd._profiler_type
            def work():
                while kind().name != "ITT": step()
                with torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):
                    for _ in range(30): model(torch.ones(8, 3, 32, 32)).sum().backward()
                print("worked", file=open(os.environ["WORKED"], "w"))
                train()
            worker = threading.Thread(target=work); worker.start(); worker.join()
            """,
            WORKED=worked,
            LINES=lines,
        )
        self.record(lambda: os.path.exists(worked))
        self.end(process)
        with open(lines, encoding="utf-8") as file:
            wanted = said(file.read())
        self.assertGreater(sum(calls for calls, _ in wanted.values()), 30 * 6, wanted)
        trace = os.path.join(self.fixture.directory, "s1")
        syncline = os.path.join(torch_program.BUILD, "bin", "syncline")
        command = [syncline, "report", trace, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        primitives = json.loads(done.stdout)["primitives"]
        found = collections.defaultdict(lambda: [0, 0.0])
        for row in primitives["totals"]:
            found[of_key(row)][0] += row["calls"]
            found[of_key(row)][1] += row["total_ns"] / NS_PER_MS
            self.assertRegex(row["task"], "convolution", row)
        self.assertEqual(
            {key: calls for key, (calls, _) in found.items()},
            {key: calls for key, (calls, _) in wanted.items()},
        )
        for key, (_, ms) in wanted.items():
            self.assertGreaterEqual(found[key][1], ms * 0.99, key)  # the task is around it
        (process,) = primitives["processes"]
        self.assertEqual(process["not_described"], 0)
        reorders = sum(calls for key, (calls, _) in wanted.items() if key[0] == "reorder")
        self.assertEqual(sum(row["calls"] for row in primitives["reorders"]), reorders)


if __name__ == "__main__":
    torch_program.main()
