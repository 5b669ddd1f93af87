# SPDX-License-Identifier: Apache-2.0
"""`syncline why` on a real job with a real fault: one rank's container gets too little CPU."""

import json
import os
import re

import pytest

from tests.integration.fleet import Fleet, load
from tests.testbed import HostSpec, Testbed, TestbedError, faults
from tests.testbed.machine import REPOSITORY
from tests.testbed.network import Dropping

TORCH = os.path.join(REPOSITORY, ".venv-torch")
SLOW_RANK = 1
CPUS = 0.55  # it needs about 0.9


@pytest.fixture(scope="module")
def throttled(tmp_path_factory):
    """(fleet, control groups): the job trains, and one rank of it is throttled.

    Two recordings of it from before that are in the fleet's directory: `before`, `before-2`.
    """
    if not os.path.isdir(TORCH):
        pytest.skip("no .venv-torch: scripts/setup --torch makes it")
    try:
        faults.check_control_groups()
    except TestbedError as error:
        pytest.skip(str(error))
    specs = [HostSpec("alpha"), HostSpec("beta")]
    binds = {"/opt/torch": TORCH}
    with faults.ControlGroups() as groups, Testbed(specs, seed=23, binds=binds) as bed:
        for host in bed.hosts:
            groups.admit(host)
        fleet = Fleet(bed, tmp_path_factory.mktemp("why"))
        fleet.up()
        command = "env GLOO_SOCKET_IFNAME=eth0 /opt/torch/bin/python train.py --report-every 10"
        fleet.fab(
            *("launch", "--copy", faults.EXAMPLE, "--ready", "step 20:"),
            *("--command", faults.job_line(groups, command)),
        )
        for run in ("before", "before-2"):
            fleet.syncline("record", *fleet.fleet_arguments(), "--for", "14s", "--out", run)
        groups.limit(SLOW_RANK, CPUS)
        yield fleet, groups
        fleet.fab("down")


def rows_of(table):
    """{row: [tenths of a ms of each rank]} of what is printed as 'mean of a step, ms'."""
    lines = table.partition("mean of a step, ms")[2].splitlines()[1:]
    rows = {}
    for line in lines:
        found = re.fullmatch(r"  (\S.*?)((?: +-?\d+\.\d)+)", line)
        if not found:
            break
        rows[found[1]] = [round(float(number) * 10) for number in found[2].split()]
    return rows


def test_a_throttled_container_is_named_with_its_group(throttled):
    fleet, groups = throttled
    run = os.path.join(fleet.work, "run")
    before = groups.statistics(SLOW_RANK)
    said = fleet.syncline(
        *("why", *fleet.fleet_arguments(), "--for", "12s", "--out", run, "--progress", "never")
    ).stdout
    assert groups.statistics(SLOW_RANK)["nr_throttled"] > before["nr_throttled"] + 40

    # The recording is whole.
    nodes = load(os.path.join(run, "recording.json"))["nodes"]
    assert [node["state"] for node in nodes] == ["complete", "complete"]

    # Nothing is lost or added between what a rank's step is made of.
    rows = rows_of(said)
    steps = rows.pop("step")
    assert len(steps) == 2 and [sum(column) for column in zip(*rows.values())] == steps, said
    assert rows["throttled"][1 - SLOW_RANK] == 0 < rows["throttled"][SLOW_RANK], said

    answer = json.loads(fleet.run(["sh", "-c", f"syncline why {run} --json 2>/dev/null"]).stdout)
    assert (answer["format_version"], answer["status"], answer["reason"]) == (1, "answered", None)
    assert answer["steps"]["judged"] >= 60 and answer["lost_events"] == 0
    verdict = answer["verdict"]
    assert verdict["kind"] == "cause" and verdict["ranks"], verdict
    first = verdict["ranks"][0]
    assert (first["rank"], first["node"], first["late"]) == (SLOW_RANK, "beta", True)
    cause = first["causes"][0]
    assert cause["cause"] == "throttled" and cause["amount_ns"]["lo"] > 0
    # The quota is the outer group's; the job runs in the inner one.
    assert cause["group"] == groups.outer(SLOW_RANK) and cause["group_version"] == 1
    assert cause["quota_ns"] == round(CPUS * 1e8) and cause["period_ns"] == 100_000_000
    assert cause["group"] in said
    for rank in answer["ranks"]:
        assert sum(rank["parts"].values()) == rank["step_ns"]


def test_against_the_recordings_before_the_throttled_part_is_what_changed(throttled):
    fleet, _ = throttled
    fleet.syncline("record", *fleet.fleet_arguments(), "--for", "14s", "--out", "after")
    exceeded = f"rank:{SLOW_RANK}.throttled > +5%"
    code, answer = fleet.compare("after", "before", "step > +5%", exceeded, "input > +5%")
    assert code == 4, (answer["limits"], answer["now"], answer["before"])
    assert [limit["state"] for limit in answer["limits"]] == ["above", "above", "not_above"]
    assert answer["taken_away_known"] is True
    parts = answer["ranks"][SLOW_RANK]["parts"]
    wait = parts.pop("wait_and_transfer")
    most = max(parts, key=lambda part: parts[part]["change_ns"]["lo"])
    assert most == "throttled" and wait["change_ns"]["est"] < parts[most]["change_ns"]["est"]
    assert answer["parts"]["compute"]["before_ns"] > 0

    # Nothing was done between these two: whatever they differ by, it is no limit's 25 %.
    code, answer = fleet.compare("before-2", "before", "step > +25%")
    assert (code, answer["status"]) == (0, "compared"), answer
    # And what is faster is no failure.
    assert fleet.compare("before", "after", "step > +5%")[0] == 0


def asked(fleet, run):
    """(text, answer) of `why`."""
    said = " ".join(fleet.syncline("why", run).stdout.split())
    return said, json.loads(
        fleet.run(["sh", "-c", f"syncline why {run} --json 2>/dev/null"]).stdout
    )


def test_a_network_that_drops_packets_is_said(throttled):
    fleet, groups = throttled
    _, before = asked(fleet, "before")
    assert before["network"] == []
    groups.unlimited()
    with Dropping(fleet.bed["beta"], None, 0.02):
        fleet.syncline("record", *fleet.fleet_arguments(), "--for", "8s", "--out", "dropped")
    said, answer = asked(fleet, "dropped")
    lost = [one for one in answer["network"] if one["kind"] == "retransmitted"]
    assert [(one["link"]["from"]["rank"], one["link"]["to"]["rank"]) for one in lost] == [(0, 1)]
    assert "NETWORK" in said and "from rank 0 (alpha) to rank 1 (beta) were retransmitted" in said


def test_what_a_hypervisor_takes_is_said_and_is_no_sleep(throttled):
    fleet, groups = throttled
    groups.unlimited()
    with faults.Stealing(fleet.bed["beta"], groups, SLOW_RANK):
        fleet.syncline("record", *fleet.fleet_arguments(), "--for", "12s", "--out", "stolen")
    said, answer = asked(fleet, "stolen")
    (late,) = answer["verdict"]["ranks"]
    assert (late["rank"], late["late"], late["causes"]) == (SLOW_RANK, True, []), late
    steal = late["steal"]
    assert 0.2 < steal["share"] < 0.35 and steal["others_share"] < 0.1, steal
    assert 0.5 < steal["more_ns"] / late["lead_ns"]["est"] < 1.5, late
    # In truth it stood still for that time: what is left is no sleep.
    assert late["processor"]["asleep_ns"] < steal["more_ns"] / 2, late
    assert "may be a part of it: a hypervisor took" in said and "the rank sleeps" not in said, said
    assert "NEXT move node beta to a less busy host" in said, said
