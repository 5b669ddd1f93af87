#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our decoding of CTF traces with babeltrace2's: every event, field and time.

compare.py CTF_DUMP TRACE...

Events of one timestamp have no order among streams, so lines are compared as multisets.
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


def run(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    text = result.stdout.decode(errors="surrogateescape")
    error = "" if result.returncode in (0, 3) else \
        f"{command[0]} failed ({result.returncode}): {result.stderr.decode(errors='replace')}"
    return collections.Counter(normal(line) for line in text.split("\n") if line), error


def compare(dump, traces):
    """Differences, as text; and how many events were compared."""
    theirs, error = run(["babeltrace2", "--clock-cycles", "--no-delta", "-f", "loglevel", *traces])
    ours, our_error = run([dump, *traces])
    if error or our_error:
        return error + our_error, 0
    missing, extra = theirs - ours, ours - theirs
    report = [f"{name}: {line}\n"
              for name, lines in (("only babeltrace2", missing), ("only ours", extra))
              for line in sorted(lines)[:5]]
    if report:
        report.append(f"{sum(missing.values())} of {sum(theirs.values())} events differ\n")
    return "".join(report), sum(theirs.values())


def require_babeltrace2():
    if shutil.which("babeltrace2") is None:
        print("skipped: babeltrace2 is not installed")
        sys.exit(77)


def main():
    require_babeltrace2()
    differences, events = compare(sys.argv[1], sys.argv[2:])
    if not differences and events == 0:
        differences = "babeltrace2 found no event: nothing was compared"
    print(differences or f"{events} events are equal")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
