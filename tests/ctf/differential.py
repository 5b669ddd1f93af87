#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generated traces of every CTF 1.8 type, decoded by us and by babeltrace2.

differential.py CTF_DUMP FIRST_SEED LAST_SEED
"""
import os
import sys
import tempfile

import compare
import generate


def main():
    compare.require_babeltrace2()
    dump, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    failed, total = 0, 0
    for seed in range(first, last + 1):
        with tempfile.TemporaryDirectory() as directory:
            trace = os.path.join(directory, "trace")
            generate.generate(seed, trace)
            differences, events = compare.compare(dump, [trace])
        total += events
        if differences:
            failed += 1
            print(f"seed {seed}:\n{differences}")
    print(f"{last - first + 1} traces, {total} events compared, {failed} traces differ")
    return 1 if failed or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
