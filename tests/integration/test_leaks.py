# SPDX-License-Identifier: Apache-2.0
"""Many recordings in a row: nothing piles up on the host. SYNCLINE_LEAK_RUNS says how many; without
it, as many as fit into half a minute, and ten at least."""

import os
import time

import pytest

from tests.integration.fleet import ticking
from tests.testbed import HostSpec

RUNS = int(os.environ.get("SYNCLINE_LEAK_RUNS", "0"))
RUNS_MIN, RUNS_S = 10, 30
# gRPC's pool adds threads when the machine is busy, at most two per processor, and keeps them. A
# leak adds one per recording.
POOL_THREADS = 5
WARM_UP = 2  # the first recordings load libraries, start threads, make pools

COUNT = """
for p in $(pgrep -f 'syncline-agent|lttng-sessiond|lttng-consumerd|ticker.py'); do
  n=$(cat /proc/$p/comm); echo $n.threads $(ls /proc/$p/task | wc -l)
  echo $n.descriptors $(ls /proc/$p/fd | wc -l)
done
echo shm $(find /dev/shm -type f | wc -l)
echo sessions $(lttng list 2>/dev/null | grep -c '^ *[0-9]*)')
echo recordings $(ls /opt/syncline/var/data/recordings | wc -l)
echo processes $(pgrep -c -f 'syncline|lttng')
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    with ticking(tmp_path_factory.mktemp("leaks"), [HostSpec("solo")], 37) as made:
        yield made


def count(host):
    found = {}
    for line in host.run(["bash", "-c", COUNT]).stdout.splitlines():
        key, number = line.split()
        found[key] = found.get(key, 0) + int(number)
    return found


def test_recordings_in_a_row_leave_nothing_behind(fleet):
    host = fleet.bed["solo"]
    for number in range(WARM_UP):
        fleet.record(f"warm-{number}", 0.3)
    before = count(host)
    begun, number = time.monotonic(), 0
    while number < (RUNS or RUNS_MIN) or (not RUNS and time.monotonic() - begun < RUNS_S):
        fleet.record(f"again-{number}", 0.1)
        number += 1
    print(f"{number} recordings in {time.monotonic() - begun:.0f} s")
    after = count(host)
    before["syncline-agent.threads"] += POOL_THREADS
    grown = {
        key: (before.get(key, 0), value)
        for key, value in after.items()
        if value > before.get(key, 0)
    }
    assert grown == {}
    assert after["recordings"] == 0 and after["sessions"] == 0
