#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces whose metadata is put into CTF 2's words, and from there back into CTF 1.8's, must decode
as before.

compare_ctf2.py CTF_DUMP CTF_TRANSLITERATE FIRST_SEED LAST_SEED   generated traces (generate.py)
compare_ctf2.py CTF_DUMP CTF_TRANSLITERATE TRACE...               given ones
"""
import os
import subprocess
import sys
import tempfile

import generate


def dump(program, trace):
    result = subprocess.run([program, trace], capture_output=True, check=False)
    assert result.returncode in (0, 3), result.stderr.decode(errors="replace")
    return result.stdout.splitlines(), result.stderr


def other_words(program, trace, out, begins_with):
    subprocess.run([program, trace, out], check=True)
    with open(os.path.join(out, "metadata"), "rb") as metadata:
        assert metadata.read(len(begins_with)) == begins_with


def differences(programs, trace):
    """What differs between `trace` and its transliterations, as text; how many events it has."""
    report = []
    expected, expected_losses = dump(programs[0], trace)
    with tempfile.TemporaryDirectory() as folder:
        new, old = os.path.join(folder, "ctf2"), os.path.join(folder, "ctf18")
        other_words(programs[1], trace, new, b"\x1e")
        other_words(programs[1], new, old, b"/* CTF 1.8 */")
        for other in (new, old):
            found, losses = dump(programs[0], other)
            words = os.path.basename(other)
            if len(expected) != len(found):
                report.append(f"{trace}: {len(expected)} events, {len(found)} in {words}")
            for before, after in zip(expected, found):
                if before != after:
                    lines = (line.decode(errors="replace") for line in (before, after))
                    report.append(f"{words}:\n" + "\n".join(lines))
            if losses != expected_losses:
                report.append(f"{words}: losses differ: {expected_losses}\n{losses}")
    return "\n".join(report[:5]), len(expected)


def main():
    programs, rest = sys.argv[1:3], sys.argv[3:]
    total, failed = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        traces = rest
        if rest[0].isdigit():
            traces = [os.path.join(folder, str(seed))
                      for seed in range(int(rest[0]), int(rest[1]) + 1)]
            for trace in traces:
                generate.generate(int(os.path.basename(trace)), trace)
        for trace in traces:
            report, events = differences(programs, trace)
            total += events
            failed += bool(report)
            if report:
                print(f"{os.path.basename(trace)}:\n{report}")
    print(f"{len(traces)} traces, {total} events compared, {failed} traces differ")
    return 1 if failed or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
