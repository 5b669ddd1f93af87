# SPDX-License-Identifier: Apache-2.0
"""A process that takes a share of the core it runs on, as a backup or an indexer would."""

import argparse
import time

SLICE_S = 0.008  # it computes at least so long at a time


def steal(share):
    """For ever: computes whenever it has had less than its share of the time so far."""
    begin, before = time.monotonic(), time.thread_time()
    while True:
        had = time.thread_time() - before
        ahead_s = had / share - (time.monotonic() - begin)
        if ahead_s > 0:
            time.sleep(ahead_s)
        if ahead_s < -1:  # it was kept from its share: it does not make up for what is long past
            begin, before = time.monotonic(), time.thread_time()
        end = time.thread_time() + SLICE_S
        while time.thread_time() < end:
            pass


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, required=True, help="of the core, 0 to 1")
    parser.add_argument("--name", default="thief", help="what ps calls it")
    options = parser.parse_args()
    if not 0 < options.share <= 1:
        parser.error("--share is above 0 and at most 1")
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(options.name)
    steal(options.share)


if __name__ == "__main__":
    main()
