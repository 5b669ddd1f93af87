# SPDX-License-Identifier: Apache-2.0
"""What rules in use say of the jobs of scripts/shifted_corpus.py.

Those of scripts/why_rules.py are given the recording's own tables. One more needs a time without
the fault before it, which a recording of a fault does not have:

  change_point   the steps before the window, as they were, and then the window. Where the means
                 before and behind differ most certainly, with 10 steps or more on each side, is the
                 change; it counts if it is certain (t above 5) and steps are 10 % longer behind it.
                 It names the rank whose steps have become longer by most
"""

import collections
import os
import sys
import tempfile

import numpy as np

from scripts import why_rules

LEAST_STEPS = 10  # on each side of a change
CERTAIN = 5  # of the difference's standard error
LONGER = 0.1
RULES = (*why_rules.RULES, "change_point")


def change_point(steps_ns):
    """The rank that the rule names, or None; steps_ns: by rank and step."""
    whole = steps_ns.mean(axis=0)
    best, where = 0.0, None
    for at in range(LEAST_STEPS, len(whole) - LEAST_STEPS + 1):
        before, behind = whole[:at], whole[at:]
        error = np.sqrt(before.var(ddof=1) / len(before) + behind.var(ddof=1) / len(behind))
        certain = (behind.mean() - before.mean()) / max(error, 1.0)
        if certain > best:
            best, where = certain, at
    if where is None or best < CERTAIN:
        return None
    rise = steps_ns[:, where:].mean(axis=1) / steps_ns[:, :where].mean(axis=1)
    return int(np.argmax(rise)) if rise.max() > 1 + LONGER else None


def named(recording, syncline, before_and_window_ns):
    """{rule: the rank that it names, or None}, but for `why`, of a recording that was made."""
    with tempfile.TemporaryDirectory(prefix="syncline-rules-") as folder:
        found = why_rules.verdicts(why_rules.Tables(recording, syncline, folder))
    if before_and_window_ns is not None:
        found["change_point"] = change_point(before_and_window_ns)
    return found


def print_table(results):
    """Of shifted jobs, by dose: the rank is named / another is / nobody; of the rest: anybody."""
    counts, totals = collections.defaultdict(collections.Counter), collections.Counter()
    for one in results:
        for rule, rank in (one.rules or {}).items():
            dose = one.job.dose
            right = one.job.shifted and rank == one.job.rank
            counts[rule, dose]["none" if rank is None else "right" if right else "other"] += 1
            totals[rule, dose] += 1
    doses = sorted({dose for _, dose in totals})
    if not doses:
        return
    print("\nrules, by dose: the rank is named / another is / nobody; healthy: anybody is named")
    heads = [f"{100 * dose:.0f} %" if dose else "healthy" for dose in doses]
    print(f"{'':16}" + "".join(f"{head:>18}" for head in heads))
    for rule in RULES:
        cells = []
        for dose in doses:
            of, total = counts[rule, dose], totals[rule, dose]
            if dose:
                cells.append(f"{of['right']} / {of['other']} / {of['none']}")
            else:
                cells.append(f"{total - of['none']} of {total}")
        print(f"{rule:16}" + "".join(f"{cell:>18}" for cell in cells))


def python_for_tables():
    """Tables are written by the Python that runs this, which has what they need."""
    os.environ.setdefault("SYNCLINE_PYTHON", sys.executable)
