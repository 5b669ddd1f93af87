# SPDX-License-Identifier: Apache-2.0
"""Known delays in the real noise of healthy recordings, and what `syncline why` says of them.

Usage: scripts/shifted-corpus [--jobs N] [--seed N] [--syncline PROGRAM] RECORDINGS...

RECORDINGS are healthy recordings of examples/pytorch_fault, or directories of them, as
`scripts/why-corpus --only healthy --keep` leaves them. Of them are made:

  windows   pieces of 60 steps, one after the other, as they were
  healthy   2 ranks of one recording, or 4 to 64 ranks of several: any steps of each
  shifted   the same, and one rank takes longer in every step, by an amount that differs from step
            to step by up to half (--spread) and is 5, 10 or 20 % of the longer step on average:
              loader      in its data loader, asleep
              collection  in Python's garbage collection
              queued      in an operator, while it waits for a CPU that a process outside has
              operator    in an operator, asleep     (no cause is known of these two)
              host        between two steps, asleep

What follows from a delay is carried through (shifted_times.py): collectives begin later, the rank
itself waits less, and the others longer. Ranks of several recordings never ran together: each has
its own work and its own transfers, and only who waits for whom is made. All noise is that of the
recordings: one machine, two ranks.

Wrong is a verdict that names another rank, or another cause than the one that was put in, or
anybody in a healthy job, or that finds in operators what was put in elsewhere (more than the rank
takes longer without it); "later, cause unknown" and undecided are counted, and not wrong.

Lead: the interval must hold what was put in, and the rank's lead without it, which is taken from
*all* steps that the recordings have in common, not only from those of the window. So drift within a
recording counts against the interval; a window of 60 of 300 steps is part of that mean, which
counts a little (a tenth of the half-width) for it. Covered are 95 % if a binomial test at 1 % does
not refute it; windows of one recording overlap, so the test is not exact.

Amounts are drawn for each step alone, so that the interval of a cause's amount must hold what was
to be expected of them; that is tested likewise.

With --rules also other rules in use are asked (shifted_rules.py), of jobs of up to 8 ranks.

Exits with 1 if a verdict was wrong, or a job was not answered.
"""

import argparse
import collections
import dataclasses
import json
import multiprocessing
import os
import random
import secrets
import shutil
import subprocess
import sys
import tempfile

import numpy as np

from scripts import shifted_rules, shifted_score, shifted_times, why_rules
from scripts.shifted_ranks import NotSuch, read_recording
from scripts.shifted_recording import Made, Part

CAUSES = {
    **{"loader": "input", "collection": "garbage_collection", "queued": "waiting_for_cpu"},
    **{"operator": None, "host": None},
}
DOSES = (0.05, 0.1, 0.2)
RANKS = (2, 2, 2, 2, 2, 2, 4, 4, 8, 8, 16, 64)  # of twelve jobs
STEPS = 60
MORE_STEPS = 100  # a job that is no window has up to so many
BIG = 32  # ranks: such jobs have STEPS steps
PROCESSES = 2
RULE_RANKS = 8  # other rules read tables, which takes long for more


@dataclasses.dataclass
class Job:
    """What one recording is made of; the label."""

    number: int
    kind: str
    dose: float  # of the step
    sources: list  # of each rank: (recording, its rank, first step)
    steps: int
    rank: int  # that takes longer
    seed: int
    spread: float  # of an amount, from step to step

    @property
    def cause(self):
        return CAUSES.get(self.kind)

    @property
    def shifted(self):
        return self.kind in CAUSES


def windows(recordings):
    """Pieces of all recordings, one after the other."""
    made = []
    for number, recording in enumerate(recordings):
        for first in range(1, len(recording) - STEPS + 1, STEPS):
            sources = [(number, rank, first) for rank in range(len(recording.ranks))]
            made.append(("window", sources, STEPS))
    return made


def sources_of(rng, recordings, ranks, steps):
    """Where the ranks of a job come from: two from one recording, more from several."""

    def first(number):
        return rng.randrange(1, len(recordings[number]) - steps + 1)

    if ranks == 2:
        number = rng.randrange(len(recordings))
        begin = first(number)
        return [(number, rank, begin) for rank in range(2)]
    all_ranks = [(n, rank) for n, one in enumerate(recordings) for rank in range(len(one.ranks))]
    chosen = []
    while len(chosen) < ranks:
        rng.shuffle(all_ranks)
        chosen += all_ranks[: ranks - len(chosen)]
    return [(number, rank, first(number)) for number, rank in chosen]


def drawn(rng, recordings, count):
    """Jobs of which a third is healthy, and each kind, dose and number of ranks has its share."""
    kinds = [(kind, dose) for kind in CAUSES for dose in DOSES]
    made = []
    for number in range(count):
        kind, dose = kinds[(number - number // 3) % len(kinds)]
        if number % 3 == 2:
            kind, dose = "healthy", 0
        ranks = RANKS[number * 7 // 3 % len(RANKS)]
        steps = STEPS if ranks >= BIG else rng.randint(STEPS, MORE_STEPS)
        made.append((kind, dose, sources_of(rng, recordings, ranks, steps), steps))
    return made


def jobs(rng, recordings, count, spread):
    made = [(kind, 0, sources, steps) for kind, sources, steps in windows(recordings)]
    made += drawn(rng, recordings, count)
    return [
        Job(
            *(number, kind, dose, sources, steps, rng.randrange(len(sources))),
            *(rng.randrange(2**31), spread),
        )
        for number, (kind, dose, sources, steps) in enumerate(made)
    ]


# ---- one job


def amounts(job, mean_ns):
    """Of each step, in whole ns; independent of each other, `mean_ns` is what to expect."""
    rng = random.Random(job.seed)
    factors = [rng.uniform(1 - job.spread, 1 + job.spread) for _ in range(job.steps)]
    return np.rint(np.array(factors) * mean_ns).astype(np.int64)


def leads(own_work):
    """By rank and step: own work without the median of the others'."""
    others = np.arange(len(own_work))
    return np.array([
        own - np.median(own_work[others != rank], axis=0) for rank, own in enumerate(own_work)
    ])


def usual_leads(job, recordings):
    """Of each rank, without what is added: over all steps that the sources have side by side."""
    before = min(first for _, _, first in job.sources)
    after = min(len(recordings[number]) - first for number, _, first in job.sources)
    own = []
    for number, rank, first in job.sources:
        recording = recordings[number]
        begin = recording.first[rank] + first
        own.append(recording.ranks[rank].steps.own_work()[begin - before : begin + after])
    return leads(np.array(own)).mean(axis=1)


class Shifted:
    """The times of a job, and what is known of it."""

    def __init__(self, job, recordings):
        self.job = job
        chosen = [recordings[number] for number, _, _ in job.sources]
        windows_ = [
            one.window(rank, first, job.steps) for one, (_, rank, first) in zip(chosen, job.sources)
        ]
        added = [shifted_times.NOTHING] * len(windows_)
        moved = shifted_times.replay(windows_, added)
        step_ns = np.mean([(one.new[-1] - one.new[0]) / job.steps for one in moved])
        self.added_ns = job.dose / (1 - job.dose) * step_ns  # what is to be expected of a step
        if job.shifted:
            one, (_, rank, first) = chosen[job.rank], job.sources[job.rank]
            at = self._where(one.ranks[rank].steps)[one.first[rank] + first :][: job.steps]
            added[job.rank] = shifted_times.Added(at, amounts(job, self.added_ns))
            moved = shifted_times.replay(windows_, added)
        self.steps_ns = self._with_before(recordings, added[job.rank])
        self.lead_ns = leads(np.array([one.own_work for one in moved])).mean(axis=1)
        self.usual_ns = usual_leads(job, recordings)
        self.usual_ns[job.rank] += self.added_ns
        self.parts = [
            Part(
                one.ranks[rank], one.first[rank] + first, job.steps, moved[i], added[i],
                collections=job.kind == "collection" and i == job.rank,
                queued=job.kind == "queued" and i == job.rank,
                clocks=one.clocks,
            )
            for i, (one, (_, rank, first)) in enumerate(zip(chosen, job.sources))
        ]
        self.base = chosen[0]

    def _where(self, steps):
        if self.job.kind == "loader":
            return steps.loader
        return steps.host if self.job.kind in ("host", "collection") else steps.operator

    def _with_before(self, recordings, added):
        """By rank: as many steps before the window, as they were, and it; None: there are none."""
        job = self.job
        if any(first <= job.steps for _, _, first in job.sources):
            return None
        both = [
            recordings[number].window(rank, first - job.steps, 2 * job.steps)
            for number, rank, first in job.sources
        ]
        all_added = [shifted_times.NOTHING] * len(both)
        all_added[job.rank] = added
        moved = shifted_times.replay(both, all_added)
        return np.array([
            np.diff(shifted_times.along(one.end, new.old, new.new)) for one, new in zip(both, moved)
        ])

    def write(self, out):
        Made(out, self.parts, self.base.path, self.base.clocks).write()


RECORDINGS = []  # of the process that forks the others


def judged(task):
    """Makes one job, and asks: a shifted_score.Result."""
    job, options = task
    made = Shifted(job, RECORDINGS)
    out = os.path.join(options.out, f"job-{job.number:03}")
    shutil.rmtree(out, ignore_errors=True)
    made.write(out)
    done = subprocess.run(
        [options.syncline, "why", out, "--json"], capture_output=True, text=True, check=False
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {"status": "refused", "reason": f"exit {done.returncode}", "message": done.stderr}
    result = shifted_score.judge(job, made, answer)
    if options.rules and len(job.sources) <= RULE_RANKS:
        result.rules = shifted_rules.named(out, options.syncline, made.steps_ns)
        if result.outcome != "unanswered":
            result.rules["why"] = why_rules.of_why(answer)
    if not options.keep and result.outcome not in ("wrong", "unanswered"):
        shutil.rmtree(out)
    return result


# ---- all


def found(paths):
    """Recordings below the paths that were given."""
    for path in paths:
        if os.path.isfile(os.path.join(path, "recording.json")):
            yield path
            continue
        inner = [os.path.join(path, name) for name in sorted(os.listdir(path))]
        yield from (one for one in inner if os.path.isfile(os.path.join(one, "recording.json")))


def read_or_say(path):
    try:
        return read_recording(path)
    except (NotSuch, OSError, ValueError) as error:
        return f"left out: {error}"


def read_all(paths):
    with multiprocessing.Pool(PROCESSES) as pool:
        read = pool.map(read_or_say, list(found(paths)), chunksize=1)
    for one in read:
        if isinstance(one, str):
            print(one, file=sys.stderr)
    usable = [one for one in read if not isinstance(one, str)]
    return [one for one in usable if len(one.ranks) == 2 and len(one) > MORE_STEPS]


def parse():
    parser = argparse.ArgumentParser(
        prog="scripts/shifted-corpus",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("recordings", nargs="+")
    parser.add_argument("--jobs", type=int, default=252, help="besides windows (default 252)")
    parser.add_argument("--seed", type=int, help="default: drawn, and printed")
    parser.add_argument(
        "--spread", type=float, default=0.5, help="of amounts, from step to step (default 0.5)"
    )
    parser.add_argument("--syncline", default="build/bin/syncline")
    parser.add_argument("--rules", action="store_true", help="also what other rules say")
    parser.add_argument("--only", type=int, help="one job by its number (with --seed)")
    parser.add_argument(
        "--keep", action="store_true", help="also the recordings that were not judged wrong"
    )
    parser.add_argument("--out", help="where they lie (default: a temporary directory)")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = secrets.randbelow(2**31)
    if options.keep and not options.out:
        parser.error("--keep needs --out")
    return options


def main():
    options = parse()
    shifted_rules.python_for_tables()
    RECORDINGS.extend(read_all(options.recordings))
    if not RECORDINGS:
        sys.exit("shifted-corpus: no recordings of two ranks and enough steps")
    wanted = jobs(random.Random(options.seed), RECORDINGS, options.jobs, options.spread)
    if options.only is not None:
        wanted = [wanted[options.only]]
    kinds = collections.Counter(job.kind for job in wanted)
    print(
        f"seed {options.seed}; {len(RECORDINGS)} recordings; {len(wanted)} jobs: "
        + ", ".join(f"{count} {kind}" for kind, count in kinds.items()),
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="syncline-shifted-") as work:
        if options.out:
            os.makedirs(options.out, exist_ok=True)
        options.out = options.out or work
        # The largest first: two processes then end together.
        order = sorted(wanted, key=lambda job: -len(job.sources))
        with multiprocessing.Pool(PROCESSES) as pool:
            tasks = [(job, options) for job in order]
            results = sorted(pool.imap_unordered(judged, tasks), key=lambda one: one.job.number)
    right = shifted_score.summary(results, [one.path for one in RECORDINGS])
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
