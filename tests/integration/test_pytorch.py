# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel over Gloo, started through `syncline run`, which it does not know of."""

import collections
import json
import os

import pytest

from tests.integration.fleet import EXAMPLES, Fleet, load
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY

TORCH = os.path.join(REPOSITORY, ".venv-torch")

# oneDNN's primitive, an operator, an autograd node, the optimizer, DistributedDataParallel, the
# collective that it asks for and Gloo's part of it.
EVERY_STEP = (
    "convolution",
    "aten::conv2d",
    "ConvolutionBackward0",
    "Optimizer.step#SGD.step",
    "DistributedDataParallel.forward",
    "torch.distributed.ddp.reducer::copy_bucket_to_grad",
    "c10d::allreduce_",
    "gloo:all_reduce",
)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    if not os.path.isdir(TORCH):
        pytest.skip("no .venv-torch: scripts/setup --torch makes it")
    specs = [HostSpec("rank-a"), HostSpec("rank-b")]
    with Testbed(specs, seed=36, binds={"/opt/torch": TORCH}) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("torch"))
        made.up()
        yield made
        made.fab("down")


def launch(fleet, *settings):
    command = " ".join(("env GLOO_SOCKET_IFNAME=eth0", *settings, "/opt/torch/bin/python train.py"))
    fleet.fab(
        *("launch", "--copy", os.path.join(EXAMPLES, "pytorch_ddp"), "--ready", "step 100:"),
        *("--command", command),
    )


def cpu_findings(fleet):
    """Of the ranks: what is to be said of this machine itself is another one's elsewhere."""
    nodes = json.loads(
        fleet.syncline("nodes", *fleet.fleet_arguments(), "--check", "--json").stdout
    )
    return {
        node["name"]: [
            found for found in node["description"]["cpu_check"]["findings"] if found["processes"]
        ]
        for node in nodes
    }


@pytest.fixture(scope="module")
def crowded_findings(fleet):
    """What the CPU check finds while each rank asks for three threads: a host has one CPU."""
    launch(fleet, "OMP_NUM_THREADS=3")
    found = cpu_findings(fleet)
    fleet.fab("down", "--jobs-only")
    return found


@pytest.fixture(scope="module")
def training(fleet, crowded_findings):
    """The example trains on both hosts."""
    launch(fleet, "OMP_NUM_THREADS=1")
    return fleet


def test_the_cpu_check_finds_too_many_threads_until_that_is_mended(training, crowded_findings):
    assert sorted(crowded_findings) == ["rank-a", "rank-b"]
    for rank, findings in enumerate(crowded_findings.values()):
        (found,) = findings
        assert found["kind"] == "threads-cpus"
        assert found["text"] == "OMP_NUM_THREADS=3: 1 rank asks for 3 threads on 1 CPU"
        assert found["change"] == "OMP_NUM_THREADS=1"
        assert [process["rank"] for process in found["processes"]] == [rank]
    assert cpu_findings(training) == {"rank-a": [], "rank-b": []}


def test_ranks_operators_and_shapes_are_recorded_each_time(training):
    """Attached twice: what was switched on the first time was switched off."""
    for number in (1, 2):
        run = training.record(f"run-{number}", 1.5)
        nodes = load(os.path.join(run, "recording.json"))["nodes"]
        assert [node["state"] for node in nodes] == ["complete", "complete"]
        trainers = [p for n in nodes for p in n["processes"] if "train.py" in p["command_line"]]
        assert sorted(process["rank"] for process in trainers) == [0, 1]
        assert {process["world_size"] for process in trainers} == {2}
        said = training.syncline("nodes", *training.fleet_arguments()).stdout
        assert "python" in said and "without Syncline's hook" not in said, said
        training.syncline("merge", run)
        for tasks in training.timeline_tasks(run).values():
            found = collections.Counter(task.name for task in tasks)
            missing = [name for name in EVERY_STEP if found[name] < 2]
            assert not missing, found
            assert not [name for name in found if not name or name.startswith("name #")]


def test_every_all_reduce_has_its_partner_though_attached_in_the_middle(training):
    """By number, and in truth: of a collective nobody leaves before everybody has entered."""
    run = training.record("run-collectives", 2)
    training.syncline("merge", run)
    report = load(os.path.join(run, "out", "report.json"))
    found = report["collectives"]
    assert [group["ranks"] for group in found["groups"]] == ["0-1"]
    assert found["undecided_launches"] == found["contradicting_the_model"] == 0
    rows = found["rows"]
    whole = [row for row in rows if len(row["members"]) == 2]
    assert len(whole) > 2
    # Ranks are attached milliseconds apart: what one of them missed lies at the ends.
    alone = [row["number"] for row in rows if len(row["members"]) == 1]
    inner = range(whole[0]["number"], whole[-1]["number"] + 1)
    assert [row["number"] for row in whole] == list(inner) and not set(alone) & set(inner)
    bound_ns = sum(node["clock_bound_ns"] for node in report["nodes"])
    for row in whole:
        entered = max(member["entered_ns"] for member in row["members"])
        left = [member["left_ns"] for member in row["members"] if member["left_ns"] is not None]
        assert not left or min(left) >= entered - bound_ns, row


@pytest.fixture(scope="module")
def pipeline(training):
    """Beside it, two stages with several sends in flight, in two groups, that keep a diary."""
    folder = os.path.join(EXAMPLES, "pytorch_pipeline")
    training.fab(
        *("launch", "--job", "pipeline", "--copy", folder, "--port", "2300"),
        *("--ready", "step 100:"),
        *("--command", "env GLOO_SOCKET_IFNAME=eth0 /opt/torch/bin/python train.py --diary diary"),
    )
    return training


def diary_of(host):
    text = host.run(["cat", "/opt/syncline/var/jobs/pipeline/diary"]).stdout
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")]


def arrows(fleet, run):
    """How many begin in the timeline, by name: those of sends and receives."""
    fleet.syncline("merge", run, "--format", "chrome")
    names = collections.Counter()
    for folder, _, files in os.walk(os.path.join(run, "out", "chrome")):
        for file in files:
            for event in load(os.path.join(folder, file))["traceEvents"]:
                begins = event.get("cat") == "flow" and "to" in event["args"]
                if begins and event["name"].startswith("rank "):
                    names[event["name"]] += 1
    return names


def first_number(facts, times_ns):
    """Of the numbers in a diary, the one of the transfer that is recorded at times_ns[0].

    Transfers come in bursts, less than 0.1 ms apart: what tells them is that the diary's times are
    as far from the recorded ones in all of a burst and behind it.
    """

    def apart(first):
        pairs = zip(facts[first:], times_ns)
        differences = sorted(fact["ns"] - ns for fact, ns in pairs)
        low, middle, high = (differences[len(differences) * part // 10] for part in (1, 5, 9))
        return high - low + abs(middle)

    return facts[min(range(len(facts) - len(times_ns) + 1), key=apart)]["number"]


def test_each_receive_belongs_to_its_send(pipeline):
    """By the numbers in the payload, which Syncline does not see."""
    run = pipeline.record("run-pipeline", 4)  # five processes share two processors
    diaries = {host.name: diary_of(host) for host in pipeline.bed.hosts}
    nodes = load(os.path.join(run, "recording.json"))["nodes"]
    zero_ns = {}  # CLOCK_MONOTONIC at timeline zero
    for node in nodes:
        start = node["start"]
        slewed_ns = start["gate_begin_monotonic_ns"] - start["gate_begin_monotonic_raw_ns"]
        zero_ns[node["name"]] = start["requested_monotonic_raw_ns"] + slewed_ns
    drawn = arrows(pipeline, run)
    report = load(os.path.join(run, "out", "report.json"))
    found = report["transfers"]
    assert found["received_before_sent"]["contradicting_the_model"] == found["undecided"] == 0
    channels = collections.defaultdict(list)
    for row in found["rows"]:
        assert {row["send_node"], row["receive_node"]} == {"rank-a", "rank-b"}
        channels[row["group"], row["send_node"], row["receive_node"], row["tag"]].append(row)
    # Activations and gradients, each one way; losses both ways.
    assert len(channels) == 4 and len({group for group, *_ in channels}) == 2, list(channels)
    for (_, sender, receiver, tag), rows in channels.items():
        # The last ones were not waited for any more while it was recorded.
        waited_for = [row["received_ns"] is not None for row in rows]
        assert sum(waited_for) > 10, (sender, receiver, tag, waited_for)
        assert waited_for == sorted(waited_for, reverse=True), (sender, receiver, tag, waited_for)
        rows = rows[: sum(waited_for)]
        name = "stages" if rows[0]["bytes"] > 100 else "losses"
        numbers = []
        for node, kind, key in ((sender, "send", "sent_ns"), (receiver, "receive", "received_ns")):
            facts = [
                fact
                for fact in diaries[node]
                if (fact["kind"], fact["group"], fact["tag"]) == (kind, name, tag)
            ]
            numbers.append(first_number(facts, [row[key] + zero_ns[node] for row in rows]))
        assert numbers[0] == numbers[1], (name, tag)
    # One for each that was waited for, from host to host.
    assert sum(drawn.values()) == sum(row["received_ns"] is not None for row in found["rows"])
    assert {name.split(",")[0] for name in drawn} == {"rank 0 to 1", "rank 1 to 0"}
