# SPDX-License-Identifier: Apache-2.0
"""Verdicts of `syncline why` beside the labels of scripts/shifted_corpus.py, and the counts."""

import collections
import dataclasses
import math

from scripts import shifted_rules
from scripts.shifted_ranks import OPERATOR

OUTCOMES = ("named", "unknown", "undecided", "missed", "other_unknown", "wrong", "unanswered")
HEADINGS = {
    **{"named": "named", "unknown": "unknown", "undecided": "undecided", "missed": "nobody"},
    **{"other_unknown": "other late", "wrong": "WRONG", "unanswered": "unanswered"},
}
TEST = 0.01  # the binomial test's
LEVEL = 0.95  # of intervals


@dataclasses.dataclass
class Result:
    """What was said of one job."""

    job: object
    outcome: str  # of OUTCOMES; of healthy jobs `missed` is right
    said: str
    step_ns: float = 0
    lead: tuple = None  # (est, lo, hi) of the shifted rank's lead, if the answer has it, else None
    lead_ns: float = 0  # what it was over these steps, as they were written
    usual_ns: float = 0  # what it is over all steps, with what was added
    added_ns: float = 0
    amount: tuple = None  # (est, lo, hi) of the cause, if that is what was named
    rules: dict = None  # of other rules: the rank that they name

def said_of(verdict):
    """(rank, what it is named for) of each rank that is named, in the order of the answer."""
    named = []
    for rank in verdict["ranks"]:
        named += [(rank["rank"], cause["cause"]) for cause in rank["causes"]]
        place = (rank["python"] or {}).get("place")
        if place:
            named.append((rank["rank"], f"stands in {place}"))
    return named


def located_of(job, verdict):
    """(operator, ns) that is said to make most of what is unexplained on the shifted rank."""
    for rank in verdict["ranks"]:
        longer = rank["longer_work"]
        mine = rank["rank"] == job.rank and longer
        if mine and longer["longer_ns"] * 2 >= rank["unexplained_ns"]:
            operators = longer["operators"]
            operator = operators[0]["operator"] if operators else "all operators"
            return operator, longer["longer_ns"]
    return None, 0


def outcome_of(job, verdict, without_ns=0):
    """(outcome, what was said). `without_ns`: what the rank may be longer without the shift."""
    named = said_of(verdict)
    text = ", ".join(f"rank {rank} {cause}" for rank, cause in named) or verdict["kind"]
    if verdict["kind"] == "work_differs":
        return "wrong", text
    if named:
        right = job.cause is not None and named == [(job.rank, job.cause)]
        return "named" if right else "wrong", text
    if verdict["kind"] == "late_cause_unknown":
        rank = verdict["ranks"][0]["rank"]
        if not job.shifted or rank != job.rank:
            return "other_unknown", f"rank {rank} late"
        operator, longer_ns = located_of(job, verdict)
        right = operator in (None, OPERATOR if job.kind == "operator" else None)
        if not right and longer_ns > without_ns:
            return "wrong", f"rank {rank} late in {operator}"
        return "unknown", f"rank {rank} late{f' in {operator}' if operator else ''}"
    if verdict["undecided"]:
        return "undecided", "undecided"
    return "missed", text


def lead_of(job, verdict):
    """The interval of the shifted rank's lead; with two ranks the other's says it, too."""
    told = [*verdict["ranks"], *([verdict["closest"]] if verdict["closest"] else [])]
    for rank in told:
        est, lo, hi = (rank["lead_ns"][key] for key in ("est", "lo", "hi"))
        if rank["rank"] == job.rank:
            return est, lo, hi
        if len(job.sources) == 2:
            return -est, -hi, -lo
    return None


def judge(job, made, answer):
    if answer["status"] != "answered":
        return Result(job, "unanswered", f"{answer['reason']}: {answer['message']}")
    # Half of what was added, for what windows of a recording differ by.
    without_ns = made.lead_ns[job.rank] - made.added_ns / 2
    outcome, said = outcome_of(job, answer["verdict"], without_ns)
    amount = None
    if outcome == "named":
        amount_ns = answer["verdict"]["ranks"][0]["causes"][0]["amount_ns"]
        amount = amount_ns["est"], amount_ns["lo"], amount_ns["hi"]
    return Result(
        *(job, outcome, said, answer["steps"]["mean_ns"], lead_of(job, answer["verdict"])),
        *(made.lead_ns[job.rank], made.usual_ns[job.rank], made.added_ns, amount),
    )


# ---- statistics


def binomial_tail(successes, trials, chance):
    """P(X <= successes)."""
    return sum(
        math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k)
        for k in range(successes + 1)
    )


def upper_limit(successes, trials, level=LEVEL):
    """The largest chance that so few successes do not refute: Clopper and Pearson, one side."""
    if successes >= trials:
        return 1.0
    low, high = successes / trials, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if binomial_tail(successes, trials, middle) > 1 - level:
            low = middle
        else:
            high = middle
    return high


def median(values):
    values = sorted(values)
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


# ---- what is printed


def table(results):
    kinds = list(dict.fromkeys((one.job.kind, one.job.dose) for one in results))
    kinds.sort(key=lambda one: (one[1] > 0, one))
    print(f"\n{'':12}{'dose':>6}{'jobs':>6}" + "".join(f"{HEADINGS[o]:>12}" for o in OUTCOMES))
    for kind, dose in kinds:
        of = collections.Counter(
            one.outcome for one in results if (one.job.kind, one.job.dose) == (kind, dose)
        )
        share = f"{100 * dose:.0f} %" if dose else "-"
        cells = "".join(f"{of[outcome] or '-':>12}" for outcome in OUTCOMES)
        print(f"{kind:12}{share:>6}{sum(of.values()):>6}{cells}")


def named_by(results, of, heading):
    """Of shifts with a cause that can be known: how many are named."""
    counts = collections.defaultdict(collections.Counter)
    for one in results:
        if one.job.cause is not None:
            counts[of(one)][one.outcome == "named"] += 1
    text = ", ".join(
        f"{name}: {one[True]} of {sum(one.values())}" for name, one in sorted(counts.items())
    )
    print(f"named with its cause, by {heading}: {text}")


def operators_named(results):
    """Of delays in an operator on a rank that is late: how often it is said in which."""
    late = [one for one in results if one.job.kind == "operator" and one.outcome == "unknown"]
    named = sum(OPERATOR in one.said for one in late)
    print(f"late by an operator: {len(late)}, and it is said which: {named}")


def by_lead(one):
    share = one.lead_ns / one.step_ns if one.step_ns else 0
    for low, name in ((0.1, "10 % and more"), (0.05, "5 to 10 %"), (0.02, "2 to 5 %")):
        if share >= low:
            return name
    return "below 2 %"


def false_accusations(results, paths):
    """Windows of healthy recordings in which somebody is named for a cause."""
    windows_ = [one for one in results if one.job.kind == "window"]
    wrong = [one for one in windows_ if one.outcome == "wrong"]
    recordings = {one.job.sources[0][0] for one in windows_}
    accused = {one.job.sources[0][0] for one in wrong}
    if not windows_:
        return
    print(
        f"false accusations: {len(wrong)} of {len(windows_)} healthy windows, in "
        f"{len(accused)} of {len(recordings)} recordings: below "
        f"{100 * upper_limit(len(accused), len(recordings)):.1f} % of recordings "
        "(one side, 95 %)"
    )
    for number in sorted(accused):
        print(f"  {paths[number]}")


def half_widths(results):
    healthy = [
        (one.lead[2] - one.lead[1]) / 2 / one.step_ns
        for one in results if not one.job.shifted and one.lead and len(one.job.sources) == 2
    ]
    if healthy:
        within = sum(width <= 0.05 for width in healthy)
        print(
            f"half-width of a lead, healthy, two ranks: median {100 * median(healthy):.1f} % of "
            f"the step; at most 5 % in {within} of {len(healthy)}"
        )


def print_coverage(name, told):
    """Of (interval, truth, step): whether intervals hold the truth often enough."""
    if not told:
        return
    hold = sum(lo <= truth <= hi for (_, lo, hi), truth, _ in told)
    chance = binomial_tail(hold, len(told), LEVEL)
    widths = [(hi - lo) / step_ns for (_, lo, hi), _, step_ns in told]
    # By what half-widths have to be multiplied.
    factors = sorted(
        (est - truth) / (est - lo) if truth < est else (truth - est) / max(hi - est, 1)
        for (est, lo, hi), truth, _ in told
    )
    factor = factors[min(math.ceil(LEVEL * len(told)), len(told)) - 1]
    print(
        f"intervals, {name}: {hold} of {len(told)} hold the truth "
        f"({100 * hold / len(told):.1f} %), so few by chance: {chance:.2g}"
        f"{'' if chance >= TEST else ' (REFUTED)'}; median width {100 * median(widths):.1f} % "
        f"of the step; {factor:.1f} times as wide would be enough"
    )


def coverage(results):
    two = [one for one in results if one.lead and len(one.job.sources) == 2]
    for name, which in (
        ("healthy", [one for one in two if not one.job.shifted]),
        ("shifted", [one for one in two if one.job.shifted]),
    ):
        print_coverage(
            f"leads of two ranks, {name}",
            [(one.lead, one.usual_ns, one.step_ns) for one in which],
        )
    certain = [one for one in results if one.amount and one.job.dose >= 0.1]
    for kind in dict.fromkeys(one.job.kind for one in certain):
        mine = [one for one in certain if one.job.kind == kind]
        print_coverage(
            f"amounts of 10 % and more, {kind}",
            [(one.amount, one.added_ns, one.step_ns) for one in mine],
        )
        read = median([one.amount[0] / one.added_ns for one in mine])
        print(f"  read is {100 * read:.0f} % of what was put in (median)")
    errors = [abs(one.lead[0] - one.lead_ns) / one.step_ns for one in results if one.lead]
    if errors:
        print(
            "estimates of leads are off from what was written for these very steps by "
            f"{100 * median(errors):.2f} % of the step (median), {100 * max(errors):.1f} % at most"
        )


def summary(results, paths):
    """Prints the counts; whether nothing was wrong."""
    table(results)
    named_by(results, lambda one: f"{100 * one.job.dose:.0f} %", "dose")
    named_by(results, by_lead, "lead")
    named_by(results, lambda one: len(one.job.sources), "ranks")
    operators_named(results)
    false_accusations(results, paths)
    half_widths(results)
    coverage(results)
    shifted_rules.print_table(results)
    for one in results:
        if one.job.cause and one.job.dose >= 0.1 and one.outcome not in ("named", "wrong"):
            print(f"job {one.job.number}: {label(one)}: not named: {one.said}")
    bad = [one for one in results if one.outcome in ("wrong", "unanswered")]
    for one in bad:
        print(f"job {one.job.number}: {label(one)}: {one.outcome}: {one.said}")
    return not bad


def label(one):
    job = one.job
    if not job.shifted:
        return f"{job.kind}, {len(job.sources)} ranks, sources {job.sources[:4]}"
    return (
        f"{job.kind} {100 * job.dose:.0f} % on rank {job.rank} of {len(job.sources)}, "
        f"lead {one.lead_ns / 1e6:.1f} of {one.step_ns / 1e6:.1f} ms"
    )
