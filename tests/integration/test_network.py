# SPDX-License-Identifier: Apache-2.0
"""What is said of TCP connections, compared with what the network of simulated hosts did."""

import json
import os

import pytest

from tests.integration.fleet import Fleet
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY
from tests.testbed.network import Dropping

JOB = os.path.join(REPOSITORY, "tests", "integration", "network_job")
PORT = 5555
SECONDS = 4
DROPPED = 0.02
SLOW_MS = 10  # for each read of 100 kB


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    specs = [HostSpec("master-0", role="master"), HostSpec("worker-0", role="worker")]
    with Testbed(specs, seed=83) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("network"))
        made.up()
        made.fab(
            *("launch", "--copy", JOB, "--ready", "talking"),
            *("--command", "python3 talk.py {role} {master}"),
        )
        yield made
        made.fab("down")


def network(fleet, name):
    """(what the report says of what the worker sends to the master, its findings)."""
    run = fleet.record(name, SECONDS)
    said = json.loads(fleet.syncline("report", run, "--json").stdout)["network"]
    (link,) = (
        one
        for one in said["links"]
        if one["from"]["node"] == "worker-0" and one["sent_bytes"] > 1e6
    )
    assert link["to"]["node"] == "master-0", link
    return link, said["findings"]


def test_a_network_that_works_has_no_findings(fleet):
    link, findings = network(fleet, "plain")
    assert findings == []
    # 40 MB a second, in up to a second more than the window.
    assert 0.5 * SECONDS * 40e6 < link["sent_bytes"] < 1.3 * (SECONDS + 1) * 40e6
    assert 0 < link["min_rtt_us"] <= link["median_rtt_us"] < 20_000


def test_what_the_network_drops_is_retransmitted(fleet):
    with Dropping(fleet.bed["master-0"], PORT, DROPPED) as dropping:
        link, findings = network(fleet, "dropped")
        dropped = dropping.dropped_bytes() / dropping.seen_bytes()
    assert dropped > DROPPED / 3
    retransmitted = link["retransmitted_bytes"] / link["sent_bytes"]
    assert 0.5 * dropped < retransmitted < 2 * dropped, (dropped, link)
    (finding,) = findings
    assert finding["kind"] == "retransmitted"
    assert finding["link"]["from"]["node"] == "worker-0"
    told = fleet.syncline("report", os.path.join(fleet.work, "dropped")).stdout
    assert "were retransmitted" in told, told


def test_a_receiver_that_reads_late_is_a_full_window(fleet):
    master = fleet.bed["master-0"]
    pid = master.run(["pgrep", "-f", "^[^ ]*python3 talk.py"]).stdout.split()[0]
    command = f"echo {SLOW_MS} > /proc/{pid}/cwd/slow_ms"
    master.run(["sh", "-c", command])
    try:
        link, findings = network(fleet, "late")
    finally:
        master.run(["sh", "-c", command.replace(str(SLOW_MS), "0", 1)])
    assert link["window_full_us"] > 0.5 * link["busy_us"], link
    assert link["busy_us"] > 0.8 * SECONDS * 1e6
    # That the program reads late is not the network's doing, even if its kernel drops segments.
    assert findings == []
