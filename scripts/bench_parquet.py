# SPDX-License-Identifier: Apache-2.0
"""How fast Parquet is written, beside DuckDB's own writer with the same rows, in one run.

Usage: scripts/bench-parquet [--build DIR] [--events N] [--rounds N]

Ours is a process that makes the rows and a child that encodes them, so two figures tell what it
takes: rows per second of the clock, and rows per second of processor time of both together, user
and system. The same of ours with a child that throws everything away, which is what making the rows
takes. DuckDB has the rows as a table in memory and writes them with one thread; both compress with
zstd.

spans:   16 times half a million spans of a job, pushed into the sink (export/sinks_benchmark.cc).
         Nothing is read or built. A span is two events.
merge:   `syncline merge --format parquet` of a generated trace: reading, building the timeline,
         and two tables with a row for each event: instants, and events as they were recorded, with
         all their fields, of which most are random numbers.
"""

import argparse
import glob
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import duckdb

NOTHING = """#!/bin/sh
mkdir -p "$4"
echo ready nothing
cat > /dev/null
echo done
"""
WRITERS = (("DuckDB", "compression zstd"), ("DuckDB, v2", "compression zstd, parquet_version v2"))


def timed(work, who):
    """Seconds by the clock, and of the processor."""

    def processor():
        usage = resource.getrusage(who)
        return usage.ru_utime + usage.ru_stime

    begin, processor_begin = time.perf_counter(), processor()
    work()
    return time.perf_counter() - begin, processor() - processor_begin


def write_spans(build, python, keep, threads):
    """M rows/s, M rows per processor second, bytes per event."""
    environment = {"SYNCLINE_PYTHON": python, "SYNCLINE_KEEP_PARQUET": keep}
    printed = subprocess.run(
        [
            f"{build}/bench/sinks_benchmark",
            f"--benchmark_filter=^BM_Parquet/{threads}/",
            "--benchmark_format=json",
        ],
        env={**os.environ, **environment},
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    (found,) = json.loads(printed.stdout)["benchmarks"]
    return found["items_per_second"] / 1e6, found["rows/cpu_s"] / 1e6, found["bytes/event"]


def merge(build, python, trace, out, threads):
    """M rows/s, M rows per processor second, of both tables."""
    command = [f"{build}/bin/syncline", "merge", trace, "--out", out, "--format", "parquet"]
    command += ["--threads", str(threads)]
    environment = {**os.environ, "SYNCLINE_PYTHON": python}

    def run():
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)

    return timed(run, resource.RUSAGE_CHILDREN)


def files_of(directory, table):
    return glob.glob(f"{directory}/{table}/**/*.parquet", recursive=True)


def bytes_of(files):
    return sum(os.path.getsize(path) for path in files)


class Duck:
    """The rows of some files, which it writes again."""

    def __init__(self, files):
        self.database = duckdb.connect()
        self.database.execute("set threads = 1")
        self.database.execute("create table t as from read_parquet($1)", [files])
        (self.rows,) = self.database.execute("select count(*) from t").fetchone()

    def write(self, path, options):
        """M rows/s, M rows per processor second, bytes per row."""
        sql = f"copy t to '{path}' (format parquet, {options})"
        seconds, processor = timed(lambda: self.database.execute(sql), resource.RUSAGE_SELF)
        return (
            self.rows / seconds / 1e6,
            self.rows / processor / 1e6,
            os.path.getsize(path) / self.rows,
        )


def show(label, results, unit, events_per_row=1):
    rate, processor_rate, size = (statistics.median(column) for column in zip(*results))
    size = f"{size / events_per_row:6.2f} B/{unit}" if size else ""
    print(f"  {label:28} {rate:6.2f} M rows/s  {processor_rate:6.2f} M rows/cpu s  {size}")


def bench_spans(options, nothing, work):
    results = {}
    for _ in range(options.rounds):
        keep = os.path.join(work, "spans")
        for threads in (1, 2):
            found = write_spans(options.build, sys.executable, keep, threads)
            results.setdefault(f"ours, {threads} thread{'s' * (threads > 1)}", []).append(found)
        duck = Duck(files_of(keep, "spans"))
        for label, how in WRITERS:
            rate, processor_rate, size = duck.write(os.path.join(work, "duck"), how)
            results.setdefault(label, []).append((rate, processor_rate, size / 2))
        made = write_spans(options.build, nothing, os.path.join(work, "nothing"), 1)
        results.setdefault("ours, only making the rows", []).append((*made[:2], 0))
    print(f"spans: {duck.rows} rows")
    for label, found in results.items():
        show(label, found, "event")


def bench_merge(options, nothing, work):
    trace, out = os.path.join(work, "trace"), os.path.join(work, "out")
    generate = [f"{options.build}/bench/ctf_generate_streams", trace, "2", str(options.events)]
    subprocess.run(generate, check=True, stdout=subprocess.DEVNULL)
    results = {}
    for _ in range(options.rounds):
        ours = [(f"ours, {n} thread{'s' * (n > 1)}", sys.executable, n) for n in (1, 2)]
        for label, python, threads in [("ours, only making the rows", nothing, 1), *ours]:
            seconds, processor = merge(options.build, python, trace, out, threads)
            rows = 2 * options.events / 1e6
            size = 0
            if python != nothing:
                tables = [files_of(f"{out}/parquet", t) for t in ("instants", "events")]
                size = sum(map(bytes_of, tables)) / (2 * options.events)
            results.setdefault(label, []).append((rows / seconds, rows / processor, size))
        for table, files in zip(("instants", "events"), tables):
            duck = Duck(files)
            for label, how in WRITERS:
                found = duck.write(os.path.join(work, "duck"), how)
                results.setdefault(f"{label}, {table}", []).append(found)
            del duck
    print(f"merge: {2 * options.events} rows")
    for label, found in results.items():
        show(label, found, "row")
    print(f"  ours: instants {bytes_of(tables[0]) / options.events:.2f} B/row, ", end="")
    print(f"events {bytes_of(tables[1]) / options.events:.2f} B/row")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", metavar="DIR")
    parser.add_argument("--events", type=int, default=4_000_000, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="syncline-bench-") as work:
        nothing = os.path.join(work, "nothing.sh")
        with open(nothing, "w", encoding="utf-8") as file:
            file.write(NOTHING)
        os.chmod(nothing, 0o755)
        print(f"medians of {options.rounds} rounds; rates by the clock fall when others compute")
        bench_spans(options, nothing, work)
        bench_merge(options, nothing, work)


if __name__ == "__main__":
    main()
