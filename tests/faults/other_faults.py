# SPDX-License-Identifier: Apache-2.0
"""Cells beside the matrix: what programs do that is hard to record, and little shared memory."""

import os
import signal

from tests.faults import truth
from tests.faults.stage import of_target, processes, wait_until

# What the program on the victim is started with instead.
PROGRAMS = {
    "fork-storm": ("--fork-ms", "20"),
    "300-threads": ("--threads", "300", "--period-us", "50000"),
    "10-kB-names": ("--name-bytes", "10000"),
}
SIGNALS = {"exec": signal.SIGUSR1, "close-range": signal.SIGUSR2}
SIZES_KIB = {"500-KiB": 500, "1-MiB": 1 << 10, "2-MiB": 2 << 10, "4-MiB": 4 << 10,
             "16-MiB": 16 << 10}


class Done:
    """A fault that has happened, as scenario.py looks at it."""

    problem = ""

    def __init__(self, undo=None):
        self._undo = undo

    def finish(self):
        if self._undo:
            self._undo()
            self._undo = None
        return False


def ends_program(cell):
    """Whether the cell replaces the program afterwards."""
    return cell.fault in PROGRAMS


def prepare(stage, cell):
    """Before the recording."""
    if cell.fault in PROGRAMS:
        stage.end_program(stage.victim)
        stage.start_program(stage.victim, *PROGRAMS[cell.fault])


def inject(stage, cell):
    """At the moment."""
    if cell.fault in SIGNALS:
        return signal_program(stage, cell)
    if cell.fault in SIZES_KIB:
        return shrink(stage, SIZES_KIB[cell.fault])
    if cell.fault == "full":
        return fill(stage)
    return Done(lambda: back_to_normal(stage))


def back_to_normal(stage):
    stage.end_program(stage.victim)
    stage.start_program(stage.victim)


def signal_program(stage, cell):
    """The program says in its truth that it has done it."""
    (program,) = of_target("program", processes(stage.victim))
    which = {"exec": 1, "close-range": 2}[cell.fault]
    path = stage.newest_truth(stage.victim)
    before = truth.counts(path)[which]
    os.kill(program.pid, SIGNALS[cell.fault])
    done = Done()
    try:
        wait_until(lambda: truth.counts(path)[which] > before, 5, "done")
    except AssertionError:
        done.problem = "the fault did not happen: the program has not done it"
    return done


def shrink(stage, kib):
    """So much of /dev/shm is free from now on."""
    shm = stage.outside(stage.victim, "/dev/shm")
    space = os.statvfs(shm)
    used_kib = (space.f_blocks - space.f_bfree) * space.f_frsize >> 10
    resize(stage, f"{used_kib + kib}k")
    return Done(lambda: resize(stage, "50%"))


def resize(stage, size):
    stage.victim.run(["mount", "-o", f"remount,size={size}", "/dev/shm"])


def fill(stage):
    """Somebody else takes all of /dev/shm while it is recorded."""
    filler = "/dev/shm/filler"
    stage.victim.run(["sh", "-c", f"head -c 64M /dev/zero >{filler}"])
    space = os.statvfs(stage.outside(stage.victim, "/dev/shm"))
    resize(stage, f"{(space.f_blocks - space.f_bfree) * space.f_frsize >> 10}k")

    def empty():
        stage.victim.run(["rm", filler])
        resize(stage, "50%")

    return Done(empty)
