# SPDX-License-Identifier: Apache-2.0
"""The critical path of ranks that wait for each other in turn, on two hosts.

The truth is put into the running job: how long each rank sleeps before each collective, and a large
collective. What a change saves is seen by the job's own clock.
"""

import json
import os
import re
import shutil
import statistics
import subprocess

import pytest

from tests.integration import perfetto
from tests.integration.fleet import Fleet, load
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY

TORCH = os.path.join(REPOSITORY, ".venv-torch")
JOB = os.path.join(REPOSITORY, "tests", "integration", "path_job")
JOBS = "/opt/syncline/var/jobs"
SECONDS = 4
LONGER_SECONDS = 10  # samples that are few, steps that are long
# Milliseconds that rank 0's loader sleeps before the first collective, and rank 0 before the
# second; the same of rank 1; megabytes of a third collective; and how they meet (train.py).
IN_TURN = (20, 5, 5, 20, 0, 0)
TOGETHER = (12, 13, 12, 13, 0, 0)
WITH_LARGE = (20, 5, 5, 20, 8, 0)
WITHOUT_INPUT = (0, 5, 5, 20, 0, 0)
PIPELINE = (20, 0, 0, 8, 0, 1)
WITH_BROADCAST = (20, 5, 5, 20, 0, 2)
BLOCKED = (5, 5, 5, 20, 0, 3)
EACH = (5, 5, 5, 5, 0, 4)
JOINED = (5, 5, 5, 5, 0, 5)
SILENT = (5, 5, 5, 5, 0, 6)
BESIDE = (5, 0, 5, 15, 0, 7)
# A sleep lasts longer than it should, and what has to be done meanwhile takes time on two cores.
NEAR_MS = 3
NEAR_BOTH_MS = 5  # of two recordings
JUDGED = re.compile(r"^step \d+: ([0-9.]+) ms$", re.MULTILINE)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    if not os.path.isdir(TORCH):
        pytest.skip("no .venv-torch: scripts/setup --torch makes it")
    specs = [HostSpec("host-a"), HostSpec("host-b")]
    job = str(tmp_path_factory.mktemp("job") / "path_job")
    shutil.copytree(JOB, job)
    library = os.path.join(job, "block.so")
    source = os.path.join(job, "block.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    with Testbed(specs, seed=91, binds={"/opt/torch": TORCH}) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("path"))
        made.up()
        made.fab(
            *("launch", "--job", "turns", "--copy", job, "--ready", "step 20:"),
            *("--command", "env GLOO_SOCKET_IFNAME=eth0 /opt/torch/bin/python train.py"),
        )
        yield made
        made.fab("down")


def log(fleet):
    return fleet.bed["host-a"].run(["cat", f"{JOBS}/turns.log"]).stdout


def answer(fleet, name, phases):
    """(recording, what `why` says of it, a step by the job's own clock in ms)."""
    words = " ".join(str(one) for one in phases)
    fleet.bed["host-a"].run(["sh", "-c", f"echo {words} > {JOBS}/turns/phases"])
    before = len(log(fleet))
    run = fleet.record(name, LONGER_SECONDS if name in ("blocked", "each") else SECONDS)
    # Of the first of them some steps were still of before.
    lasted = [float(one) for one in JUDGED.findall(log(fleet)[before:])][1:]
    assert len(lasted) >= 2, log(fleet)
    told = json.loads(fleet.syncline("why", run, "--json").stdout)
    assert told["status"] == "answered", told["message"]
    return run, told, statistics.median(lasted)


@pytest.fixture(scope="module")
def answers(fleet):
    return {
        name: answer(fleet, name, phases)
        for name, phases in (
            ("turns", IN_TURN),
            ("together", TOGETHER),
            ("large", WITH_LARGE),
            ("fast", WITHOUT_INPUT),
            ("pipeline", PIPELINE),
            ("broadcast", WITH_BROADCAST),
            ("blocked", BLOCKED),
            ("each", EACH),
            ("joined", JOINED),
            ("silent", SILENT),
            ("beside", BESIDE),
        )
    }


def ms(path, key):
    return path[key]["est"] / 1e6


def test_own_work_of_both_is_on_the_path_in_turn(answers):
    _, told, step_ms = answers["turns"]
    path = told["critical_path"]
    assert abs(ms(path, "step_ns") - step_ms) < NEAR_MS
    for rank in path["ranks"]:
        assert 20 <= rank["own_work_ns"]["est"] / 1e6 < 20 + NEAR_MS, path
    assert path["not_followed_ns"] == 0
    assert path["crossings"] > told["steps"]["judged"]
    assert path["proven"] > 0.9 * path["crossings"]


def test_a_slow_loader_is_named_though_its_rank_is_no_later(answers):
    _, told, before_ms = answers["turns"]
    _, fast, after_ms = answers["fast"]
    (named,) = told["verdict"]["ranks"]
    assert (named["rank"], named["late"]) == (0, False), named
    (cause,) = named["causes"]
    assert cause["cause"] == "input"
    # Of all of its input: what is left is what rank 1's takes.
    cost = cause["cost_ns"]["est"] / 1e6
    assert abs(cost - (before_ms - after_ms)) < NEAR_BOTH_MS, (cost, before_ms, after_ms)
    assert cost > 10
    assert abs(told["replay_error_ns"]) / 1e6 < 1
    assert 0 not in [one["rank"] for one in fast["verdict"]["ranks"]], fast["verdict"]


def test_a_rank_that_is_blocked_in_the_kernel_is_named_for_it(fleet, answers):
    run, told, step_ms = answers["blocked"]
    assert step_ms >= 25, step_ms
    (named,) = told["verdict"]["ranks"]
    assert (named["rank"], named["late"]) == (1, True), named
    cause = named["causes"][0]
    assert cause["cause"] == "blocked", named
    amount = cause["amount_ns"]
    assert amount["lo"] / 1e6 - 1 < 15 < amount["hi"] / 1e6 + 1, amount
    assert abs(amount["est"] / 1e6 - 15) < NEAR_BOTH_MS, amount
    assert cause["blocked"]["by"] == "samples" and cause["blocked"]["blocked_samples"] >= 10
    for rank, blocked_ms in ((0, 5), (1, 20)):
        parts = told["ranks"][rank]["parts"]
        assert abs(parts["blocked_ns"] / 1e6 - blocked_ms) < NEAR_BOTH_MS, parts
        # The loader's sleep is one that a signal ends.
        assert 5 - NEAR_MS < parts["input_ns"] / 1e6 < 5 + NEAR_MS, parts
    text = " ".join(fleet.syncline("why", run).stdout.split())
    assert "CAUSE it is blocked in the kernel for " in text, text
    # Sleep in an operator is none.
    _, turns, _ = answers["turns"]
    for rank in turns["ranks"]:
        assert rank["blocked_known"] and rank["parts"]["blocked_ns"] < 1e6, rank


def test_what_is_uneven_is_what_evening_it_out_saves(answers):
    _, uneven, before_ms = answers["turns"]
    _, even, after_ms = answers["together"]
    saved = ms(uneven["critical_path"], "uneven_ns") - ms(even["critical_path"], "uneven_ns")
    assert abs(saved - (before_ms - after_ms)) < NEAR_BOTH_MS, (saved, before_ms, after_ms)
    assert saved > 10


def test_a_large_collective_is_on_the_path_for_what_it_costs(answers):
    _, without, before_ms = answers["turns"]
    _, large, after_ms = answers["large"]
    more = ms(large["critical_path"], "collectives_ns")
    more -= ms(without["critical_path"], "collectives_ns")
    assert abs(more - (after_ms - before_ms)) < NEAR_BOTH_MS, (more, before_ms, after_ms)
    assert more > NEAR_MS


def test_small_collectives_are_said_with_what_joining_them_saves(fleet, answers):
    run, told, before_ms = answers["each"]
    _, joined, after_ms = answers["joined"]
    small = told["critical_path"]["small_collectives"]
    assert 18 <= small["count"] <= 21 and small["largest_bytes"] == 8192, small
    saved = small["saved_ns"]
    # The calls between them are saved as well. Twenty collectives take what the machine makes of
    # them, and it is not the same machine in both recordings.
    near = max(NEAR_BOTH_MS, 0.15 * before_ms)
    assert saved["est"] / 1e6 < before_ms - after_ms + near, (small, before_ms, after_ms)
    assert saved["est"] / 1e6 > (before_ms - after_ms) / 3, (small, before_ms, after_ms)
    assert joined["critical_path"]["small_collectives"] is None
    text = " ".join(fleet.syncline("why", run).stdout.split())
    assert "collectives on it carry at most 8.2 kB" in text, text
    assert "join small collectives" in text, text


def test_what_a_rank_does_behind_a_collective_is_its_own_work(answers):
    _, told, _ = answers["silent"]
    (named,) = told["verdict"]["ranks"]
    assert (named["rank"], named["late"]) == (0, True), named
    assert abs(named["lead_ns"]["est"] / 1e6 - 20) < NEAR_MS, named
    assert named["python"]["place"].startswith("main ("), named


def test_what_a_rank_does_beside_a_collective_is_its_own_work(answers):
    _, told, _ = answers["beside"]
    (named,) = told["verdict"]["ranks"]
    assert (named["rank"], named["late"]) == (1, True), named
    assert abs(named["lead_ns"]["est"] / 1e6 - 15) < NEAR_MS, named
    first = told["ranks"][0]["parts"]
    assert first["host_code_ns"] / 1e6 > 9, first


def test_a_pipeline_is_followed_from_stage_to_stage(fleet, answers):
    run, told, step_ms = answers["pipeline"]
    assert told["sends_and_receives"] and told["verdict"]["ranks"] == [], told["verdict"]
    path = told["critical_path"]
    assert abs(ms(path, "step_ns") - step_ms) < NEAR_MS
    first, second = (rank["own_work_ns"]["est"] / 1e6 for rank in path["ranks"])
    assert 20 <= first < 20 + NEAR_MS and 8 <= second < 8 + NEAR_MS, path
    waits = [rank["parts"]["wait_and_transfer_ns"] / 1e6 for rank in told["ranks"]]
    assert 8 <= waits[0] < 8 + NEAR_MS and 20 - NEAR_MS < waits[1] < 20 + NEAR_MS, waits
    text = " ".join(fleet.syncline("why", run).stdout.split())
    assert "STEPS Ranks send to each other and receive" in text, text


def test_a_broadcast_is_followed_like_a_collective_that_all_wait_in(answers):
    _, told, _ = answers["broadcast"]
    assert set(told["steps"]["class"].split(", ")) == {"allreduce x1", "broadcast x1"}
    path = told["critical_path"]
    for rank in path["ranks"]:
        assert 20 <= rank["own_work_ns"]["est"] / 1e6 < 20 + NEAR_MS, path
    assert path["not_followed_ns"] == 0
    assert abs(told["replay_error_ns"]) / 1e6 < 1


def test_the_text_says_the_same(fleet, answers):
    run, told, _ = answers["turns"]
    text = " ".join(fleet.syncline("why", run).stdout.split())
    assert "one after the other: own work of rank " in text
    cost = told["verdict"]["ranks"][0]["cost_ns"]["est"] / 1e6
    assert f"COST without this cause a step would be shorter by {cost:.1f} ms [" in text, text
    assert "by replay (with nothing changed" in text


def test_perfetto_shows_the_path(fleet, answers):
    run, told, _ = answers["turns"]
    fleet.syncline("merge", run, "--critical-path")
    of_path = (
        "from slice join track on track.id = slice.track_id "
        "where track.name = 'critical path · own work and collectives'"
    )
    trace = os.path.join(run, "out", "timeline.perfetto-trace")
    rows = perfetto.query(trace, f"select slice.name, sum(dur) / 1e6 {of_path} group by 1")
    lengths = {name: float(total) for name, total in rows}
    assert set(lengths) <= {"rank 0", "rank 1", "allreduce", "broadcast"}, lengths
    assert abs(lengths["rank 0"] - lengths["rank 1"]) < 0.2 * lengths["rank 0"], lengths
    # One behind the other, without gaps.
    ((begin, end, total),) = perfetto.query(
        trace, f"select min(ts), max(ts + dur), sum(dur) {of_path}"
    )
    assert abs(int(end) - int(begin) - int(total)) < 1e6
    report = load(os.path.join(run, "out", "report.json"))
    assert int(end) - int(begin) > 0.8 * SECONDS * 1e9, report["window"]


def test_a_path_that_is_not_known_is_refused_in_one_line(fleet, answers):
    run, _, _ = answers["turns"]
    said = fleet.syncline("merge", run, "--critical-path", "--nodes", "host-a", fine=(2,)).stdout
    assert "--critical-path: it is not known: not all ranks of the job were recorded" in said, said
