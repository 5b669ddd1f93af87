# SPDX-License-Identifier: Apache-2.0
"""Clock probes by UDP between two network namespaces whose clocks differ by an exactly known hour.

What must never happen is that a sample excludes the truth; how narrow the interval is depends on
the machine, so that is asserted loosely and printed (pytest -s).
"""

import contextlib
import itertools
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time

import pytest

from tests.integration.fleet import INCOMPLETE, Fleet, load
from tests.integration.probe_pair import (
    ANSWERING,
    ASKING,
    HOUR_NS,
    PORT,
    WALLCLOCK,
    Pair,
    result_of,
    run,
)
from tests.testbed import HostSpec, Testbed

PACKET_BYTES = 80


def measure(pair, seconds, *options):
    responder = pair.answer(seconds + 1, *options)
    asked = result_of(pair.ask(seconds, *options))
    answered = result_of(responder)
    for side in (asked, answered):
        assert side["counters"]["samples_impossible"] == 0
    for source, judged in asked["sources"].items():
        assert judged["samples_that_exclude_the_truth"] == 0, f"{source} stamps are not sound"
        print(f"\n  {source:9} samples {judged['samples']:4}  round trip {judged['round_trip_ns']}"
              f"\n            bound {judged['bound_ns']}  error {judged['error_ns']}")  # fmt: skip
    print(f"  processor {asked['cpu_share']:.2%} asking, {answered['cpu_share']:.2%} answering")
    return asked, answered


@pytest.fixture(params=["direct", "bridge"])
def pair(request):
    made = Pair(request.param == "bridge")
    yield made
    made.close()


@pytest.fixture
def direct():
    made = Pair(False)
    yield made
    made.close()


def test_kernel_stamps(pair):
    asked, _ = measure(pair, 5)
    # The first request of a burst finds the responder without a fresh reading of its wall clock.
    assert set(asked["sources"]) <= {"kernel", "spin", "blocking"}
    assert asked["status"]["rung"] == "kernel"
    # Nothing better is to be had: the pair's devices are virtual.
    assert asked["status"]["reason"].endswith(" has no hardware clock")
    kernel = asked["sources"]["kernel"]
    assert kernel["samples"] > 100
    # The figures to reach are 150 ns and 1 us on an idle machine; a busy one is worse.
    assert kernel["bound_ns"]["p50"] < 3_000
    assert kernel["error_ns"]["p50"] < 1_000


@pytest.mark.parametrize("stamps", ["spin", "blocking"])
def test_user_stamps(direct, stamps):
    asked, _ = measure(direct, 5, "--stamps", stamps)
    # On a busy machine an answer often comes after the spinning has ended.
    assert set(asked["sources"]) <= {stamps, "blocking"}
    assert asked["status"]["reason"].startswith("kernel stamps were not requested")
    assert sum(judged["samples"] for judged in asked["sources"].values()) > 100
    assert min(judged["bound_ns"]["p50"] for judged in asked["sources"].values()) < 500_000


def test_kernel_stamps_on_busy_processors(direct):
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(4)]
    try:
        asked, _ = measure(direct, 5)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert asked["sources"]["kernel"]["samples"] > 40
    assert asked["sources"]["kernel"]["bound_ns"]["p50"] < 5_000


# An odd number of steps, so that both sides get them all; no run of small ones adds up to nothing.
STEPS_NS = (80_000, -5_000_000_000, 20_000, 3_600_000_000_000, -60_000, 40_000, -30_000)


def test_wall_clock_steps_that_nobody_tells_of(direct):
    """The wall clocks of both sides are wrong and jump every few milliseconds, between a packet's
    stamp and its reading too; the kernel knows nothing of it."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        environments = []
        files = []
        for side in ("a", "b"):
            path = os.path.join(folder, side)
            with open(path, "wb") as file:
                file.write(struct.pack("=q", 123_456_789_012))
            files.append(stack.enter_context(open(path, "r+b", buffering=0)))
            environments.append({"LD_PRELOAD": WALLCLOCK, "SYNCLINE_WALLCLOCK_FILE": path})
        responder = direct.answer(13, environment=environments[0])
        prober = direct.ask(12, environment=environments[1])
        wrong_ns = [123_456_789_012] * 2
        steps = 0
        sizes = itertools.cycle(STEPS_NS)
        while prober.poll() is None:
            for side, file in enumerate(files):
                wrong_ns[side] += next(sizes)
                os.pwrite(file.fileno(), struct.pack("=q", wrong_ns[side]), 0)
            steps += 1
            time.sleep(0.003)
        asked = result_of(prober)
        answered = result_of(responder)
    contradictions = [x["counters"]["wall_contradictions"] for x in (asked, answered)]
    print(f"\n  {steps} steps, contradictions {contradictions}")
    for source, judged in asked["sources"].items():
        assert judged["samples_that_exclude_the_truth"] == 0, f"{source} stamps are not sound"
    assert steps > 200
    assert min(contradictions) > 0, "the steps were not noticed: the test tests nothing"
    assert asked["sources"]["kernel"]["samples"] > 50


@contextlib.contextmanager
def in_namespace(name):
    """This process's new sockets are in the namespace."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    other = os.open(f"/var/run/netns/{name}", os.O_RDONLY)
    set_namespace = __import__("ctypes").CDLL(None, use_errno=True).setns
    try:
        assert set_namespace(other, 0) == 0
        yield
    finally:
        assert set_namespace(own, 0) == 0
        os.close(own)
        os.close(other)


def test_packets_of_strangers_are_dropped_and_not_answered(direct):
    with in_namespace(direct.answering):
        sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        sniffer.bind(("eth0", 0x0800))
        sniffer.settimeout(10)
    with in_namespace(direct.asking):
        stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        stranger.bind((ASKING, 0))
    responder = direct.answer(5)
    prober = direct.ask(4)
    target = (ANSWERING, PORT)
    genuine = None
    while genuine is None:
        packet = sniffer.recv(2048)
        if packet[9] == 17 and packet[16:20] == socket.inet_aton(ANSWERING):
            genuine = packet[28:]
    assert len(genuine) == PACKET_BYTES
    time.sleep(0.5)  # the window has moved on
    forged = bytearray(genuine)
    forged[24:32] = struct.pack("<Q", 1_000_000)  # as if from far ahead
    stranger.sendto(genuine, target)
    stranger.sendto(forged, target)
    stranger.sendto(genuine + bytes(1), target)
    stranger.sendto(bytes(1400), target)
    stranger.sendto(b"", target)
    stranger.sendto(bytes(PACKET_BYTES), target)
    stranger.settimeout(1)
    with pytest.raises(TimeoutError):
        stranger.recv(2048)
    asked = result_of(prober)
    counters = result_of(responder)["counters"]
    assert counters["replayed"] == 1
    assert counters["forged"] == 1
    assert counters["wrong_size"] == 3
    assert counters["malformed"] == 1
    assert counters["packets_sent"] == counters["packets_received"] - 6
    assert asked["counters"]["samples"] > 200, "the strangers disturbed the probing"
    sniffer.close()
    stranger.close()


def test_udp_that_stops_getting_through_is_reported(direct):
    responder = direct.answer(9)
    prober = direct.ask(8)
    time.sleep(1.5)
    run("ip", "-n", direct.answering, "link", "set", "eth0", "down")
    asked = result_of(prober)
    answered = result_of(responder)
    assert asked["status"]["silent"]
    assert f"no answer from peer (UDP {ANSWERING}:{PORT})" in asked["status"]["silence"]
    assert answered["status"]["silent"]
    for judged in asked["sources"].values():
        assert judged["samples_that_exclude_the_truth"] == 0
    assert asked["counters"]["samples"] > 30


def test_a_responder_that_stands_still_spoils_nothing(direct):
    responder = direct.answer(6)
    prober = direct.ask(5)
    time.sleep(1)
    child = responder.pid
    with contextlib.suppress(subprocess.CalledProcessError):
        found = subprocess.run(["pgrep", "-P", str(child)], capture_output=True, text=True)
        child = int(found.stdout.split()[0])
    for _ in range(5):
        os.kill(child, signal.SIGSTOP)
        time.sleep(0.2)
        os.kill(child, signal.SIGCONT)
        time.sleep(0.2)
    asked = result_of(prober)
    result_of(responder)
    for source, judged in asked["sources"].items():
        assert judged["samples_that_exclude_the_truth"] == 0, f"{source} stamps are not sound"
    assert asked["counters"]["samples"] > 150


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    specs = [HostSpec("left"), HostSpec("right"), HostSpec("third")]
    with Testbed(specs, seed=12) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("probes"))
        made.up()
        yield made
        made.fab("down")


def live_clocks(fleet):
    """What `clocks --live` says, with the edges and probes by (local, remote)."""
    arguments = ["clocks", "--live", "--json", *fleet.fleet_arguments()]
    found = json.loads(fleet.syncline(*arguments).stdout)
    for kind in ("edges", "probes"):
        found[kind] = {(one["local"], one["remote"]): one for one in found[kind]}
    return found


def test_a_cluster_is_judged_before_anything_is_recorded(fleet):
    """`clocks --live` probes like a recording: over gRPC, and over UDP between the nodes."""
    live = live_clocks(fleet)
    names = ["left", "right", "third"]
    assert {("coordinator", name) for name in names} <= set(live["edges"])
    for local, remote in itertools.combinations(names, 2):
        edge = live["edges"][local, remote]
        assert edge["source"] == "kernel"
        assert live["probes"][local, remote]["text"].startswith("kernel stamps (")
        truth_ns = fleet.bed.monotonic_difference_ns(local, remote)
        assert abs(edge["offset_ns"] - truth_ns) <= edge["bound_worst_ns"] < 1_000_000
        slower = live["edges"]["coordinator", remote]["bound_median_ns"]
        assert edge["bound_median_ns"] < slower, "UDP says no more than gRPC"
    assert len(live["pairs"]) == 3


def test_samples_that_are_cut_off_are_said(fleet):
    """How many are left of how many; the stored model, which knew them all, places the nodes."""
    recording = fleet.record("run-cut", 2, fine=(INCOMPLETE,))
    # No program runs: clocks are all that this recording has, and it says so.
    assert "no node had a program that can be traced" in fleet.last.stdout
    path = os.path.join(recording, "clocks", "left--right.samples")
    models = load(os.path.join(recording, "clocks", "models.json"))
    left, right = (models["nodes"].index(name) for name in ("left", "right"))
    (edge,) = [e for e in models["edges"] if (e["local"], e["remote"]) == (left, right)]
    both_asked = fleet.clocks(recording)["edges"]["left", "right"]["samples_kept"]
    assert edge["samples"] + edge["samples_of_remote"] == both_asked
    assert min(edge["samples"], edge["samples_of_remote"]) > 50, "only one of the two asked"
    os.truncate(path, os.path.getsize(path) // 2)
    for command in ("clocks", "merge"):
        told = fleet.syncline(command, recording, fine=(INCOMPLETE,)).stdout
        assert "left--right.samples was cut" in told
        assert f"of its {edge['samples']} samples are left" in told
    refitted = fleet.syncline("merge", recording, "--refit", fine=(INCOMPLETE,)).stdout
    assert "left--right.samples was cut off" in refitted


def test_a_firewall_leaves_the_edge_to_grpc(fleet):
    """UDP into one host is swallowed: its pairs are told, the others probe, all are true."""
    namespace = fleet.bed["right"].namespace
    run("ip", "-n", namespace, "xfrm", "policy", "add",
        "proto", "17", "dir", "in", "action", "block")  # fmt: skip
    recording = fleet.record("run-firewall", 6, fine=(INCOMPLETE,))  # no program runs
    clocks = fleet.clocks(recording)
    texts = {(probe["local"], probe["remote"]): probe["text"] for probe in clocks["probes"]}
    for pair in (("left", "right"), ("right", "third")):
        assert pair not in clocks["edges"]
        assert texts[pair].startswith("no samples over UDP, gRPC probes alone: "), texts[pair]
        assert "is UDP blocked between the nodes" in texts[pair]
        lowest, highest = fleet.clock_difference(recording, *pair)
        assert lowest <= fleet.bed.monotonic_difference_ns(*pair) <= highest
    assert clocks["edges"]["left", "third"]["source"] == "kernel"
    assert texts["left", "third"].startswith("kernel stamps (")
    # And before a recording, too.
    live = live_clocks(fleet)
    assert ("left", "right") not in live["edges"] and ("coordinator", "right") in live["edges"]
    told = live["probes"]["left", "right"]["text"]
    assert told.startswith("no samples over UDP, gRPC probes alone: "), told
