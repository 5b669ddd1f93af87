# SPDX-License-Identifier: Apache-2.0
"""What runs of scripts/why-corpus are given, and how a verdict is compared with that."""

import dataclasses

KINDS = {  # in 50 runs
    **{"healthy": 8, "quota": 4, "thief": 4, "loader": 4, "gc": 4, "storage": 4, "isa": 2},
    "memory": 2,
    **{"callback": 4, "checkpoint": 2, "evaluation": 2},
    **{"sleep": 2, "denormal": 2, "batch": 2, "both": 2, "idle_thief": 1, "prefetched": 1},
}
CAUSES = {  # whom a fault's verdict has to name is drawn; this is what
    **{"quota": "throttled", "thief": "waiting_for_cpu"},
    **{"loader": "input", "gc": "garbage_collection", "storage": "blocked"},
    **{"isa": "instruction_set", "memory": "late by page faults"},
    "callback": "late in Callback.after_step",
    **{"checkpoint": "makes the stalls", "evaluation": "makes the stalls"},
    **{"sleep": "late in Pass.forward", "denormal": "longer in aten::sqrt"},
}
STANDS = ("callback", "sleep")  # who is late is to be said, and where in Python
# What makes it late is not in its operators, or in another one than is said.
NOT_IN_OPERATORS = ("denormal", "sleep", "loader", "gc", "storage", "callback")
STALLS = ("checkpoint", "evaluation")
# Where a rank may be said to stand.
PLACES = {
    **{"callback": "Callback.after_step (", "storage": "Storage.", "sleep": "Pass.forward ("},
    **{"checkpoint": "Checkpoint.", "evaluation": "Evaluation."},
}
JOBS = {  # train.py's options of each kind of job
    "ddp": (),
    "sharded": ("--sharded",),
    "pieces": ("--pieces", "4"),
}
LEAD = (0.13, 0.31)  # of the step: what is drawn; what comes of it lies between 10 and 40 %


@dataclasses.dataclass
class Label:
    """What a run is given."""

    kind: str
    rank: int
    lead: float  # wanted, a share of the step
    threads: int = 1
    variant: str = ""
    job: str = "ddp"

    @property
    def cause(self):
        return CAUSES.get(self.kind)

    def __str__(self):
        of_job = "" if self.job == "ddp" else f"{self.job}: "
        if self.kind == "healthy":
            return of_job + "healthy"
        words = [of_job + self.kind, self.variant, "2 threads" if self.threads == 2 else ""]
        if self.kind in ("isa", "memory"):
            return f"{' '.join(filter(None, words[:2]))} (rank {self.rank})"
        where = "" if self.kind == "both" else f"rank {self.rank}, "
        return f"{' '.join(filter(None, words))} ({where}{100 * self.lead:.0f} %)"


def labels(runs, rng, jobs=("ddp",)):
    """So many labels in the proportions of KINDS (largest remainders), in a random order.

    Of `jobs` each run gets one; a rank of a sharded job does nothing alone.
    """
    total = sum(KINDS.values())
    shares = {kind: runs * count / total for kind, count in KINDS.items()}
    counts = {kind: int(share) for kind, share in shares.items()}
    by_remainder = sorted(KINDS, key=lambda kind: (counts[kind] - shares[kind], kind not in CAUSES))
    for kind in by_remainder[: runs - sum(counts.values())]:
        counts[kind] += 1
    made = []
    for kind, count in counts.items():
        for number in range(count):
            label = Label(kind, rng.randrange(2), rng.uniform(*LEAD))
            if kind in ("quota", "both"):
                label.threads = 1 + number % 2 if kind == "quota" else 1
                label.variant = rng.choice(("on the pod", "on the container"))
            if kind == "loader":
                label.variant = ("waits", "computes")[number % 2]
            if kind == "callback":
                label.variant = ("waits", "computes")[number % 2]
            if kind == "storage":
                label.variant = ("reads", "mapped")[number % 2]
            if kind == "isa":
                label.variant = ("AVX2", "SSE41")[number % 2]
            if kind == "gc":
                label.variant = f"every {rng.choice((1, 2, 3))} steps"
            if kind in STALLS:
                label.variant = f"every {rng.randrange(20, 61)} steps"
            made.append(label)
    for label in made:
        of_kind = [job for job in jobs if job != "sharded" or label.kind not in STALLS] or ["ddp"]
        label.job = rng.choice(of_kind) if len(of_kind) > 1 else of_kind[0]
    rng.shuffle(made)
    return made


@dataclasses.dataclass
class Outcome:
    """What the verdict was, beside the label."""

    judgement: str  # right, missed, wrong, named, fine, unanswered
    said: str
    also: str = ""


def made_stalls(answer):
    """Of the groups of stalls that ranks are named for: (ranks, where they stood)."""
    stalls = answer["stalls"] or {"groups": [], "total_ns": 1}
    large = [one for one in stalls["groups"] if one["total_longer_ns"] * 20 >= stalls["total_ns"]]
    made = [group for group in large if group["made_by"] == "ranks"]
    return [(group["ranks"], (group["python"] or {}).get("place") or "") for group in made]


def judge_stalls(label, answer):
    """Of a rank that makes stalls: whether it is said, and nothing else."""
    made = made_stalls(answer)
    others = [rank["rank"] for rank in answer["verdict"]["ranks"] if rank["causes"]]
    others = [rank for rank in others if rank != label.rank]
    if others:
        return Outcome("wrong", f"rank {others[0]} is named for a cause")
    if not made:
        return Outcome("missed", answer["verdict"]["kind"])
    ranks, place = made[0]
    rhythm = answer["stalls"]["groups"][0]["every_steps"]
    said = f"ranks {ranks}, every {rhythm} steps, {place}"
    right = ranks == [label.rank] and rhythm in (None, int(label.variant.split()[1]))
    right = right and (not place or place.startswith(PLACES[label.kind]))
    return Outcome("right" if right else "wrong", said)


def judge_operator(label, rank):
    """Of a late rank, in which operator most of it is: whether that is so; None: it is not said."""
    longer = rank["longer_work"]
    if not longer or longer["longer_ns"] * 2 < rank["unexplained_ns"]:
        return None
    operators = longer["operators"]
    where = f"longer in {operators[0]['operator']}" if operators else "longer in all operators"
    said = f"rank {rank['rank']} {where}"
    if said == f"rank {label.rank} {label.cause}":
        return Outcome("right", said)
    mine = rank["rank"] == label.rank
    return Outcome("wrong" if mine and label.kind in NOT_IN_OPERATORS else "fine", said)


def judge_memory(label, ranks):
    """Of a rank that gives memory back: whether page faults are said to be most of its lead."""
    for rank in ranks:
        faults = rank["page_faults"]
        if faults and faults["more_ns"] * 2 >= rank["unexplained_ns"]:
            judgement = "right" if rank["rank"] == label.rank else "wrong"
            return Outcome(judgement, f"rank {rank['rank']} {label.cause}")
    return Outcome("missed", "no page faults")


def judge(label, answer):
    """Compares a label with the JSON of `syncline why`."""
    if answer is None or answer["status"] != "answered":
        why = "no JSON" if answer is None else f"{answer['status']}: {answer['reason']}"
        text = "" if answer is None else f" {answer['message']}"
        return Outcome("unanswered", why + text)
    if label.kind in STALLS:
        return judge_stalls(label, answer)
    for ranks, _ in made_stalls(answer):
        if label.cause is None or ranks != [label.rank]:
            return Outcome("wrong", f"ranks {ranks} make stalls")
    verdict = answer["verdict"]
    places = {rank["rank"]: rank["python"] for rank in verdict["ranks"]}
    places = {rank: python for rank, python in places.items() if (python or {}).get("place")}
    for rank, python in places.items():
        wanted = PLACES.get(label.kind) if rank == label.rank else None
        said = [python["place"], python["within"] or ""]  # and what is called there
        if wanted is None or not any(where.startswith(wanted) for where in said):
            return Outcome("wrong", f"rank {rank} stands in {python['place']}")
    located = list(filter(None, (judge_operator(label, rank) for rank in verdict["ranks"])))
    for one in located:
        if one.judgement == "wrong":
            return one
    if label.kind == "denormal" and not any(rank["causes"] for rank in verdict["ranks"]):
        return located[0] if located else Outcome("missed", verdict["kind"])
    if label.kind == "memory" and not any(rank["causes"] for rank in verdict["ranks"]):
        return judge_memory(label, verdict["ranks"])
    if label.kind in STANDS and not any(rank["causes"] for rank in verdict["ranks"]):
        said = f"rank {label.rank} {label.cause}"
        # Python that computes may be all that is known.
        python = [r["rank"] for r in verdict["ranks"] if (r["python"] or {}).get("kept_more")]
        if not places and label.variant == "computes" and python == [label.rank]:
            return Outcome("right", f"rank {label.rank} runs Python")
        return Outcome("right", said) if places else Outcome("missed", verdict["kind"])
    named = [rank for rank in verdict["ranks"] if rank["causes"]]
    if verdict["kind"] != "cause" or not named:
        return Outcome("missed" if label.cause else "fine", verdict["kind"])
    first = named[0]
    said = f"rank {first['rank']} {first['causes'][0]['cause']}"
    also = ", ".join(
        [one["cause"] for one in first["causes"][1:]]
        + [f"rank {rank['rank']} {rank['causes'][0]['cause']}" for rank in named[1:]]
    )
    if not label.cause:
        return Outcome("named", said, also)
    right = len(named) == 1 and said == f"rank {label.rank} {label.cause}"
    return Outcome("right" if right else "wrong", said, also)
