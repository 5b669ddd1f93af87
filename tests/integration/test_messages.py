# SPDX-License-Identifier: Apache-2.0
"""Messages of unmodified jobs, against each other and against a packet capture of the same run."""

import collections
import contextlib
import os
import re
import signal
import subprocess
import time

import pytest

from tests.integration import raw_trace
from tests.integration.fleet import EXAMPLES, HOST_TENSORFLOW, TENSORFLOW, Fleet, load
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import REPOSITORY

TORCH = os.path.join(REPOSITORY, ".venv-torch")
CAPTURE_FIELDS = (
    "frame.time_epoch ip.src tcp.srcport ip.dst tcp.dstport tcp.flags.syn tcp.seq tcp.len".split()
)
# Packets are stamped in microseconds, by a clock that is compared with the hosts' once.
STAMP_SLACK_NS = 100_000


def machine_wall_offset_ns():
    """CLOCK_REALTIME - CLOCK_MONOTONIC of this machine: what packets are stamped with."""
    readings = []
    for _ in range(10):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        readings.append((after - before, wall - (before + after) // 2))
    return min(readings)[1]


class Capture:
    """dumpcap on one host's own interface, from before its connections begin."""

    def __init__(self, host, path):
        self.path = str(path)
        # In the host's network alone: the file is the machine's.
        enter = ["nsenter", "--target", str(host.pid), "--net"]
        self.process = subprocess.Popen(
            [*enter, *"dumpcap -q -i eth0 -s 96 -B 64 -f tcp -w".split(), self.path],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        said = []
        for line in self.process.stdout:
            said.append(line)
            if line.startswith("File:"):  # said once it captures
                return
        raise AssertionError(f"dumpcap does not capture: {said}")

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate(timeout=30)[0]
        assert re.search(r": \d+/0 \(pcap", said), said  # received / dropped

    def streams(self):
        """(from, to) -> [(position, bytes, machine's monotonic ns)] of what was sent first."""
        fields = [word for name in CAPTURE_FIELDS for word in ("-e", name)]
        options = ["-o", "tcp.relative_sequence_numbers:FALSE"]
        command = ["tshark", "-r", self.path, *options, "-T", "fields", *fields]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
        offset_ns = machine_wall_offset_ns()
        first, streams = {}, collections.defaultdict(list)
        for line in done.stdout.splitlines():
            epoch, source, source_port, target, target_port, syn, sequence, count = line.split("\t")
            ends = (f"{source}:{source_port}", f"{target}:{target_port}")
            if syn in ("1", "True"):
                first[ends] = int(sequence) + 1
                streams[ends] = []
            elif int(count) and ends in first:
                known = streams[ends][-1][0] if streams[ends] else 0
                position = unwrapped(int(sequence) - first[ends], known)
                when_ns = raw_trace.nanoseconds(epoch) - offset_ns
                streams[ends].append((position, int(count), when_ns))
        return streams


def unwrapped(position, near):
    """Sequence numbers have 32 bits."""
    wrap = 1 << 32
    return position + round((near - position) / wrap) * wrap


class Ends:
    """What one node recorded of its connections, by (local, remote)."""

    def __init__(self, run, node):
        self.calls = collections.defaultdict(lambda: {"send": [], "receive": []})
        addresses = {}
        self.doubts = 0
        for event in raw_trace.read_events(raw_trace.trace_directory(run, node)):
            fields = event.fields
            kind = event.name.removeprefix("syncline_net:")
            if kind == "connection":
                addresses[fields["connection"]] = (
                    f"{fields['local']}:{fields['local_port']}",
                    f"{fields['remote']}:{fields['remote_port']}",
                )
            elif kind in ("send", "receive"):
                call = (fields["begin"], fields["bytes"], fields["since"], event.time_ns)
                self.calls[addresses[fields["connection"]]][kind].append(call)
            elif kind in ("doubt", "send_unplaced", "receive_unplaced"):
                self.doubts += 1


def covered(ranges):
    """The one interval that ranges cover without a gap or an overlap."""
    at = None
    for begin, count, *_ in sorted(ranges):
        assert at is None or begin == at, "a gap, or bytes twice"
        at = begin + count
    return min(begin for begin, *_ in ranges), at


def inside(ranges, interval):
    """How many bytes of the interval they have."""
    return sum(
        max(0, min(begin + count, interval[1]) - max(begin, interval[0]))
        for begin, count, *_ in ranges
    )


def crossing(one, other):
    """[(sends, receives)] of both directions of the connections that both recorded."""
    found = []
    for local, remote in one.calls:
        if (remote, local) not in other.calls:
            continue
        here, there = one.calls[local, remote], other.calls[remote, local]
        found.append(((local, remote), here["send"], there["receive"]))
    return [(ends, sends, receives) for ends, sends, receives in found if sends and receives]


def check_against_each_other(fleet, run, minimum):
    """Bytes sent are bytes received, in order of time; returns what crossed."""
    names = [node["name"] for node in load(os.path.join(run, "recording.json"))["nodes"]]
    ends = {name: Ends(run, name) for name in names}
    assert all(end.doubts == 0 for end in ends.values())
    crossed = []
    for sender, receiver in (names, names[::-1]):
        ahead_ns = fleet.bed.monotonic_difference_ns(sender, receiver)
        for addresses, sends, receives in crossing(ends[sender], ends[receiver]):
            both = [covered(sends), covered(receives)]
            common = (max(b for b, _ in both), min(e for _, e in both))
            assert inside(sends, common) == inside(receives, common) == common[1] - common[0]
            ends_at = {}
            for begin, count, _, until in receives:
                ends_at[begin] = (begin + count, until - ahead_ns)
            starts = sorted(ends_at)
            crossed.append((sender, addresses, sends, [(b, *ends_at[b]) for b in starts]))
    assert sum(len(sends) for _, _, sends, _ in crossed) > minimum
    for _, addresses, sends, receives in crossed:
        at = 0
        for begin, _, since, _ in sends:
            while at < len(receives) and receives[at][1] <= begin:
                at += 1
            if at < len(receives) and receives[at][0] <= begin:
                assert since <= receives[at][2], (addresses, begin)
    return crossed


def check_report(run, minimum):
    messages = load(os.path.join(run, "out", "report.json"))["messages"]
    assert messages["matched_across_nodes"] > minimum
    backwards = messages["received_before_sent"]
    assert backwards["here"] == backwards["contradicting_the_model"] == 0
    assert backwards["checked_against_the_model"] > 0
    for stream in messages["streams"]:
        assert stream["unplaced_bytes"] == 0
        if stream["messages"] and stream["send_node"] != stream["receive_node"]:
            flight = stream["flight"]
            assert flight["lo_ns"] <= flight["est_ns"] <= flight["hi_ns"]
    return messages


@pytest.fixture(scope="module")
def tensorflow(tmp_path_factory):
    specs = [HostSpec("master-0", role="master"), HostSpec("worker-0", role="worker")]
    with Testbed(specs, seed=51, binds={HOST_TENSORFLOW: TENSORFLOW}) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("messages"))
        made.up()
        yield made
        made.fab("down")


@contextlib.contextmanager
def captured(fleet):
    """A capture on each host while the body runs; their streams are read afterwards."""
    captures = {}
    try:
        for host in fleet.bed.hosts:
            captures[host.name] = Capture(host, os.path.join(fleet.work, f"{host.name}.pcapng"))
        yield captures
        for capture in captures.values():
            capture.stop()
    finally:
        for capture in captures.values():
            if capture.process.poll() is None:
                capture.process.kill()
                capture.process.wait()


def test_tensorflows_messages_agree_with_a_packet_capture(tensorflow):
    with captured(tensorflow) as captures:
        tensorflow.launch_tensorflow()
        run = tensorflow.record("run-messages", 2)
    crossed = check_against_each_other(tensorflow, run, 100)
    compared = 0
    for sender, addresses, sends, receives in crossed:
        packets = captures[sender].streams()[addresses]
        interval = covered(sends)
        assert inside(without_repeats(packets), interval) == interval[1] - interval[0]
        offset_ns = tensorflow.bed[sender].spec.monotonic_offset_ns
        first_at = {}
        for position, count, when_ns in packets:
            first_at.setdefault(position, (position + count, when_ns + offset_ns))
        starts = sorted(first_at)
        compared += compare_times(sends, receives, [(s, *first_at[s]) for s in starts])
    assert compared > 100
    tensorflow.syncline("merge", run)
    check_report(run, 100)


def without_repeats(packets):
    """Segments that were sent again carry nothing new."""
    at, found = 0, []
    for position, count, when_ns in sorted(packets):
        new = max(at, position)
        if position + count > new:
            found.append((new, position + count - new, when_ns))
        at = max(at, position + count)
    return found


def compare_times(sends, receives, packets):
    """The first byte of a message is on the wire between our two times; how many were compared."""
    compared = packet = receive = 0
    for begin, _, since, _ in sends:
        while packet < len(packets) and packets[packet][1] <= begin:
            packet += 1
        while receive < len(receives) and receives[receive][1] <= begin:
            receive += 1
        if packet == len(packets) or receive == len(receives):
            break
        if packets[packet][0] > begin or receives[receive][0] > begin:
            continue
        assert since - STAMP_SLACK_NS <= packets[packet][2], begin
        assert packets[packet][2] <= receives[receive][2] + STAMP_SLACK_NS, begin
        compared += 1
    return compared


def test_messages_can_be_left_out(tensorflow):
    host = tensorflow.bed.hosts[0]
    for options, expected in (([], 1), (["--no-messages"], 0)):
        run = ["/opt/syncline/bin/syncline", "run", *options, "--", "env"]
        assert host.run(run).stdout.count("libsyncline_net.so") == expected


def test_refit_takes_messages_for_facts(tensorflow):
    run = os.path.join(tensorflow.work, "run-messages")
    tensorflow.syncline("merge", run)
    before = check_report(run, 100)
    tensorflow.syncline("merge", run, "--refit")
    after = check_report(run, 100)

    def bounds(messages):
        return {
            (stream["from"], stream["to"]): stream["flight"]["hi_ns"] - stream["flight"]["lo_ns"]
            for stream in messages["streams"]
            if stream["messages"] and stream["send_node"] != stream["receive_node"]
        }

    assert bounds(before).keys() == bounds(after).keys()
    for stream, width_ns in bounds(after).items():
        assert width_ns <= bounds(before)[stream] + 1000, stream


@pytest.fixture(scope="module")
def torch(tmp_path_factory):
    if not os.path.isdir(TORCH):
        pytest.skip("no .venv-torch: scripts/setup --torch makes it")
    specs = [HostSpec("rank-a"), HostSpec("rank-b")]
    with Testbed(specs, seed=52, binds={"/opt/torch": TORCH}) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("gloo"))
        made.up()
        yield made
        made.fab("down")


def test_gloos_messages_are_the_same_on_both_ends(torch):
    torch.fab(
        *("launch", "--copy", os.path.join(EXAMPLES, "pytorch_ddp"), "--ready", "step 100:"),
        *("--command", "env GLOO_SOCKET_IFNAME=eth0 /opt/torch/bin/python train.py"),
    )
    run = torch.record("run-gloo", 2)
    check_against_each_other(torch, run, 100)
    torch.syncline("merge", run)
    check_report(run, 100)
