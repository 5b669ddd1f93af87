# SPDX-License-Identifier: Apache-2.0
"""Measures the collector's cost and prints it beside what it may be.

Usage: itt_bench.py BUILD_DIRECTORY
Recorded pairs are compared with raw LTTng-UST events of the same bytes, in one process,
interleaved, into one
snapshot session (buffers that overwrite, so that no consumer takes part and nothing is discarded).
Where a process happens to have its stack and buffers moves both by some per cent: the ratio is the
median of several processes.
"""

import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import lttng_fixture  # noqa: E402

PROCESSES = 15


def figures(text):
    return {
        words[0]: tuple(map(float, words[1:]))
        for words in (line.split() for line in text.splitlines())
    }


def measure_recorded(fixture, program, other):
    process = subprocess.Popen(
        [program, "on", other],
        env=fixture.environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    fixture.wait_for_blocks()
    fixture.set_gates(1)
    return figures(process.communicate("go\n", timeout=120)[0])


def main():
    lttng_fixture.enter_namespaces()
    fixture = lttng_fixture.Fixture(sys.argv[1])
    program = os.path.join(fixture.build, "bench/itt_bench")
    other = os.path.join(fixture.build, "bench/libother_collector.so")
    try:
        off = {}
        for mode in (["none"], ["off", other]):
            run = subprocess.run(
                [program, *mode],
                env=fixture.environment,
                check=True,
                capture_output=True,
                text=True,
            )
            off.update(figures(run.stdout))
        fixture.start_daemon()
        fixture.lttng("create", "bench", "--snapshot", "-o", os.path.join(fixture.directory, "out"))
        fixture.lttng(
            "enable-channel",
            "-u",
            "-s",
            "bench",
            "--subbuf-size",
            "4M",
            "--num-subbuf",
            "4",
            "bench",
        )
        for events in ("syncline:*", "syncline_itt:*", "syncline_bench:*"):
            fixture.lttng("enable-event", "-u", "-s", "bench", "-c", "bench", events)
        fixture.lttng("start", "bench")
        recorded = [measure_recorded(fixture, program, other) for _ in range(PROCESSES)]
    finally:
        fixture.close()
    for name, (median, low, high) in off.items():
        print(f"{name:28} {median:8.2f} ns   middle half {low:.2f} .. {high:.2f}")
    for name in recorded[0]:
        medians = sorted(on[name][0] for on in recorded)
        print(
            f"{name:22} {statistics.median(medians):8.2f} ns   "
            f"{len(medians)} processes {medians[0]:.2f} .. {medians[-1]:.2f}"
        )
    ratios = sorted(on["recorded_pair"][0] / on["raw_pair"][0] for on in recorded)
    print(
        f"recorded / raw         {statistics.median(ratios):8.3f}      "
        f"processes {ratios[0]:.3f} .. {ratios[-1]:.3f}   to reach: <= 1.1"
    )
    added = sorted(
        (on["recorded_both_pair"][0] - on["recorded_pair"][0] - on["other_pair"][0]) / 2
        for on in recorded
    )
    print(
        f"beside another, a call {statistics.median(added):8.2f} ns   processes "
        f"{added[0]:.2f} .. {added[-1]:.2f} above the sum of both   to reach: <= 15"
    )
    added_off = (off["off_both_pair"][0] - off["off_pair"][0] - off["other_pair"][0]) / 2
    print(f"the same, off          {added_off:8.2f} ns   to reach: <= 15")
    print(f"off pair               {off['off_pair'][0]:8.2f} ns   to reach: <= 5")
    print(f"string handle look-up  {off['string_handle_lookup'][0]:8.2f} ns   to reach: <= 20")


main()
