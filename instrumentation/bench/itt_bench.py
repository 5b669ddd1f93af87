"""Measures the collector's cost and prints it beside what it may be.

Usage: itt_bench.py BUILD_DIRECTORY
Recorded pairs are compared with raw LTTng-UST events of the same bytes, in one process,
interleaved, into one
snapshot session (buffers that overwrite, so that no consumer takes part and nothing is discarded).
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import lttng_fixture  # noqa: E402


def figures(text):
    return {
        words[0]: tuple(map(float, words[1:]))
        for words in (line.split() for line in text.splitlines())
    }


def main():
    lttng_fixture.enter_namespaces()
    fixture = lttng_fixture.Fixture(sys.argv[1])
    program = os.path.join(fixture.build, "bench/itt_bench")
    try:
        off = figures(
            subprocess.run(
                [program, "off"],
                env=fixture.environment,
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
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
        process = subprocess.Popen(
            [program, "on"],
            env=fixture.environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        fixture.wait_for_blocks()
        fixture.lttng("start", "bench")
        fixture.set_gates(1)
        on = figures(process.communicate("go\n", timeout=120)[0])
    finally:
        fixture.close()
    for name, (median, low, high) in {**off, **on}.items():
        print(f"{name:22} {median:8.2f} ns   middle half {low:.2f} .. {high:.2f}")
    print(
        f"recorded / raw         {on['recorded_pair'][0] / on['raw_pair'][0]:8.3f}"
        "      to reach: <= 1.1"
    )
    print(f"off pair               {off['off_pair'][0]:8.2f} ns   to reach: <= 5")
    print(f"string handle look-up  {off['string_handle_lookup'][0]:8.2f} ns   to reach: <= 20")


main()
