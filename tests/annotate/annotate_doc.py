# SPDX-License-Identifier: Apache-2.0
"""annotate_doc.py BUILD_DIRECTORY JOB_MAIN: every program of docs/annotate.md is built and run
under `syncline run` and recorded, and the report says what they marked.

Exits 77 (skipped) where LTTng, DuckDB or the Python package ittapi is missing. Without PyTorch
(.venv-torch) its program is left out.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(FOLDER))
sys.path.insert(0, os.path.join(ROOT, "instrumentation", "tests"))

import lttng_fixture  # noqa: E402  (after the path is set)

try:
    import duckdb
except ImportError:
    print("skipped: no DuckDB here; scripts/setup makes .venv-parquet, which has it")
    sys.exit(lttng_fixture.SKIPPED)

ITTAPI_PYTHON = os.path.join(ROOT, ".venv-tensorflow/bin/python")
TORCH_PYTHON = os.path.join(ROOT, ".venv-torch/bin/python")
JOB_MAIN = os.path.abspath(sys.argv[2])
LIMIT_S = 90
INCOMPLETE = 3  # exit code of a recording with pauses
# The blocks of each chapter, in order: what a program is called here.
PROGRAMS = {
    "Mark iterations and their phases": ["steps_c", "steps_cxx", "steps_python", "steps_torch"],
    "Mark what overlaps": ["regions_c", "regions_cxx", "regions_python"],
    "Collect only what is marked": ["pause_c", "pause_python"],
}


def blocks(path):
    """[(heading, language, text)] of the document's blocks."""
    found, heading, language, lines = [], "", None, []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("```"):
                if language is not None:
                    found.append((heading, language, "".join(lines)))
                language, lines = (line[3:].strip(), []) if language is None else (None, [])
            elif language is not None:
                lines.append(line)
            elif line.startswith("## "):
                heading = line[3:].strip()
    assert language is None, "a block of the document has no end"
    return found


class Job:
    """A program of the document that runs until it is told to end."""

    def __init__(self, name, language, text, work):
        self.name, self.work = name, work
        self.ready, self.until = (os.path.join(work, f"{name}.{end}") for end in ("ready", "until"))
        source = os.path.join(work, f"{name}.{'py' if language == 'python' else language}")
        if language == "python":
            text = "from job import load_batch, more_steps, train  # noqa: F401\n" + text
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        self.process, self.command = None, [os.path.join(work, name)]
        if language == "python":
            python = TORCH_PYTHON if "torch" in name else ITTAPI_PYTHON
            self.command = [python, source]
        else:
            self.build(language, source, has_main="int main(" in text)

    def build(self, language, source, has_main):
        compilers = {"c": ["cc", "-std=c11"], "cpp": ["c++", "-std=c++17"]}
        flags = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-pthread", "-I", FOLDER]
        flags += ["-I", os.path.join(ROOT, "instrumentation", "annotate"), "-include", "job.h"]
        flags += ["-DSYNCLINE_ANNOTATE_WARNINGS"]
        others = [] if has_main else [JOB_MAIN]
        command = compilers[language] + flags + [source, *others, "-o", *self.command]
        subprocess.run(command, check=True)

    def start(self, syncline, environment):
        environment = {
            **environment,
            "JOB_READY": self.ready,
            "JOB_UNTIL": self.until,
            "PYTHONPATH": FOLDER,
        }
        self.process = subprocess.Popen([syncline, "run", "--", *self.command], env=environment)

    def end(self):
        if self.process is None:
            return
        with open(self.until, "w", encoding="utf-8"):
            pass
        assert self.process.wait(LIMIT_S) == 0, f"{self.name} ended with {self.process.returncode}"

    def is_ready(self):
        assert self.process.poll() is None, f"{self.name} ended: {self.process.returncode}"
        return os.path.exists(self.ready)


class Recording:
    """What `syncline report` says, by program; `code`: how commands end that look at it."""

    def __init__(self, syncline, run, environment, code):
        self.syncline, self.environment, self.run, self.code = syncline, environment, run, code
        self.report = json.loads(self.say("report", run, "--json"))
        self.processes = [p for node in self.report["nodes"] for p in node["processes"]]

    def say(self, *arguments):
        ran = subprocess.run(
            [self.syncline, *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
            timeout=LIMIT_S,
        )
        assert ran.returncode == self.code, f"{arguments} ended with {ran.returncode}"
        return ran.stdout

    def process(self, name):
        (found,) = [
            process
            for process in self.processes
            if os.path.basename(process["command_line"]).removesuffix(".py") == name
        ]
        return found

    def steps(self, name):
        """The main series of a program."""
        process = self.process(name)["name"]
        return next(s for s in self.report["steps"] if s["process"] == process)

    def task(self, domain, name):
        found = [t for t in self.report["tasks"] if (t["domain"], t["name"]) == (domain, name)]
        assert len(found) == 1, f"{domain} {name}: {found}"
        return found[0]


def check_numbers(series, least, apart=1):
    """Steps with numbers that follow each other; a neighbour may keep the machine for a while."""
    numbers = [int(step["name"].rsplit(" ", 1)[1]) for step in series["steps"]]
    assert len(numbers) >= least, f"{series['process']}: {len(numbers)} steps"
    expected = list(range(numbers[0], numbers[0] + apart * len(numbers), apart))
    assert numbers == expected and numbers[0] % apart == 0, f"{series['process']}: {numbers}"
    return numbers


def check_steps(recording, name, domain, pattern):
    series = recording.steps(name)
    assert (series["domain"], series["name"]) == (domain, pattern), series
    check_numbers(series, least=30)
    for step in series["steps"]:
        assert step["end_ns"] - step["begin_ns"] >= 6e6, f"{name}: {step}"


def check_phases(recording, domain, names):
    """Of all programs of a domain together, each step has its two phases."""
    steps = sum(recording.steps(name)["count"] for name in names)
    for phase, least_ns in ("load", 2e6), ("train", 4e6):
        task = recording.task(domain, phase)
        assert abs(task["count"] - steps) <= 2 * len(names), f"{steps} steps, {task}"
        assert task["average_ns"] >= least_ns and "overlapping" not in task, task


def check_overlaps(recording):
    """Several are open at any time: together they last longer than the window."""
    window = recording.report["window"]
    window_ns = window["end_ns"] - window["begin_ns"]
    tasks = (
        ("annotations", "read batch"),
        ("annotations", "batch in flight"),
        ("training", "batch in flight"),
    )
    for domain, name in tasks:
        task = recording.task(domain, name)
        assert task["overlapping"] and task["self_ns"] == 0, task
        assert task["count"] >= 30 and task["total_ns"] > 1.4 * window_ns, f"{task}, {window_ns}"


def check_pauses(recording):
    assert not recording.report["complete"]
    for name in "pause_c", "pause_python":
        process = recording.process(name)
        window = recording.report["window"]
        share = process["covered_ns"] / (window["end_ns"] - window["begin_ns"])
        assert 0.02 < share < 0.3, f"{name}: {share} of the window is covered"
        check_numbers(recording.steps(name), least=5, apart=10)
    assert "paused by the program" in recording.say("report", recording.run, "--full")


def check_printed(recording):
    """What the document says that its commands show."""
    said = recording.say("report", recording.run, "--section", "steps")
    longest = [line.split()[-1] for line in said.splitlines() if "annotations · step" in line]
    assert "longest" in said and longest and all(map(str.isdigit, longest)), said
    said = recording.say("report", recording.run, "--section", "operators")
    (row,) = [line for line in said.splitlines() if line.lstrip().startswith("read batch")]
    assert " - " in row, row
    chosen = recording.say("report", recording.run, "--step", "training:train", "--json")
    names = {series["name"] for series in json.loads(chosen)["steps"]}
    assert names == {"train"}, names


def check_iterations(recording, query):
    """The query of the document, against the report's steps: each has both phases, and they fit."""
    recording.say("merge", recording.run, "--format", "parquet")
    database = duckdb.connect()
    rows = database.execute(query).fetchall()
    threads = {}
    for thread, iteration, phase, times, ms in rows:
        threads.setdefault(thread, {}).setdefault(iteration, {})[phase] = (times, ms)
    found = sorted(sorted(iterations) for iterations in threads.values())
    expected = sorted(
        check_numbers(recording.steps(name), least=30)
        for name in ("steps_c", "steps_cxx", "steps_python")
    )
    # The tables hold a little more at both ends: what was recorded beside the window.
    assert len(found) == len(expected), f"{len(found)} threads"
    for mine, theirs in zip(found, expected, strict=True):
        assert mine == list(range(mine[0], mine[-1] + 1)), mine
        assert mine[0] <= theirs[0] and theirs[-1] <= mine[-1], f"{mine}\n{theirs}"
    for iterations in threads.values():
        for number, phases in iterations.items():
            assert set(phases) == {"load", "train"}, f"{number}: {phases}"
            assert phases["load"][0] == 1 and phases["load"][1] >= 2, f"{number}: {phases}"
            assert phases["train"][0] == 1 and phases["train"][1] >= 4, f"{number}: {phases}"
    counters = database.execute(
        "select t.name, count(*), min(value), max(value) from "
        "read_parquet('run/out/parquet/counters/**/*.parquet', hive_partitioning = true) c join "
        "read_parquet('run/out/parquet/tracks/**/*.parquet') t using (track) "
        "where t.name like 'annotations%' group by all order by all"
    ).fetchall()
    assert [row[0] for row in counters] == [
        "annotations · batches in flight",
        "annotations · loss",
    ], counters
    assert all(row[1] >= 30 for row in counters), counters
    assert 1 <= counters[0][2] and counters[0][3] <= 4 and 0 < counters[1][3] < 1, counters


def check_torch(recording):
    check_steps(recording, "steps_torch", "PyTorch", "iteration #")
    # The operator is there without emit_itt.
    assert recording.task("PyTorch", "aten::mm")["count"] >= 30


def record(syncline, jobs, environment, run, expected):
    """Of all jobs at once; `expected` is the command's exit code."""
    try:
        for job in jobs:
            job.start(syncline, environment)
        end = time.monotonic() + LIMIT_S
        while not all([job.is_ready() for job in jobs]):
            assert time.monotonic() < end, "not all programs have begun"
            time.sleep(0.1)
        command = [syncline, "record", "--for", "2s", "--out", run]
        code = subprocess.run(command, env=environment, timeout=LIMIT_S).returncode
        assert code == expected, f"record {run} ended with {code}"
    finally:
        for job in jobs:
            job.end()
    return Recording(syncline, run, environment, expected)


def programs(document, work):
    for heading, names in PROGRAMS.items():
        found = [block for block in document if block[0] == heading]
        for name, (_, language, text) in zip(names, found, strict=True):
            if "torch" not in name or os.path.exists(TORCH_PYTHON):
                yield Job(name, language, text, work)


def check(syncline, document, work, environment):
    jobs = list(programs(document, work))
    # An agent and LTTng's daemon that are there before the programs are.
    subprocess.run([syncline, "nodes"], env=environment, check=True, timeout=LIMIT_S)
    paused = [job for job in jobs if job.name.startswith("pause")]
    check_pauses(record(syncline, paused, environment, "run-paused", INCOMPLETE))
    others = [job for job in jobs if job not in paused]
    recording = record(syncline, others, environment, "run", 0)
    for name in "steps_c", "steps_cxx":
        check_steps(recording, name, "annotations", "step")
    check_steps(recording, "steps_python", "training", "step #")
    check_phases(recording, "annotations", ["steps_c", "steps_cxx"])
    check_phases(recording, "training", ["steps_python"])
    check_overlaps(recording)
    check_printed(recording)
    (query,) = [text for _, language, text in document if language == "sql"]
    check_iterations(recording, query)
    if os.path.exists(TORCH_PYTHON):
        check_torch(recording)
    print(f"{len(jobs)} programs of docs/annotate.md were recorded and are in the report")


def main():
    lttng_fixture.enter_namespaces()
    if not os.path.exists(ITTAPI_PYTHON):
        print("skipped: no ittapi here; scripts/setup makes .venv-tensorflow, which has it")
        sys.exit(lttng_fixture.SKIPPED)
    syncline = os.path.join(os.path.abspath(sys.argv[1]), "bin", "syncline")
    document = blocks(os.path.join(ROOT, "docs", "annotate.md"))
    with tempfile.TemporaryDirectory(prefix="syncline-test-") as work:
        os.chdir(work)
        environment = dict(
            os.environ,
            LTTNG_HOME=work,
            SYNCLINE_DATA_DIR=os.path.join(work, "agent"),
            SYNCLINE_RUNTIME_DIR=os.path.join(work, "runtime"),
            SYNCLINE_PYTHON=sys.executable,
        )
        check(syncline, document, work, environment)


main()
