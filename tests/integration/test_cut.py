# SPDX-License-Identifier: Apache-2.0
"""`syncline why` of a TensorFlow model that is cut into a master's and a worker's partition.

The truth is put into the running job: how long an operator sleeps, and by how much a relay delays
what the two say to each other.
"""

import json
import os
import shutil

import pytest

from tests.integration import perfetto
from tests.integration.fleet import EXAMPLES, HOST_TENSORFLOW, TENSORFLOW, Fleet
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY

JOB = os.path.join(REPOSITORY, "tests", "integration", "cut_job")
MASTER, WORKER = "/job:master/replica:0/task:0", "/job:worker/replica:0/task:0"
SLEEP_MS = 30  # what else a busy machine adds to a step, a few ms, must not hide it
DELAY_MS = 10  # each way
SECONDS = 5


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    specs = [HostSpec("master-0", role="master"), HostSpec("worker-0", role="worker")]
    with Testbed(specs, seed=71, binds={HOST_TENSORFLOW: TENSORFLOW}) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("cut"))
        made.up()
        job = str(tmp_path_factory.mktemp("job") / "cut_job")
        shutil.copytree(os.path.join(EXAMPLES, "tensorflow_two_partitions"), job)
        shutil.copytree(JOB, job, dirs_exist_ok=True)
        command = (
            f"env TF_CPP_MIN_LOG_LEVEL=2 {HOST_TENSORFLOW}/bin/python relayed.py {{role}} "
            "$(test {role} = worker || echo --report-every 1000000)"
        )
        made.fab("launch", "--copy", job, "--command", command, "--ready", "step 1:")
        yield made
        made.fab("down")


def answer(fleet, name, sleep_ms, delay_ms):
    """What `why` says of a recording in which the two are so; the whole of it as text, too."""
    for host in ("master-0", "worker-0"):
        where = fleet.bed[host].run(["pgrep", "-f", "^[^ ]*python relayed.py"]).stdout.split()[0]
        for file, value in (("sleep_ms", sleep_ms), ("delay_ms", delay_ms)):
            command = f"echo {value} > /proc/{where}/cwd/{file}"
            fleet.bed[host].run(["sh", "-c", command])
    run = fleet.record(name, SECONDS)
    told = json.loads(fleet.syncline("why", run, "--json").stdout)
    assert (told["kind"], told["status"]) == ("cut", "answered"), told["message"]
    return told


@pytest.fixture(scope="module")
def answers(fleet):
    """Of the job as it is, of an operator that sleeps, of a slow network."""
    return [
        answer(fleet, name, sleep_ms, delay_ms)
        for name, sleep_ms, delay_ms in (
            ("plain", 0, 0),
            ("sleepy", SLEEP_MS, 0),
            ("delayed", 0, DELAY_MS),
        )
    ]


def ms(value):
    return (value["est"] if isinstance(value, dict) else value) / 1e6


def of(told, task):
    (found,) = (one for one in told["path"]["partitions"] if one["task"] == task)
    return found


def test_the_parts_of_the_path_add_up_to_the_step(answers):
    for told in answers:
        path = told["path"]
        assert told["steps"]["judged"] >= 30
        assert told["client"] == MASTER
        parts = [*(one["path_ns"] for one in path["partitions"])]
        parts += [path["tensors_ns"], path["between_steps_ns"]]
        assert sum(map(ms, parts)) == pytest.approx(ms(told["steps"]["mean_ns"]), abs=1e-4)
        crossed = sum(ms(one["path_ns"]) for one in path["tensors"])
        assert crossed == pytest.approx(ms(path["tensors_ns"]), abs=1e-4)
        assert all(one["clock_bound_ns"] is not None for one in path["tensors"])


def test_an_operator_that_sleeps_is_named(answers):
    plain, sleepy, _ = answers
    assert "sleepy" not in [one["name"] for one in plain["path"]["operators"][:5]]
    first = sleepy["path"]["operators"][0]
    assert (first["name"], first["task"]) == ("sleepy", MASTER)
    # In some steps a label that the busy master sends late is waited for instead.
    assert 0.6 * SLEEP_MS < ms(first["path_ns"]) < 1.3 * SLEEP_MS


def test_a_slow_network_is_in_the_tensors(answers):
    *_, delayed = answers
    tensors = ms(delayed["path"]["tensors_ns"])
    saved = ms(delayed["path"]["saved_without_tensors_ns"])
    # There and back; beside the tensors the client's work goes on: what that hides is not saved.
    assert 2 * DELAY_MS < saved <= tensors
    late = [one for one in delayed["path"]["tensors"] if one["steps"] > 0]
    assert {one["from"] for one in late} == {MASTER, WORKER}
    for one in late:
        assert ms(one["path_ns"]) * delayed["steps"]["judged"] > DELAY_MS * one["steps"]


def test_perfetto_shows_the_path(fleet, answers):
    told = answers[1]
    run = os.path.join(fleet.work, "sleepy")
    fleet.syncline("merge", run, "--critical-path")
    rows = perfetto.query(
        os.path.join(run, "out", "timeline.perfetto-trace"),
        "select slice.name, sum(dur) / 1e6 "
        "from slice join track on track.id = slice.track_id "
        "where track.name = 'critical path · partitions and tensors' group by 1",
    )
    lengths = {name: float(total) for name, total in rows}
    steps = told["steps"]["judged"]
    of_operator = ms(told["path"]["operators"][0]["path_ns"]) * steps
    assert lengths["master:0: sleepy"] == pytest.approx(of_operator, rel=0.02)
    # The last step has nothing behind it.
    between = ms(told["path"]["between_steps_ns"]) * steps
    assert lengths["between steps"] == pytest.approx(between, rel=0.1)
    of_partitions = sum(ms(one["path_ns"]) for one in told["path"]["partitions"]) * steps
    shown = sum(total for name, total in lengths.items() if name.startswith(("master:", "worker:")))
    assert shown == pytest.approx(of_partitions, rel=0.02)


def test_against_the_job_as_it_was_the_operator_is_what_changed(fleet, answers):
    code, told = fleet.compare("sleepy", "plain", "step > +5%", "work > +5%")
    assert (told["kind"], told["status"], code) == ("cut", "compared", 4), told["message"]
    assert [one["state"] for one in told["limits"]] == ["above", "above"]
    path = told["path"]
    first = path["operators"][0]
    assert (first["operator"], first["task"]) == ("sleepy", MASTER)
    assert 0.6 * SLEEP_MS < ms(first["path"]["change_ns"]) < 1.3 * SLEEP_MS
    of_task = {one["task"]: one["path"] for one in path["partitions"]}
    assert of_task[MASTER]["certain"]
    # What else runs on the machine meanwhile may slow the worker, too.
    assert ms(of_task[MASTER]["change_ns"]) > abs(ms(of_task[WORKER]["change_ns"]))
    parts = sum(ms(path[one]["change_ns"]) for one in ("work", "tensors", "between_steps"))
    assert parts == pytest.approx(ms(told["step"]["change_ns"]), abs=1e-4)


def test_against_the_job_as_it_was_the_tensors_are_what_a_slow_network_changed(fleet, answers):
    code, told = fleet.compare("delayed", "plain", "tensors > +5%")
    assert (told["status"], code) == ("compared", 4), told["message"]
    path = told["path"]
    assert path["tensors"]["certain"]
    assert ms(path["tensors"]["change_ns"]) > DELAY_MS
    assert told["clock_bound_ns"] < 1e6
    work = abs(ms(path["work"]["change_ns"]))
    assert work < 0.5 * ms(path["tensors"]["change_ns"])
    for one in path["directions"]:
        assert one["path"]["change_ns"]["est"] > 0, one


def test_it_is_said_to_people(fleet, answers):
    said = fleet.syncline("why", os.path.join(fleet.work, "delayed")).stdout
    for word in ("STEP", "PATH", "OVERLAP", "SAVES", "TRUST", "NEXT", "tensors between them"):
        assert word in said
    assert "worker:0 (worker-0)" in said and "master:0 (master-0)" in said
    said = fleet.syncline("why", "sleepy", "--against", "plain").stdout
    for word in ("NOW", "BEFORE", "STEP", "TRUST", "work of the partitions", "master:0: sleepy"):
        assert word in said
