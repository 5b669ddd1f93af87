# SPDX-License-Identifier: Apache-2.0
"""A program that trains, with process groups that Syncline's hook is made to call larger.

Usage: bench_why_job.py PROGRAM ARGUMENTS...

What the hook writes of a group then has a rank and a size that no other four bytes of a trace
are, so that scripts/bench_why.py can put others in their places.
"""

import os
import runpy
import sys
import time

RANK, SIZE = 0x5CA1E000, 0x5CA1EFFF  # RANK + the process's own
RANKS = "0-1023"
HOOK_LIMIT_S = 10


def enlarge_groups(hook):
    written = hook.native.group

    def group(name, description, _ranks, rank, _size, sequence):
        written(name, description, RANKS.encode(), RANK + rank, SIZE, sequence)

    hook.native.group = group


def main():
    import torch  # noqa: F401  (the hook begins with it)

    deadline = time.monotonic() + HOOK_LIMIT_S
    start = sys.modules["syncline_torch"].start
    while not hasattr(start, "hook"):
        if time.monotonic() > deadline:
            sys.exit("bench_why_job: Syncline's hook does not begin; `syncline run` starts it")
        time.sleep(0.05)
    enlarge_groups(start.hook)
    del sys.argv[0]
    sys.path[0] = os.path.dirname(sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
