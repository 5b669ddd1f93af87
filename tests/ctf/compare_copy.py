#!/usr/bin/env python3
"""Copies CTF traces with every time moved, and compares what babeltrace2 reads in both.

compare_copy.py CTF_COPY TRACE...

Every event must be there with the same fields, later by exactly the shift. Exits 1 and shows the
first differences; 77 (skipped) when babeltrace2 is not installed.
"""

import collections
import os
import re
import subprocess
import sys
import tempfile

from compare import require_babeltrace2

SHIFT_NS = 1_234_567_890_123
LINE = re.compile(r"^\[(\d+)\] (?:\S+ )?(\S+:\S+: .*)$")  # the host name between them differs


def events_of(trace):
    """Lines without host name, by babeltrace2, as a multiset of (time, text)."""
    command = ["babeltrace2", "--clock-cycles", "--no-delta", trace]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    found = collections.Counter()
    for line in result.stdout.splitlines():
        match = LINE.match(line)
        assert match, line
        found[int(match[1]), match[2]] += 1
    return found


def main():
    require_babeltrace2()
    copy, traces = sys.argv[1], sys.argv[2:]
    total = 0
    for trace in traces:
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out")
            subprocess.run([copy, trace, out, str(SHIFT_NS)], check=True, capture_output=True)
            moved = events_of(out)
        expected = collections.Counter()
        for (time_ns, text), count in events_of(trace).items():
            expected[time_ns + SHIFT_NS, text] += count
        missing, extra = expected - moved, moved - expected
        if missing or extra:
            print("missing:", *sorted(missing)[:5], "extra:", *sorted(extra)[:5], sep="\n  ")
            return 1
        total += sum(moved.values())
    print(f"{total} events are equal in the copies")
    return 0 if total else 1


if __name__ == "__main__":
    sys.exit(main())
