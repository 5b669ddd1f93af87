#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies CTF traces with every time moved, and compares what babeltrace2 reads in both.

compare_copy.py CTF_COPY CTF_TRANSLITERATE TRACE...

Every event must be there with the same fields, later by exactly the shift; so too in a copy of the
trace with its metadata in CTF 2's words, which babeltrace2 could not read. Exits 1 and shows the
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
    copy, transliterate, traces = sys.argv[1], sys.argv[2], sys.argv[3:]
    total = 0
    for trace in traces:
        expected = collections.Counter()
        for (time_ns, text), count in events_of(trace).items():
            expected[time_ns + SHIFT_NS, text] += count
        with tempfile.TemporaryDirectory() as folder:
            ctf2 = os.path.join(folder, "ctf2")
            subprocess.run([transliterate, trace, ctf2], check=True)
            for source in (trace, ctf2):
                out = os.path.join(folder, "out of " + os.path.basename(source))
                subprocess.run([copy, source, out, str(SHIFT_NS)], check=True, capture_output=True)
                moved = events_of(out)
                missing, extra = expected - moved, moved - expected
                if missing or extra:
                    print(source, "missing:", *sorted(missing)[:5], sep="\n  ")
                    print("extra:", *sorted(extra)[:5], sep="\n  ")
                    return 1
                total += sum(moved.values())
    print(f"{total} events are equal in the copies")
    return 0 if total else 1


if __name__ == "__main__":
    sys.exit(main())
