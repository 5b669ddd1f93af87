# SPDX-License-Identifier: Apache-2.0
"""Measures what the library before socket calls costs and prints it beside what it may be.

Usage: net_bench.py BUILD_DIRECTORY
Recorded calls are compared with raw LTTng-UST events of the same bytes in one process, interleaved,
into one snapshot session (buffers that overwrite, so that no consumer takes part and nothing is
discarded).
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
    subprocess.run(["ip", "link", "set", "lo", "up"], check=False)
    fixture = lttng_fixture.Fixture(sys.argv[1])
    program = os.path.join(fixture.build, "bench/net_bench")
    preload = os.path.join(fixture.build, "lib/libsyncline_net.so")
    environment = dict(fixture.environment, LD_PRELOAD=preload, LTTNG_UST_REGISTER_TIMEOUT="20000")
    try:
        fixture.start_daemon()
        off = figures(
            subprocess.run(
                [program, "off"], env=environment, check=True, capture_output=True, text=True
            ).stdout
        )
        fixture.lttng("create", "bench", "--snapshot", "-o", os.path.join(fixture.directory, "out"))
        channel = "-u -s bench --subbuf-size 4M --num-subbuf 4 bench".split()
        fixture.lttng("enable-channel", *channel)
        for events in ("syncline:*", "syncline_net:*", "syncline_bench_net:*"):
            fixture.lttng("enable-event", "-u", "-s", "bench", "-c", "bench", events)
        process = subprocess.Popen(
            [program, "on"],
            env=environment,
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
        print(f"{name:18} {median:8.2f} ns   middle half {low:.2f} .. {high:.2f}")
    more_off = off["off_call"][0] - off["floor_off"][0]
    more_on = on["recorded_call"][0] - on["floor"][0] - on["raw_event"][0]
    other = on["recorded_other"][0] - on["floor"][0]
    print(f"off, more          {more_off:8.2f} ns   to reach: <= 30")
    print(f"recorded, beyond the raw event {more_on:8.2f} ns   to reach: <= 60")
    print(f"no TCP socket, while recording {other:8.2f} ns")


main()
