# SPDX-License-Identifier: Apache-2.0
"""What `syncline why` says that a cause costs, beside what taking the cause away gives."""

import statistics

STUDENT_OF_4 = 3.18  # 95 %, three degrees of freedom: the phases are four pairs

def removal(means, answer):
    """COST beside what removal gives: {removed_ms, half_ms, said_ms, lo_ms, hi_ms, slowdown,
    said_slowdown}, or None where no cause has one.

    means: of the step in each phase: without the fault, with it, with it, without it, and so on.
    half_ms: of the 95 % interval of removed_ms, by pairs of phases.
    """
    ranks = answer["verdict"]["ranks"] if answer and answer["status"] == "answered" else []
    costs = [rank["cost_ns"] for rank in ranks if rank["causes"]]
    if len(costs) != 1 or not all(means):
        return None
    on = [ms for number, ms in enumerate(means) if number % 4 in (1, 2)]
    off = [ms for number, ms in enumerate(means) if number % 4 in (0, 3)]
    pairs = [with_it - without for with_it, without in zip(on, off)]
    removed_ms, on_ms, off_ms = map(statistics.fmean, (pairs, on, off))
    said = {name: costs[0][name] / 1e6 for name in ("est", "lo", "hi")}
    return {
        "removed_ms": removed_ms,
        "half_ms": STUDENT_OF_4 * statistics.stdev(pairs) / len(pairs) ** 0.5,
        "said_ms": said["est"],
        "lo_ms": said["lo"],
        "hi_ms": said["hi"],
        "slowdown": on_ms / off_ms,
        "said_slowdown": on_ms / max(on_ms - said["est"], 0.001),
    }


def say_removals(removals):
    """COST beside what removal gives: how often both agree, and by how much they differ."""
    if not removals:
        return
    agree = sum(
        one["lo_ms"] <= one["removed_ms"] + one["half_ms"]
        and one["removed_ms"] - one["half_ms"] <= one["hi_ms"]
        for one in removals
    )
    width_ms = statistics.median(2 * one["half_ms"] for one in removals)
    errors = sorted(abs(one["slowdown"] - one["said_slowdown"]) for one in removals)
    print(
        f"\nCOST, {len(removals)} runs: its interval and that of what removal gives overlap in "
        f"{agree} (removal's is {width_ms:.1f} ms wide, median); the slowdowns differ by "
        f"{statistics.median(errors):.3f} (median), {errors[-1]:.3f} at most, by no more than "
        f"0.05 in {sum(error <= 0.05 for error in errors)}"
    )
