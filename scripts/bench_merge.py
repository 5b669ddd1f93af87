# SPDX-License-Identifier: Apache-2.0
"""What merge and report take in two builds of Syncline, side by side.

Usage: scripts/bench-merge OLD NEW [--events N] [--rounds N] [--recording DIR]... [--growth]

OLD and NEW are build directories, which take turns; figures are medians of the rounds. Page cache
warm. Start-up counts, and is told: of less than some million events it is much of what is measured.

merge   `merge --format perfetto` of made-up tasks (made_up_traces.py: N begins and ends of plain
        tasks of a training job, two streams, eight threads), of the same with a loss near the begin
        of each stream, and of each recording that is given: ns of processor time, user and system,
        per event of our own that the report counts; one thread, and two, of which also the seconds
        by the clock.
report  the same of `report`, on one thread.
growth  (--growth) what may grow worse than the number of events: a trace of each kind in two sizes,
        the second twice the first, and how many times the processor time of the first, less what
        an empty trace takes, the second takes. 2 is linear.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from scripts import made_up_traces

GROWTH = (
    ("open overlapped tasks with metadata", made_up_traces.overlapped, 10_000),
    ("metadata by the id of another thread's task", made_up_traces.metadata_elsewhere, 10_000),
    ("short-lived processes of one thread", made_up_traces.short_threads, 16_000),
    ("threads of another provider's events", made_up_traces.foreign_threads, 16_000),
    ("overlapped tasks side by side", made_up_traces.lanes, 5_000),
)


def timed(command, directory, processors):
    """Seconds by the clock, and of the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, processors),
    )
    seconds = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 3):  # 3: something was lost
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Bench:
    """Two builds by turns."""

    def __init__(self, builds, work, rounds):
        self._programs = {
            which: os.path.join(os.path.abspath(build), "bin", "syncline")
            for which, build in zip(("old", "new"), builds)
        }
        self._work = work
        self._rounds = rounds

    def events(self, trace):
        printed = subprocess.run([self._programs["old"], "report", "--json", trace], check=False,
                                 capture_output=True, text=True).stdout
        return sum(node["events"] for node in json.loads(printed)["nodes"])

    def run(self, arguments, threads=1):
        """Of each build the medians of seconds by the clock, and of the processor."""
        processors = sorted(os.sched_getaffinity(0))[:threads]
        taken = {which: [] for which in self._programs}
        for _ in range(self._rounds):
            for which, program in self._programs.items():
                taken[which].append(timed([program, *arguments], self._work, processors))
                shutil.rmtree(f"{self._work}/out", ignore_errors=True)
        return {which: [statistics.median(column) for column in zip(*times)]
                for which, times in taken.items()}

    def compare(self, name, trace):
        events = self.events(trace)
        print(f"{name}: {events} events", flush=True)
        merge = ["merge", trace, "--out", "out", "--format", "perfetto"]
        for what, arguments, threads in (
            ("merge, 1 thread ", [*merge, "--threads", "1"], 1),
            ("merge, 2 threads", [*merge, "--threads", "2"], 2),
            ("report          ", ["report", trace], 1),
        ):
            found = self.run(arguments, threads)
            (old_s, old_cpu), (new_s, new_cpu) = found["old"], found["new"]
            line = f"  {what} old {old_cpu / events * 1e9:6.1f} new {new_cpu / events * 1e9:6.1f}"
            line += f" ns/event of the processor, x {new_cpu / old_cpu:.2f}"
            if threads > 1:
                line += f"; by the clock {old_s:.2f} s, {new_s:.2f} s"
            print(line, flush=True)

    def start_up(self):
        found = self.run(["--version"])
        line = ", ".join(f"{which} {times[1] * 1e3:.1f}" for which, times in found.items())
        print(f"start-up (syncline --version): {line} ms of the processor", flush=True)

    def grow(self, name, make, size):
        taken = {}
        for factor in (0, 1, 2):
            trace = f"{self._work}/growing"
            make(trace, factor * size)
            found = self.run(["merge", trace, "--out", "out", "--threads", "1"])
            taken[factor] = {which: times[1] for which, times in found.items()}
            shutil.rmtree(trace)
        line = f"  {name}, {size} and {2 * size}:"
        for which in self._programs:
            first, second = (taken[i][which] - taken[0][which] for i in (1, 2))
            line += f" {which} {first:.2f} s, {second:.2f} s, x {second / first:.1f};"
        print(line.rstrip(";"), flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", help="build directory")
    parser.add_argument("new", help="build directory")
    parser.add_argument("--events", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--recording", action="append", default=[], metavar="DIR")
    parser.add_argument("--growth", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        bench = Bench((arguments.old, arguments.new), work, arguments.rounds)
        bench.start_up()
        if arguments.events > 0:
            for name, lost in (("made-up tasks", 0), ("made-up tasks behind a loss", 9)):
                made_up_traces.tasks(f"{work}/tasks", arguments.events, lost=lost)
                bench.compare(name, f"{work}/tasks")
                shutil.rmtree(f"{work}/tasks")
        for recording in arguments.recording:
            bench.compare(recording, os.path.abspath(recording))
        if arguments.growth:
            print("growth: processor time of merge", flush=True)
            for kind in GROWTH:
                bench.grow(*kind)


if __name__ == "__main__":
    main()
