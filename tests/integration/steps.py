# SPDX-License-Identifier: Apache-2.0
"""Lays the worker's groups of operations against the master's training steps.

In one step of the two-partition job the worker runs a fixed number of oneDNN operations, and all
of them causally inside the step. So on a true timeline the k-th group lies inside the k-th step for
every k, with one shift between the numberings; on a wrong one it does not.
"""


def group_by_step(operations, steps):
    """Cuts the worker's operations (sorted by begin) into one group per step, without looking at
    when the steps were: where the largest pauses are. Returns (size, groups); incomplete groups at
    the ends are left out."""
    size = round(len(operations) / max(1, count_overlapping(operations, steps)))
    pauses = [0] * size
    for index in range(1, len(operations)):
        pauses[index % size] += operations[index].begin_ns - operations[index - 1].end_ns
    first = pauses.index(max(pauses))
    return size, [
        operations[at : at + size] for at in range(first, len(operations) - size + 1, size)
    ]


def count_overlapping(operations, steps):
    """How many whole steps the stretch of time holds that the operations span: durations only."""
    stretch = operations[-1].end_ns - operations[0].begin_ns
    period = (steps[-1].begin_ns - steps[0].begin_ns) / (len(steps) - 1)
    return round(stretch / period)


def inside(group, step, shift_ns=0):
    return (
        step.begin_ns <= group[0].begin_ns + shift_ns and group[-1].end_ns + shift_ns <= step.end_ns
    )


def fitting_shifts(groups, steps, reach=20):
    """The shifts s for which group k lies inside step k + s, for every k that has such a step."""
    fitting = []
    for shift in range(-reach, reach + 1):
        pairs = [
            (group, steps[k + shift])
            for k, group in enumerate(groups)
            if 0 <= k + shift < len(steps)
        ]
        if len(pairs) >= min(len(groups), len(steps)) - reach and all(
            inside(g, s) for g, s in pairs
        ):
            fitting.append(shift)
    return fitting


def crossing_share(groups, steps):
    """The share of groups, of those within the steps' stretch, that lie inside no step."""
    relevant = [
        g for g in groups if steps[0].begin_ns <= g[0].begin_ns and g[-1].end_ns <= steps[-1].end_ns
    ]
    crossing = [g for g in relevant if not any(inside(g, s) for s in steps)]
    return len(crossing) / len(relevant)
