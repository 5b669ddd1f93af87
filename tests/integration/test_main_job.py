# SPDX-License-Identifier: Apache-2.0
"""The main job: a real two-partition training job on two hosts with known clocks, through fab."""

import collections
import filecmp
import json
import os
import shutil
import signal
import subprocess

import pytest

from tests.integration import merge_checks, perfetto, raw_trace, steps, xspace
from tests.integration.fleet import HOST_TENSORFLOW, TENSORFLOW, Fleet, load
from tests.testbed import HostSpec, Testbed

NODES = (merge_checks.MASTER, merge_checks.WORKER)
STEP_NAME = merge_checks.STEP_NAME
SECONDS = 5


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    specs = [HostSpec("master-0", role="master"), HostSpec("worker-0", role="worker")]
    with Testbed(specs, seed=5, binds={HOST_TENSORFLOW: TENSORFLOW}) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("job"))
        made.up()
        made.launch_tensorflow()
        yield made
        made.fab("down")


@pytest.fixture(scope="module")
def run(fleet):
    """One recording, merged."""
    directory = fleet.record("run-1", SECONDS)
    fleet.syncline("merge", directory)
    return directory


@pytest.fixture(scope="module")
def truth_ns(fleet):
    """What has to be subtracted from the worker's trace clock to get the master's."""
    return fleet.bed.monotonic_difference_ns(*NODES)


def test_the_recording_is_complete_and_says_so(run):
    recording = load(os.path.join(run, "recording.json"))
    assert [node["name"] for node in recording["nodes"]] == list(NODES)
    for node in recording["nodes"]:
        assert node["state"] == "complete", node["failure"]
        assert node["stop"]["complete"] and node["fetched"]["complete"]
        assert node["start"]["processes_switched"] >= 1
    assert recording["window"]["requested_ns"] == SECONDS * 10**9


def test_the_measured_interval_contains_the_known_offset(fleet, run, truth_ns):
    lowest, highest = fleet.clock_difference(run, *NODES)
    assert lowest <= truth_ns <= highest
    assert highest - lowest < 2_000_000  # and it is not the trivial one


def test_the_nodes_measure_each_other_much_better_than_grpc_can(fleet, run, truth_ns):
    """Over UDP with the kernel's stamps, and both are true."""
    lowest, highest = fleet.clock_difference(run, *NODES)
    clocks = fleet.clocks(run)
    edge = clocks["edges"][NODES]
    assert abs(edge["offset_ns"] - truth_ns) <= edge["bound_worst_ns"]
    assert edge["source"] == "kernel" and edge["samples_kept"] > 100, clocks["probes"]
    grpc_ns, udp_ns = (highest - lowest) / 2, edge["bound_median_ns"]
    print(f"bound: gRPC {grpc_ns:.0f} ns, UDP {udp_ns} ns, {grpc_ns / udp_ns:.0f} times smaller")
    assert udp_ns * 3 < grpc_ns
    told = fleet.syncline("clocks", run).stdout
    for probes in clocks["probes"]:
        assert "kernel stamps (" in probes["text"]
        assert "has no hardware clock" in probes["text"]  # virtual devices never have
        assert probes["text"] in told
    asked = {(probes["local"], probes["remote"]) for probes in clocks["probes"]}
    assert asked == {NODES, NODES[::-1]}, "each asks the other"


def test_every_group_lies_inside_its_step_and_nothing_else_is_wrong(fleet, run, truth_ns):
    assert merge_checks.problems(fleet, run, truth_ns) == []
    # The program of the mutants, with none chosen, is right too: what it is found guilty of below
    # is the mutant's doing.
    assert merge_checks.problems(fleet, run, truth_ns, "syncline-mutants", SYNCLINE_MUTANT="") == []


@pytest.mark.parametrize(
    "mutant",
    [
        "wallclock",
        "zero-offset",
        "sign-flipped",
        "bound-of-a-second",
        "swap-nodes",
        "keys-without-node",
        "stale",
    ],
)
def test_a_merge_that_is_wrong_on_purpose_is_noticed(fleet, run, truth_ns, tmp_path, mutant):
    copy = str(tmp_path / "run")
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("out"))
    arguments = (fleet, copy, truth_ns, "syncline-mutants")
    found = merge_checks.problems(*arguments, SYNCLINE_MUTANT=mutant)
    print(f"{mutant}: {found}")
    assert found


def test_a_merge_by_wall_clock_puts_groups_into_the_wrong_steps(fleet, run, truth_ns):
    """babeltrace2 merges by wall clock. The worker's is set so that the median group's centre falls
    on the boundary between two steps; a host whose clock is off by this little looks healthy."""
    worker = fleet.bed["worker-0"]
    was = worker.spec.wall_error_ns
    worker.set_wall_error_ns(
        fleet.bed["master-0"].spec.wall_error_ns + error_that_hurts(run, truth_ns)
    )
    try:
        wrong = fleet.record("run-wall", SECONDS)
    finally:
        worker.set_wall_error_ns(was)
    by_wall = {
        node: raw_trace.tasks(
            raw_trace.read_events(raw_trace.trace_directory(wrong, node), wall_clock=True)
        )
        for node in NODES
    }
    master_steps = [t for t in by_wall["master-0"] if t.name == STEP_NAME]
    _, groups = steps.group_by_step(by_wall["worker-0"], master_steps)
    share = steps.crossing_share(groups, master_steps)
    assert share >= 0.3
    print(f"{100 * share:.0f} % of the worker's groups cross a step's boundary by wall clock")
    # The same recording, merged by measured clocks, has none.
    fleet.syncline("merge", wrong)
    timeline = fleet.timeline_tasks(wrong)
    master_steps = [t for t in timeline["master-0"] if t.name == STEP_NAME]
    _, groups = steps.group_by_step(timeline["worker-0"], master_steps)
    assert steps.crossing_share(groups, master_steps) == 0


def error_that_hurts(run, truth_ns):
    """How wrong the worker's wall clock must be, relative to the master's, for the median group's
    centre to fall on the end of a step. From the raw traces and the known truth alone."""
    by_node = {
        node: raw_trace.tasks(raw_trace.read_events(raw_trace.trace_directory(run, node)))
        for node in NODES
    }
    master_steps = [t for t in by_node["master-0"] if t.name == STEP_NAME]
    _, groups = steps.group_by_step(by_node["worker-0"], master_steps)
    distances = []
    for group in groups:
        centre = (group[0].begin_ns + group[-1].end_ns) // 2 - truth_ns
        ends = [step.end_ns - centre for step in master_steps if step.end_ns >= centre]
        if ends:
            distances.append(min(ends))
    return sorted(distances)[len(distances) // 2]


def test_perfetto_counts_as_many_slices_as_there_are_in_the_raw_traces(run):
    timeline = os.path.join(run, "out", "timeline.perfetto-trace")
    for node in NODES:
        ((found,),) = perfetto.query(
            timeline,
            f"select count(*) from slice {perfetto.OF_THREADS} "
            # Arrows hang on slices of their own, which are of no domain.
            f"where slice.category is not null and {perfetto.of_node(node)}",
        )
        events = raw_trace.read_events(raw_trace.trace_directory(run, node))
        assert int(found) == raw_trace.count_spans(events)


def test_perfetto_finds_nothing_wrong(run):
    timeline = os.path.join(run, "out", "timeline.perfetto-trace")
    errors = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
    assert perfetto.query(timeline, errors) == []
    negative = "select count(*) from slice where dur < 0"
    assert perfetto.query(timeline, negative) == [["0"]]


def test_both_workers_hand_over_the_operators_of_the_window(fleet, run):
    for node in NODES:
        (profile,) = xspace.profiles(run, node)
        assert profile["state"] == "complete", profile["failure"]
        assert profile["task"] == f"/job:{node.split('-')[0]}/replica:0/task:0"
        assert len(profile["incarnation"]) == 16 and int(profile["incarnation"], 16)
        start_ns, stop_ns = xspace.window_ns(profile["xspace"])
        assert start_ns >= profile["begin_realtime_ns"]
        assert stop_ns <= profile["end_realtime_ns"]
        assert start_ns >= profile["asked_start_realtime_ns"]
        assert stop_ns - start_ns >= profile["asked_duration_ns"]
        events = xspace.event_count(profile["xspace"])
        assert events > 100
        print(f"{node}: {events} events, {profile['bytes']} bytes")


def test_the_profiles_times_can_be_mapped_to_the_trace_clock(fleet, run):
    """The host's wall clock, which is wrong on purpose, was read all the while."""
    for node in NODES:
        (profile,) = xspace.profiles(run, node)
        with open(os.path.join(run, "clocks", f"{node}.tuples"), "rb") as file:
            realtimes = xspace.realtimes_ns(file.read())
        start_ns, stop_ns = xspace.window_ns(profile["xspace"])
        assert min(realtimes) < start_ns and stop_ns < max(realtimes)


def test_a_node_says_where_its_profiler_is(fleet):
    found = {node["name"]: node for node in json.loads(fleet.syncline("nodes", "--json").stdout)}
    shown = fleet.syncline("nodes").stdout
    for node in NODES:
        processes = found[node]["description"]["processes"]
        (profiler,) = [one["tf_profiler"] for one in processes if "tf_profiler" in one]
        assert profiler["task"] == f"/job:{node.split('-')[0]}/replica:0/task:0"
        short = profiler["task"].replace("/replica:0", "")
        assert f"profiler port {profiler['port_number']} ({short})" in shown


def test_a_profiler_that_somebody_uses_is_said_and_the_job_goes_on(fleet, run):
    (worker,) = xspace.profiles(run, "worker-0")
    profiler = xspace.hold_profiler(fleet.bed["worker-0"], worker["port"])
    try:
        busy = fleet.record("run-busy", 1, fine=(0, 3))
        assert "in use by another client" in fleet.last.stdout
        assert profiler.poll() is None
    finally:
        profiler.kill()
        profiler.communicate()
    (master,) = xspace.profiles(busy, "master-0")
    (worker,) = xspace.profiles(busy, "worker-0")
    assert master["state"] == "complete" and master["bytes"] > 0
    assert worker["state"] == "busy" and "file" not in worker
    recording = load(os.path.join(busy, "recording.json"))
    for node in recording["nodes"]:
        said = [one for one in node["complaints"] if "in use by another client" in one["what"]]
        assert len(said) == (node["name"] == "worker-0")
        assert node["fetched"]["complete"]


def test_without_the_profiler_nobody_is_asked(fleet):
    run = fleet.record("run-plain", 1, "--no-tf-profiler", fine=(0, 3))
    for node in NODES:
        assert not os.path.exists(os.path.join(run, "nodes", node, "xspace"))


def test_a_shorter_recording_than_planned_gives_the_profiler_back(fleet):
    record = fleet.start_record("run-cut", 600, "--progress", "always")
    assert any("recording ..." in line for line in record.stdout)
    record.send_signal(signal.SIGINT)
    output, _ = record.communicate(timeout=60)
    assert record.returncode in (0, 3), output
    for node in NODES:
        profile, *_ = xspace.profiles(os.path.join(fleet.work, "run-cut"), node)
        # "complete": the machine was so slow that a whole piece was over.
        assert profile["state"] in ("cut", "complete")
    # And the next one gets it.
    again = fleet.record("run-after-cut", 1, fine=(0, 3))
    for node in NODES:
        (profile,) = xspace.profiles(again, node)
        assert profile["state"] == "complete", profile


def test_what_a_program_computes_does_not_change(fleet):
    """The same training again and again in one worker, with its profiler on and off. It was not
    started under `syncline run`: its operators are seen all the same."""
    path = os.path.join(os.path.dirname(__file__), "same_training.py")
    with open(path, encoding="utf-8") as file:
        command = [f"{HOST_TENSORFLOW}/bin/python", "-c", file.read()]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    program = fleet.bed["master-0"].popen(command, **pipes)
    try:
        plain = program.stdout.readline()
        assert len(plain.strip()) == 64
        # It takes its host's CPU for itself; what the job next to it loses is not looked at here.
        run = fleet.record("run-same", 2, fine=(0, 3))
        digests, _ = program.communicate()  # its input ends
    finally:
        program.kill()
        program.wait()
    assert program.returncode == 0
    assert digests.splitlines() and set(digests.splitlines()) == {plain.strip()}
    found = xspace.profiles(run, "master-0")
    (local,) = [one for one in found if one["task"] == "/job:localhost/replica:0/task:0"]
    assert local["state"] == "complete", local["failure"]
    assert xspace.event_count(local["xspace"]) > 100


def test_merging_again_gives_the_same_bytes_from_anywhere(fleet, run, tmp_path):
    copy = tmp_path / "elsewhere" / "run"
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("out"))
    fleet.syncline("merge", str(copy), TZ="Asia/Kathmandu", LC_ALL="C", HOME=str(tmp_path))
    ours, theirs = os.path.join(run, "out"), str(copy / "out")
    names = sorted(os.listdir(ours))
    assert names == sorted(os.listdir(theirs)) and "timeline.perfetto-trace" in names
    _, different, errors = filecmp.cmpfiles(ours, theirs, names, shallow=False)
    assert (different, errors) == ([], [])


def test_babeltrace2_reads_the_corrected_copy_as_the_timeline_has_it(fleet, run, tmp_path):
    """Both nodes in one call, in one order: what its own merge cannot do with the raw traces."""
    out = str(tmp_path / "copy")
    fleet.syncline("merge", run, "--out", out, "--format", "ctf")
    epoch_ns = load(os.path.join(run, "recording.json"))["epoch_unix_ns"]
    expected = collections.Counter(
        (event.time_ns + epoch_ns, event.name)
        for events in fleet.timeline_events(run).values()
        for event in events
        if event.name.startswith("syncline")  # the profiles' events are in no trace
    )
    copied = raw_trace.read_events(os.path.join(out, "ctf"))
    times = [event.time_ns for event in copied]
    assert times == sorted(times)
    assert collections.Counter((event.time_ns, event.name) for event in copied) == expected


def test_perfetto_shows_the_same_trace_as_two_nodes_in_two_sets_of_lanes(fleet, run, tmp_path):
    trace = raw_trace.trace_directory(run, "worker-0")
    out = tmp_path / "twins"
    fleet.syncline("merge", f"a={trace}", f"b={trace}", "--out", str(out))
    found = [path for path in out.rglob("timeline.perfetto-trace")]
    assert len(found) == 1
    spans = raw_trace.count_spans(raw_trace.read_events(trace))
    sql = f"select count(*), count(distinct utid) from slice {perfetto.OF_THREADS}"
    twice = perfetto.query(str(found[0]), sql)
    assert int(twice[0][0]) == 2 * spans
    assert int(twice[0][1]) % 2 == 0
