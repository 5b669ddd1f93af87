#!/usr/bin/env python3
"""Traces whose metadata is put into CTF 2's words must decode as before.

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


def differences(programs, trace):
    """What differs between `trace` and its transliteration, as text; and how many events it has."""
    with tempfile.TemporaryDirectory() as folder:
        other = os.path.join(folder, "ctf2")
        subprocess.run([programs[1], trace, other], check=True)
        with open(os.path.join(other, "metadata"), "rb") as metadata:
            assert metadata.read(1) == b"\x1e"
        expected, expected_losses = dump(programs[0], trace)
        found, losses = dump(programs[0], other)
    report = [f"{trace}: {len(expected)} events, {len(found)} in CTF 2"] \
        if len(expected) != len(found) else []
    for before, after in zip(expected, found):
        if before != after:
            report.append(f"{before.decode(errors='replace')}\n{after.decode(errors='replace')}")
    if losses != expected_losses:
        report.append(f"losses differ: {expected_losses}\n{losses}")
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
