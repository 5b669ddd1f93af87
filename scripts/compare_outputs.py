# SPDX-License-Identifier: Apache-2.0
"""Whether two builds of Syncline write the same, byte by byte.

Usage: scripts/compare-outputs OLD NEW [--recording DIR]... [--quick] [--seeds N] [--keep DIR]

OLD and NEW are build directories. Both run the same commands, each in a directory of its own:

merge   in every format, on one and on two threads, whole and cut, with --refit, with --events, by
        wall clock; and a cut that reads a part only (--look-back)
report  as text, as JSON, as a picture (--svg), with --refit
events  as text and as JSON lines, on one and on two threads, raw
why     as JSON

of the recordings in tests/golden, of traces that are made up by dice (random_traces.py) in which
all kinds of our own events occur and some are lost, of such traces in a recording with a clock
model, of made-up traces of one kind of event (made_up_traces.py), and of what --recording names.
Files, standard output, standard error and exit status are compared. What one and two threads write
is the same in any case, so the new build's is compared with itself, too.

The commit that `syncline --version` names counts as the same in both. What else differs on purpose
stands in ALLOWED, with its reason. Exit status: 0 the same, 1 something differs, 2 usage.
--quick leaves out all inputs but one and all commands but some.
"""

import argparse
import fnmatch
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

from scripts import made_up_traces, random_traces

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GOLDEN = ("tests/golden/tensorflow_profile/run", "tests/golden/tensorflow_workers/run")
FORMATS = "perfetto,chrome,vtune,ctf"

# (pattern of "INPUT/COMMAND/FILE", reason): outputs that differ between the two builds on purpose.
ALLOWED = ()


class Input:
    """What is merged, a cut in the middle of it, and whether it is a recording."""

    def __init__(self, name, arguments, cut, is_recording):
        self.name = name
        self.arguments = arguments
        self.cut = ["--from", cut[0], "--to", cut[1]]
        self.is_recording = is_recording

    def commands(self, quick, parquet):
        """Name and arguments; where a name ends in "@1" and "@2", these must write the same."""
        formats = FORMATS + (",parquet" if parquet else "")
        merge = ["merge", *self.arguments, "--out", "out"]
        found = {}
        for threads in ("1", "2"):
            counted = ["--threads", threads]
            found[f"merge@{threads}"] = [*merge, "--format", formats, *counted]
            found[f"merge cut@{threads}"] = [*merge, "--format", formats, *self.cut, *counted]
            found[f"events@{threads}"] = ["events", *self.arguments, *counted]
        found["report json"] = ["report", *self.arguments, "--json"]
        if self.is_recording:
            found["merge refit@1"] = [*merge, "--refit", "--threads", "1"]
        if quick:
            return found
        if self.is_recording:
            found["merge refit@2"] = [*merge, "--refit", "--threads", "2"]
            found["report refit"] = ["report", *self.arguments, "--refit", "--json"]
            found["why"] = ["why", *self.arguments, "--json"]
        events = ["events", *self.arguments]
        part = [*merge, *self.cut, "--look-back", "1ms"]
        wanted = ["--events", "syncline_itt:task_*"]
        found |= {
            "merge part": part,
            "merge tasks": [*merge, *wanted],
            "merge metadata": [*merge, "--events", "syncline_itt:meta*,syncline_net:*"],
            "merge wall-clock": [*merge, "--align", "wall-clock"],
            "merge pieces": [*merge, "--shard-size", "100KiB"],
            "report": ["report", *self.arguments, "--full"],
            "report picture": ["report", *self.arguments, "--svg", "picture.svg"],
            "events jsonl@1": [*events, "--format", "jsonl", "--threads", "1"],
            "events jsonl@2": [*events, "--format", "jsonl", "--threads", "2"],
            "events raw": [*events, "--raw"],
            "events cut": [*events, *self.cut],
            "events tasks": [*events, *wanted],
        }
        return found


def inputs(arguments, work):
    golden = [os.path.join(ROOT, path) for path in GOLDEN]
    made = [
        Input(path.split("/")[-2], [path], ("1s", "1500ms"), True)
        for path in golden[: 1 if arguments.quick else None]
    ]
    if arguments.quick:
        return made
    for seed in range(1, arguments.seeds + 1):
        lost = (0, 2, 20)[seed % 3]
        traces = random_traces.traces(f"{work}/traces {seed}", seed, lost_per_mille=lost)
        made.append(Input(f"traces {seed}", traces, ("1500us", "2500us"), False))
        run = f"{work}/recording {seed}"
        random_traces.recording(golden[0], run, seed, lost_per_mille=lost)
        made.append(Input(f"recording {seed}", [run], ("501500us", "502500us"), True))
    for make in (
        made_up_traces.tasks,
        made_up_traces.overlapped,
        made_up_traces.metadata_elsewhere,
        made_up_traces.short_threads,
        made_up_traces.foreign_threads,
        made_up_traces.lanes,
    ):
        make(f"{work}/{make.__name__}", 600)
        made.append(Input(make.__name__, [f"{work}/{make.__name__}"], ("20us", "70us"), False))
    for path in arguments.recording:
        made.append(Input(os.path.basename(os.path.abspath(path)), [os.path.abspath(path)],
                          ("500ms", "1s"), True))
    return made


class Build:
    """Runs one build's commands and knows what they wrote."""

    def __init__(self, directory, work, python):
        self.program = os.path.join(os.path.abspath(directory), "bin", "syncline")
        self._work = work
        self._environment = {**os.environ, "TZ": "UTC", "SYNCLINE_PYTHON": python}
        os.makedirs(work)
        version = subprocess.run([self.program, "--version"], check=True, capture_output=True,
                                 text=True).stdout
        found = re.search(r"\b[0-9a-f]{7,40}\b", version)
        self._commit = found[0].encode() if found else None

    def run(self, arguments):
        """What it wrote: path below its directory, or the name of what it printed -> contents."""
        here = os.path.join(self._work, "here")
        shutil.rmtree(here, ignore_errors=True)
        os.makedirs(here)
        done = subprocess.run([self.program, *arguments], cwd=here, env=self._environment,
                              capture_output=True, check=False, stdin=subprocess.DEVNULL)
        wrote = {
            "exit status": str(done.returncode).encode(),
            "standard output": done.stdout,
            "standard error": done.stderr,
        }
        for directory, _, names in os.walk(here):
            for name in names:
                path = os.path.join(directory, name)
                with open(path, "rb") as file:
                    wrote[os.path.relpath(path, here)] = file.read()
        if self._commit is not None:
            mark = b"c" * len(self._commit)
            wrote = {name: data.replace(self._commit, mark) for name, data in wrote.items()}
        return wrote


def first_difference(old, new):
    """In words."""
    if old is None or new is None:
        return "only the new build writes it" if old is None else "only the old build writes it"
    at = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
    return f"byte {at} of {len(old)} and {len(new)}: {old[at:at + 24]!r}, {new[at:at + 24]!r}"


def differences(old, new):
    return {
        name: first_difference(old.get(name), new.get(name))
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    }


class Comparison:
    def __init__(self, keep):
        self.compared = self.differ = self.allowed = 0
        self._keep = keep

    def take(self, place, old, new):
        self.compared += len(old.keys() | new.keys())
        for name, words in differences(old, new).items():
            path = f"{place}/{name}"
            reason = next((why for what, why in ALLOWED if fnmatch.fnmatch(path, what)), None)
            if reason is not None:
                self.allowed += 1
                print(f"differs on purpose: {path}: {reason}")
                continue
            self.differ += 1
            print(f"differs: {path}: {words}", flush=True)
            if self._keep:
                self._save(path, old.get(name), new.get(name))

    def _save(self, path, old, new):
        for which, data in (("old", old), ("new", new)):
            to = os.path.join(self._keep, which, path)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            with open(to, "wb") as file:
                file.write(data or b"")


def hashes(wrote):
    return {name: hashlib.sha256(data).digest() for name, data in wrote.items()}


def compare(one, old, new, commands, comparison):
    by_threads = {}
    for name, arguments in commands.items():
        wrote = new.run(arguments)
        comparison.take(f"{one.name}/{name}", old.run(arguments), wrote)
        stem, _, threads = name.partition("@")
        if not threads:
            continue
        hashed = hashes(wrote)
        if by_threads.setdefault(stem, hashed) != hashed:
            different = differences(by_threads[stem], hashed)
            comparison.differ += 1
            print(f"differs: {one.name}/{stem}: by the number of threads: {', '.join(different)}")


def parquet_python():
    """An interpreter that can write Parquet, or the empty string."""
    for python in (os.path.join(ROOT, ".venv-parquet", "bin", "python"), sys.executable):
        if not os.path.exists(python):
            continue
        if subprocess.run([python, "-c", "import pyarrow"], capture_output=True).returncode == 0:
            return python
    return ""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", help="build directory")
    parser.add_argument("new", help="build directory")
    parser.add_argument("--recording", action="append", default=[], metavar="DIR")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=6, metavar="N", help="of made-up traces")
    parser.add_argument("--keep", metavar="DIR", help="where outputs that differ are put")
    arguments = parser.parse_args()
    python = parquet_python()
    if not python:
        print("note: no Python with pyarrow here: Parquet is not compared")
    comparison = Comparison(arguments.keep)
    with tempfile.TemporaryDirectory() as work:
        old = Build(arguments.old, f"{work}/old", python)
        new = Build(arguments.new, f"{work}/new", python)
        for one in inputs(arguments, work):
            before = comparison.differ
            commands = one.commands(arguments.quick, bool(python))
            compare(one, old, new, commands, comparison)
            count = comparison.differ - before
            print(f"{one.name}: {len(commands)} commands, {count or 'no'} differences", flush=True)
    print(f"{comparison.compared} outputs compared: {comparison.differ} differ,"
          f" {comparison.allowed} on purpose")
    return 1 if comparison.differ else 0


if __name__ == "__main__":
    sys.exit(main())
