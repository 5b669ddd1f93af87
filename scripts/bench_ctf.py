# SPDX-License-Identifier: Apache-2.0
"""How fast traces are read and written again, beside babeltrace2 and cp, in one run.

Usage: scripts/bench-ctf [BUILD_DIR [EVENTS [STREAMS...]]] [--rounds N]

The same generated traces, page cache warm, one thread on one processor unless said. Medians of N
rounds, in which all of them take turns; babeltrace2 has one round of a trace of many streams, which
takes it minutes. Rates are per second of processor time, start-up included: with less than some
million events it is what is measured. Of two threads the seconds count.

decode:  every field of every event, in any order; the sum of all of them is checked. babeltrace2
         decodes and merges into its dummy sink.
copy:    the trace again, with every time corrected; babeltrace2's is as it is. cp, byte by byte:
         what reading the bytes and writing them to files costs here without anything else.
         Ahead of each is a cp that is not counted: in a virtual machine memory that was not in use
         for some seconds costs many times what writing into it costs.
"""

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

# babeltrace2 needs a microsecond for each event and some streams.
FEW_STREAMS = 64


def timed(command, processors):
    """Seconds by the clock, seconds of the processor, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    printed = subprocess.run(
        command,
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(0, processors),
    ).stdout
    seconds = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used, printed


class Trace:
    """A generated trace and what takes turns with it."""

    def __init__(self, build, work, streams, events):
        self.streams, self.copy = streams, f"{work}/copy"
        self.path = f"{work}/k{streams}"
        wrote = timed(
            [f"{build}/bench/ctf_generate_streams", self.path, str(streams), str(events)],
            os.sched_getaffinity(0),
        )[2]
        self.events, self.sum = re.match(r"events (\d+) bytes \d+ sum (\d+)", wrote).groups()
        scan = [f"{build}/bench/ctf_scan", self.path]
        copy = [f"{build}/bench/ctf_copy", self.path, self.copy, "12345"]
        cp = ["cp", "-r", "--reflink=never", self.path, self.copy]
        self.commands = {
            "decode: syncline": (scan, 1),
            "decode: syncline, 2 threads": (scan + ["2"], 2),
            "decode: babeltrace2": (["babeltrace2", "-o", "dummy", self.path], 1),
            "copy: syncline": (copy, 1),
            "copy: syncline, 2 threads": (copy + ["2"], 2),
            "copy: cp": (cp, 1),
            "copy: babeltrace2": (
                ["babeltrace2", "-o", "ctf", "--output", self.copy, self.path],
                1,
            ),
        }

    def run(self, command, threads):
        """Seconds by the clock and of the processor."""
        processors = sorted(os.sched_getaffinity(0))[:threads]
        seconds, used, printed = timed(command, processors)
        shutil.rmtree(self.copy, ignore_errors=True)
        found = re.match(r"events (\d+) (?:sum (\d+))?", printed)
        if found and (found[1] != self.events or found[2] not in (None, self.sum)):
            sys.exit(f"{command[0]}: events or sum of all fields differ from what was written")
        return seconds, used

    def measure(self, rounds):
        """A line for each, once all have had their turns."""
        taken = {what: [] for what in self.commands}
        for turn in range(rounds):
            for what, (command, threads) in self.commands.items():
                slow = command[0] == "babeltrace2" and self.streams > FEW_STREAMS
                if shutil.which(command[0]) and not (slow and turn > 0):
                    if what.startswith("copy"):
                        self.run(*self.commands["copy: cp"])
                    taken[what].append(self.run(command, threads))
        for what, times in taken.items():
            if not times:
                continue
            seconds, used = (statistics.median(column) for column in zip(*times))
            rate = int(self.events) / used / 1e6
            print(
                f"streams {self.streams}: {what:28} seconds {seconds:7.3f}"
                f" cpu {used:7.3f} rate {rate:7.2f} M/s",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("events", nargs="?", type=int, default=4_000_000)
    parser.add_argument("streams", nargs="*", type=int, default=[2, 1024])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        for streams in arguments.streams:
            Trace(arguments.build, work, streams, arguments.events).measure(arguments.rounds)


if __name__ == "__main__":
    main()
