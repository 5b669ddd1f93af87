# SPDX-License-Identifier: Apache-2.0
"""The cells of the fault matrix: who is hit, how, and when; which cells cannot be, and why."""

import dataclasses
import fnmatch
import itertools
import re

TARGETS = (
    "agent",
    "session-daemon",
    "consumer-daemon",
    "session-child",
    "guard",
    "program",
    "coordinator",
)
FAULTS = ("KILL", "STOP", "TERM")  # STOP: for STOP_S, then SIGCONT
MOMENTS = ("before", "prepare", "record", "stop", "fetch", "idle")
STOP_S = 8


@dataclasses.dataclass(frozen=True)
class Cell:
    """`target` is hit by `fault` at `moment`. Others than the matrix's have a name of their own."""

    target: str
    fault: str
    moment: str

    @property
    def name(self):
        return "-".join(filter(None, (self.target, self.fault, self.moment)))


# (target, moment): why there is nothing to hit. That it is so is tested where a cell would run.
NOT_APPLICABLE = {
    ("guard", "before"): "a guard begins with its recording's preparation",
    ("guard", "fetch"): "a guard ends with its recording's stop",
    ("guard", "idle"): "a guard ends with its recording's stop",
    ("coordinator", "before"): "the command that records has not begun",
    ("coordinator", "idle"): "the command that records has ended",
}

# What is known and left as it is (docs/known-limits.md): (cells, problem, the line there). Such a
# problem does not fail a cell; the table says it.
KNOWN = (
    (
        "session-daemon-KILL-prepare",
        r"left behind: (2 x consumer-daemon|\d+ KiB of /dev/shm)",
        "a killed session daemon can leave its consumer daemon",
    ),
    (
        "program-300-threads-record",
        r"right: in each of \d+ threads one call slept",
        "a thread's first recorded call can wait for locks of LTTng-UST and the C library",
    ),
    (
        "program-fork-storm-record",
        r"right: in each of \d+ threads one call slept",
        "a child's first recorded call can wait for locks of LTTng-UST and the C library",
    ),
)

# What else goes wrong, once each: cells of their own (other_faults.py).
OTHERS = (
    Cell("program", "exec", "record"),
    Cell("program", "fork-storm", "record"),
    Cell("program", "close-range", "record"),
    Cell("program", "close-range", "before"),
    Cell("program", "300-threads", "record"),
    Cell("program", "10-kB-names", "record"),
    Cell("shared-memory", "500-KiB", "before"),
    Cell("shared-memory", "1-MiB", "before"),
    Cell("shared-memory", "2-MiB", "before"),
    Cell("shared-memory", "4-MiB", "before"),
    Cell("shared-memory", "16-MiB", "before"),
    Cell("shared-memory", "full", "record"),
)

# The part for every day: where it was hard to get right. A program that is killed, and a command
# that is ended, are in tests/integration/test_misfortunes.py and test_interrupts.py.
QUICK = (
    "agent-KILL-prepare",
    "agent-KILL-record",
    "agent-TERM-record",
    "agent-KILL-fetch",
    "session-daemon-KILL-record",
    "session-daemon-TERM-idle",
    "consumer-daemon-KILL-record",
    "session-child-KILL-stop",
    "guard-KILL-record",
    "program-STOP-stop",
)


def matrix():
    return [Cell(*parts) for parts in itertools.product(TARGETS, FAULTS, MOMENTS)]


def everything():
    return matrix() + list(OTHERS)


def why_not(cell):
    """Why the cell is not applicable; "" when it is."""
    return NOT_APPLICABLE.get((cell.target, cell.moment), "")


def known(cell, problem):
    """Why the problem is no failure of the cell; "" when it is one."""
    for names, text, why in KNOWN:
        if fnmatch.fnmatchcase(cell.name, names) and re.search(text, problem):
            return why
    return ""


def choose(patterns=(), quick=False):
    """The cells whose names match one of the patterns (shell's), in the matrix's order."""
    cells = everything()
    if quick:
        cells = [cell for cell in cells if cell.name in QUICK]
    if patterns:
        cells = [c for c in cells if any(fnmatch.fnmatchcase(c.name, p) for p in patterns)]
    return cells
