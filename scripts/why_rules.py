# SPDX-License-Identifier: Apache-2.0
"""Rules in use beside `syncline why`, on the same recordings.

Usage: scripts/why-rules CORPUS [--syncline SYNCLINE]

CORPUS is what `scripts/why-corpus --keep --out CORPUS` left: recordings of healthy runs, of real
faults, and of what only looks like a fault, with their labels. Each rule is given the recording's
own tables, of one timeline whose clocks are right:

  why            what `syncline why` said when the run was judged; it names a rank with a cause
  sections       of NVIDIA's resiliency extension, as documented: a rank's score is the fastest
                 rank's median time of a section, divided by its own; flagged is what is below 0.75.
                 Sections are waiting for input, the forward pass, and the optimizer's step, if they
                 take 5 % of the step
  section_step   the same, with the whole step as the section
  least_wait     the rank that spends least time in collectives, if that is 10 % of the step less
  last_to_enter  the rank that enters last, if it does so in three of four collectives
  mean_step      the rank with the longest mean step, if that is 10 % longer

What is counted: of runs with a fault, whether the rank is named, another one is, or none; of the
others, whether anybody is. A rank whose operator sleeps, or whose batches are larger (slow), is
later than the other: to name it is no false alarm, to call it faulty is one. In the rest
(not slow) nobody is later for any reason of its own.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

import duckdb

SECTIONS = ("enumerate(DataLoader)%", "DistributedDataParallel.forward", "Optimizer.step#%.step")
SCORE = 0.75
PART = 0.1  # of the step
LAST = 0.75  # of all collectives
SECTION_LEAST = 0.05  # of the step
RULES = ("why", "sections", "section_step", "least_wait", "last_to_enter", "mean_step")
SLOW = ("sleep", "batch")
DOSES = ((0, 0.18, "lead below 18 %"), (0.18, 0.25, "18 to 25 %"), (0.25, 1, "25 % and more"))


class Tables:
    """The tables of a recording."""

    def __init__(self, run, syncline, folder):
        out = os.path.join(folder, os.path.basename(run))
        words = [syncline, "merge", run, "--format", "parquet", "--out", out]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode not in (0, 3):
            sys.exit(f"{' '.join(words)}: {done.stderr}")
        self.parquet = os.path.join(out, "parquet")
        self.sql = duckdb.connect()
        for name in ("spans", "tracks", "processes", "collectives"):
            self.sql.execute(
                f"create view {name} as from read_parquet('{self.parquet}/{name}/**/*.parquet', "
                "hive_partitioning = true, union_by_name = true)"
            )
        self.sql.execute(
            "create view tasks as select r.rank, s.* from spans s join tracks t using (track) "
            "join processes r on t.process = r.track where r.rank is not null "
            "and t.kind = 'thread' and not (clipped_begin or clipped_end or suspect)"
        )

    def by_rank(self, query):
        return {row[0]: row[1] for row in self.sql.execute(query).fetchall()}

    def step_ns(self, how):
        return self.by_rank(
            f"select rank, {how}(ns) from (select rank, end_ns - lag(end_ns) over "
            "(partition by rank order by end_ns) as ns from tasks "
            "where name like 'Optimizer.step#%.step') where ns is not null group by rank"
        )

    def section_ns(self, name):
        return self.by_rank(
            "select rank, median(end_ns - begin_ns) from tasks "
            f"where name like '{name}' group by rank"
        )

    def wait_ns(self, steps_ns):
        """Of a step, mean: in collectives."""
        window = self.sql.execute(
            "select max(left_ns) - min(entered_ns) from collectives"
        ).fetchone()[0]
        sums = self.by_rank("select rank, sum(left_ns - entered_ns) from collectives group by rank")
        steps = window / (sum(steps_ns.values()) / len(steps_ns))
        return {rank: total / steps for rank, total in sums.items()}

    def last_in(self):
        """Of collectives, the share that each rank entered last."""
        rows = self.sql.execute(
            'select "group", number, arg_max(rank, entered_ns) from collectives group by all'
        ).fetchall()
        counts = collections.Counter(row[2] for row in rows)
        return {rank: count / len(rows) for rank, count in counts.items()}


def flagged(times_ns):
    """By its score in one section."""
    if len(times_ns) < 2:
        return []
    fastest = min(times_ns.values())
    return [rank for rank, own in times_ns.items() if own > 0 and fastest / own < SCORE]


def verdicts(tables):
    """The rank that each rule names; None: nobody."""
    steps_ns = tables.step_ns("avg")
    step_ns = sum(steps_ns.values()) / len(steps_ns)
    named = []
    for section in SECTIONS:
        times_ns = tables.section_ns(section)
        if times_ns and max(times_ns.values()) >= SECTION_LEAST * step_ns:
            named += flagged(times_ns)
    found = {"sections": named[0] if named else None}
    whole = flagged(tables.step_ns("median"))
    found["section_step"] = whole[0] if whole else None
    waits = sorted(tables.wait_ns(steps_ns).items(), key=lambda one: one[1])
    gap = waits[-1][1] - waits[0][1]
    found["least_wait"] = waits[0][0] if gap > PART * step_ns else None
    rank, share = max(tables.last_in().items(), key=lambda one: one[1])
    found["last_to_enter"] = rank if share >= LAST else None
    longest = max(steps_ns, key=steps_ns.get)
    found["mean_step"] = (
        longest if steps_ns[longest] > (1 + PART) * min(steps_ns.values()) else None
    )
    return found


def of_why(answer):
    named = [rank["rank"] for rank in answer["verdict"]["ranks"] if rank["causes"]]
    # Of a function of its own code in which a rank stands no cause is known.
    placed = [rank["rank"] for rank in answer["verdict"]["ranks"] if rank["python"]]
    return (named or placed or [None])[0]


def kind_of(label):
    if label["kind"] in SLOW:
        return "slow, no fault"
    if label["kind"] in ("healthy", "both", "idle_thief", "prefetched"):
        return "not slow"
    return next(name for low, high, name in DOSES if low <= label["lead"] < high)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("corpus", help="what scripts/why-corpus --keep left")
    parser.add_argument("--syncline", default="build/bin/syncline")
    options = parser.parse_args()
    counts = collections.defaultdict(collections.Counter)  # (rule, kind of run): outcome
    totals = collections.Counter()
    with open(os.path.join(options.corpus, "results.jsonl"), encoding="utf-8") as file:
        runs = [json.loads(line) for line in file]
    for run in runs:
        recording = os.path.join(options.corpus, f"run-{run['run']:02d}")
        if not os.path.isdir(recording) or not run["answer"]:
            print(f"run {run['run']} left out: its recording is not here", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory(prefix="why-rules-") as folder:
            found = verdicts(Tables(recording, options.syncline, folder))
        found["why"] = of_why(run["answer"])
        kind = kind_of(run["label"])
        totals[kind] += 1
        for rule in RULES:
            name = found[rule]
            right = name == run["label"]["rank"]
            outcome = "none" if name is None else "right" if right else "other"
            counts[rule, kind][outcome] += 1
    if not totals:
        sys.exit("no recording is here: run scripts/why-corpus with --keep")
    faults = [name for _, _, name in DOSES]
    print("faults: the faulty rank is named / another rank is / none; else: anybody is named")
    columns = [*(f"{kind} ({totals[kind]})" for kind in (*faults, "slow, no fault", "not slow"))]
    print(f"{'rule':<14}" + "".join(f"{column:>22}" for column in columns))
    for rule in RULES:
        cells = []
        for kind in faults:
            of = counts[rule, kind]
            cells.append(f"{of['right']} / {of['other']} / {of['none']}")
        for kind in ("slow, no fault", "not slow"):
            cells.append(str(totals[kind] - counts[rule, kind]["none"]))
        print(f"{rule:<14}" + "".join(f"{cell:>22}" for cell in cells))


if __name__ == "__main__":
    main()
