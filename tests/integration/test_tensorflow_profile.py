# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's operators and tensors, from the recording in tests/golden/tensorflow_profile."""

import collections
import filecmp
import glob
import json
import os
import shutil
import subprocess

import pytest

from tests.integration import perfetto
from tests.integration.fleet import load
from tests.testbed.machine import BUILD, REPOSITORY

GOLDEN = os.path.join(REPOSITORY, "tests", "golden", "tensorflow_profile")
EXPECTED = load(os.path.join(GOLDEN, "expected.json"))
NODES = list(EXPECTED["nodes"])
TIMELINE = "timeline.perfetto-trace"


def merge(run, *options, fine=(0,)):
    """Merges; returns report.json."""
    result = subprocess.run(
        [os.path.join(BUILD, "bin", "syncline"), "merge", str(run), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    assert result.returncode in fine, f"exit {result.returncode}\n{result.stdout}"
    return load(os.path.join(run, "out", "report.json"))


def copy(directory):
    return shutil.copytree(os.path.join(GOLDEN, "run"), str(directory))


def profile_of(run, node):
    (found,) = glob.glob(os.path.join(run, "nodes", node, "xspace", "*.pb"))
    return found


def change_profile(run, node, **changes):
    path = os.path.join(run, "nodes", node, "xspace", "profiles.json")
    profiles = load(path)
    profiles["profiles"][0].update(changes)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(profiles, file)


@pytest.fixture(scope="module")
def merged(tmp_path_factory):
    run = copy(tmp_path_factory.mktemp("golden") / "run")
    return run, merge(run)


def test_operators_and_steps_are_as_many_as_tensorflows_own_reader_counts(merged):
    _, report = merged
    for node in report["nodes"]:
        (profile,) = node["profiles"]
        expected = EXPECTED["nodes"][node["name"]]
        for what in ("events", "operators", "steps"):
            assert profile[what] == expected[what], (node["name"], what)
        assert profile["undecided_events"] == 0
        total = sum(
            task["count"]
            for task in report["tasks"]
            if task["domain"] == "TensorFlow operators" and task["node"] == node["name"]
        )
        assert total == expected["operators"]


def test_every_tensor_is_matched_and_none_arrives_before_it_was_sent(merged):
    _, report = merged
    tensors = report["tensors"]
    assert tensors["matched"] == tensors["matched_across_nodes"] == EXPECTED["matched"]
    assert {edge["tensor"]: edge["count"] for edge in tensors["edges"]} == EXPECTED["edges"]
    assert tensors["received_before_sent"] == {
        "by_wall_clock": EXPECTED["backwards_by_wall_clock"],
        "here": 0,
        "contradicting_the_model": 0,
    }
    assert EXPECTED["backwards_by_wall_clock"] > 0
    assert tensors["unmatched"]["sends_in_complete_steps"] == 0
    assert tensors["unmatched"]["receives_in_complete_steps"] == 0
    assert tensors["matched_in_complete_steps"] > 0
    for edge in tensors["edges"]:
        flight = edge["flight"]
        assert 0 < flight["lo_ns"] <= flight["est_ns"] <= flight["hi_ns"]


def test_partitions_list_the_graph_of_each_worker(merged):
    """Of whole steps; both ends of every cut edge are in them."""
    run, report = merged
    assert [found["node"] for found in report["partitions"]] == NODES
    said = subprocess.run(
        [os.path.join(BUILD, "bin", "syncline"), "report", run, "--section", "partitions"],
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    assert said.startswith("Partitions\n") and "/job:worker/task:0/CPU:0" in said
    edges = collections.Counter()
    for number, partition in enumerate(report["partitions"]):
        device = f"/job:{NODES[number][:6]}/replica:0/task:0/device:CPU:0"
        assert partition["devices"] == [device]
        (graph,) = partition["graphs"]
        nodes = [partition["nodes"][index] for index in graph["nodes"]]
        assert 0 < graph["steps"] <= EXPECTED["nodes"][NODES[number]]["steps"]
        types = {node["type"] for node in nodes}
        assert types - {None} == set(EXPECTED["nodes"][NODES[number]]["types"])
        for node in nodes:
            if node["type"] not in ("_Send", "_Recv"):
                continue
            ends = (node["send_device"], node["receive_device"])
            assert device == ends[node["type"] == "_Recv"]
            if ends[0] != ends[1]:
                edges[node["tensor"]] += 1
    assert edges == {tensor: 2 for tensor in EXPECTED["edges"]}


def test_the_bytes_of_the_large_tensors_are_known(merged):
    """128 images of 8 x 8 with 32 channels of 4 bytes."""
    _, report = merged
    found = {edge["tensor"]: edge["bytes"] for edge in report["tensors"]["edges"]}
    assert found["edge_11_MaxPool2d"] == 128 * 8 * 8 * 32 * 4
    assert found["edge_80_gradients/Conv2D_1_grad/tuple/control_dependency"] == 128 * 8 * 8 * 32 * 4


def test_perfetto_sees_the_operators_by_type_and_the_arrows(merged):
    run, _ = merged
    timeline = os.path.join(run, "out", TIMELINE)
    rows = perfetto.query(
        timeline,
        "select args.string_value, count(*) from slice join args using (arg_set_id) "
        "where slice.category = 'TensorFlow operators' and args.key = 'debug.type' group by 1",
    )
    expected = {}
    for node in EXPECTED["nodes"].values():
        for operator, count in node["types"].items():
            expected[operator] = expected.get(operator, 0) + count
    assert {name.strip('"'): int(count) for name, count in rows} == expected
    checks = {
        "flows": "select count(*) from flow",
        "backwards": "select count(*) from flow join slice sent on slice_out = sent.id "
        "join slice received on slice_in = received.id where received.ts < sent.ts",
        "errors": "select count(*) from stats where severity in ('error', 'data_loss') "
        "and value > 0",
        "negative": "select count(*) from slice where dur < 0",
    }
    sql = " union all ".join(f"select '{name}', ({sql})" for name, sql in checks.items())
    assert {name.strip('"'): int(count) for name, count in perfetto.query(timeline, sql)} == {
        "flows": EXPECTED["matched"],
        "backwards": 0,
        "errors": 0,
        "negative": 0,
    }


def test_perfetto_shows_onednn_at_work_only_inside_operators(merged):
    """Two clocks and two tools, one truth: what oneDNN reports while the profile ran lies inside
    an operator of the same process. At the profile's ends the operator may be cut off."""
    run, report = merged
    sql = (
        f"select substr(parent.name, 1, 30), slice.ts - {perfetto.ZERO}, "
        f"slice.ts + slice.dur - {perfetto.ZERO} from slice "
        "join track on track.id = track_id join track parent on parent.id = track.parent_id "
        "where category = 'TensorFlow operators' union all "
        f"select process.name, slice.ts - {perfetto.ZERO}, "
        f"slice.ts + slice.dur - {perfetto.ZERO} from slice {perfetto.OF_THREADS} "
        "where slice.name = 'convolution'"
    )
    spans = [
        (name, int(begin), int(end))
        for name, begin, end in perfetto.query(os.path.join(run, "out", TIMELINE), sql)
    ]
    for node in report["nodes"]:
        (profile,) = node["profiles"]
        group = "TensorFlow " + profile["task"].replace("/replica:0", "")
        begin_ns, end_ns = (profile[key] for key in ("begin_ns", "end_ns"))
        operators = [(begin, end) for name, begin, end in spans if name.strip('"') == group]
        tasks = [
            (begin, end)
            for name, begin, end in spans
            if f"· {node['name']} ·" in "· " + name.strip('"')
            and begin_ns < begin
            and end < end_ns
        ]
        assert len(tasks) >= 8
        first, last = min(operators)[0], max(end for _, end in operators)
        outside = [
            (begin, end)
            for begin, end in tasks
            if first <= begin
            and end <= last
            and not any(around[0] <= begin and end <= around[1] for around in operators)
        ]
        assert outside == []


def test_merging_again_gives_the_same_bytes_from_anywhere(merged, tmp_path):
    run, _ = merged
    again = copy(tmp_path / "elsewhere" / "run")
    merge(again)
    names = sorted(os.listdir(os.path.join(run, "out")))
    ours, theirs = os.path.join(run, "out"), os.path.join(again, "out")
    _, different, errors = filecmp.cmpfiles(ours, theirs, names, shallow=False)
    assert (different, errors) == ([], [])


def test_tensors_alone_tie_the_clocks_of_two_nodes_together(merged, tmp_path):
    """Refitted without a single probe, the model stands on tensors in both directions."""
    _, report = merged
    run = copy(tmp_path / "run")
    for path in glob.glob(os.path.join(run, "clocks", "*.samples")):
        os.remove(path)
    refitted = merge(run, "--refit", fine=(0, 3))  # that the probes are gone is said
    probed, tied = (
        [node["clock_bound_ns"] for node in found["nodes"]] for found in (report, refitted)
    )
    assert refitted["tensors"]["matched"] == EXPECTED["matched"]
    assert refitted["tensors"]["received_before_sent"]["contradicting_the_model"] == 0
    assert all(bound is not None for bound in tied)
    assert max(probed) < max(tied) < 100_000_000


def test_probes_and_tensors_agree_about_the_clocks(tmp_path):
    run = copy(tmp_path / "run")
    refitted = merge(run, "--refit")
    assert refitted["tensors"]["received_before_sent"]["contradicting_the_model"] == 0
    assert refitted["tensors"]["received_before_sent"]["here"] == 0
    assert max(node["clock_bound_ns"] for node in refitted["nodes"]) < 100_000


def test_a_profile_that_was_cut_short_is_a_loss_and_the_rest_is_there(tmp_path):
    run = copy(tmp_path / "run")
    path = profile_of(run, NODES[1])
    os.truncate(path, os.path.getsize(path) * 2 // 3)
    report = merge(run, fine=(3,))
    master, worker = report["nodes"]
    assert master["profiles"][0]["operators"] == EXPECTED["nodes"][NODES[0]]["operators"]
    assert worker["losses"] and not report["complete"]


def test_a_profiler_that_was_busy_is_named_and_is_no_loss(tmp_path):
    run = copy(tmp_path / "run")
    os.remove(profile_of(run, NODES[1]))
    change_profile(run, NODES[1], file="", state="busy", failure="held by another session")
    report = merge(run)
    assert report["complete"]
    assert any("held by another session" in complaint for complaint in report["complaints"])
    assert report["nodes"][1]["profiles"][0]["operators"] == 0


def test_a_profile_that_is_gone_or_died_is_a_loss(tmp_path):
    run = copy(tmp_path / "gone")
    os.remove(profile_of(run, NODES[1]))
    assert not merge(run, fine=(3,))["complete"]
    run = copy(tmp_path / "died")
    os.remove(profile_of(run, NODES[1]))
    change_profile(run, NODES[1], file="", state="failed", failure="the worker died")
    assert not merge(run, fine=(3,))["complete"]


@pytest.mark.parametrize("text", ["", "[]", '{"format_version": 99, "profiles": []}', "{"])
def test_a_list_of_profiles_that_cannot_be_read_costs_the_profiles_alone(tmp_path, text):
    run = copy(tmp_path / "run")
    path = os.path.join(run, "nodes", NODES[1], "xspace", "profiles.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    report = merge(run, fine=(3,))
    assert report["nodes"][1]["profiles"] == []
    assert report["nodes"][1]["events"] > 0
    assert any("profiles.json" in complaint for complaint in report["complaints"])
