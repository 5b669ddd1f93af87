# SPDX-License-Identifier: Apache-2.0
"""What `syncline run --devices` adds to an enqueue of OpenCL, idle and recorded.

Usage: opencl_bench.py BUILD_DIRECTORY [ROUNDS]
The three ways take turns; the medians of their rounds are printed, and how they compare.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(sys.argv[1])
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
SYNCLINE = os.path.join(BUILD, "bin", "syncline")
PROGRAM = os.path.join(BUILD, "bench", "opencl_bench")
SECONDS = 2


def measure(prefix, work, recorded):
    """ns for each enqueue"""
    flag = os.path.join(work, "flag")
    program = subprocess.Popen([*prefix, PROGRAM, flag], stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "ready\n"
    recording = None
    if recorded:
        run = tempfile.mkdtemp(dir=work)
        words = [SYNCLINE, "record", "--for", f"{2 * SECONDS}s", "--out", os.path.join(run, "run")]
        recording = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(2.5)  # until it has begun
    open(flag, "w").close()
    time.sleep(SECONDS)
    os.remove(flag)
    median = float(program.communicate(timeout=60)[0])
    assert recording is None or recording.wait(60) == 0
    return median


def main():
    with tempfile.TemporaryDirectory(prefix="syncline-opencl-bench-") as work:
        os.environ["SYNCLINE_DATA_DIR"] = os.path.join(work, "data")
        devices = [SYNCLINE, "run", "--devices", "--"]
        ways = {"plain": ([], False), "idle": (devices, False), "recorded": (devices, True)}
        found = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, way in ways.items():
                found[name].append(measure(way[0], work, way[1]))
        medians = {name: statistics.median(values) for name, values in found.items()}
        for name, median in medians.items():
            more = median - medians["plain"]
            spread = f"{min(found[name]):.0f} to {max(found[name]):.0f}"
            print(f"{name:9} {median:7.0f} ns an enqueue ({spread})  +{more:.0f} ns")


main()
