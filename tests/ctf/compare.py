#!/usr/bin/env python3
"""Compares our decoding of CTF traces with babeltrace2's: the same bytes, every event, field and time.

compare.py CTF_DUMP TRACE...

Events of one timestamp have no order among streams, so lines are compared as multisets per timestamp.
Exits 1 and shows the first differences; 77 (skipped) when babeltrace2 is not installed.
"""
import collections
import re
import shutil
import subprocess
import sys

LOG_LEVEL = re.compile(r"^(\[\d+\]) (?:TRACE_\w+ \(\d+\) |\(\d+\) )?")
EMPTY_SCOPE = re.compile(r", \{ \}|: \{ \}")


def normal(line):
    """Scopes without a field are printed by one of the two only; log levels by babeltrace2 only."""
    line = LOG_LEVEL.sub(r"\1 ", line.rstrip("\n"))
    return EMPTY_SCOPE.sub(lambda match: ": " if match[0][0] == ":" else "", line).rstrip()


def lines_of(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if result.returncode not in (0, 3):
        sys.exit(f"{command[0]} failed ({result.returncode}): {result.stderr.decode(errors='replace')}")
    text = result.stdout.decode(errors="surrogateescape")
    return collections.Counter(normal(line) for line in text.split("\n") if line)


def main():
    if shutil.which("babeltrace2") is None:
        print("skipped: babeltrace2 is not installed")
        return 77
    dump, traces = sys.argv[1], sys.argv[2:]
    theirs = lines_of(["babeltrace2", "--clock-cycles", "--no-delta", "-f", "loglevel", *traces])
    ours = lines_of([dump, *traces])
    if not theirs:
        sys.exit("babeltrace2 found no event: nothing was compared")
    missing, extra = theirs - ours, ours - theirs
    for name, lines in (("only babeltrace2", missing), ("only ours", extra)):
        for line in sorted(lines)[:5]:
            print(f"{name}: {line}")
    print(f"{sum(theirs.values())} events of babeltrace2, {sum(ours.values())} of ours, "
          f"{sum(missing.values())} missing, {sum(extra.values())} extra")
    return 1 if missing or extra else 0


if __name__ == "__main__":
    sys.exit(main())
