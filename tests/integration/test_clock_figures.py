# SPDX-License-Identifier: Apache-2.0
"""How well clocks can be known here, against the truth: docs/clock-model.md has the figures.

One side's clocks are an hour ahead, drift by 100 ppm and wander by 0.1 ppm. What must never happen
is that the truth is outside; how narrow the bound is depends on the machine and on what else it
does, so that is asserted loosely and printed (pytest -s).
"""

import contextlib
import os
import subprocess
import time

import pytest

from tests.integration.probe_pair import (
    ASKING,
    HOUR_NS,
    PORT,
    RELAYING,
    WALLCLOCK,
    Pair,
    end_agent,
    judge,
    result_of,
)

SECONDS = float(os.environ.get("SYNCLINE_FIGURES_SECONDS", "8"))
DRIFT_PPB, WANDER_PPB, PERIOD_NS = 100_000, 100, 60_000_000_000


def drift_from_now():
    """The drift of the side that is ahead, for the judge and as its environment."""
    anchor_ns = time.monotonic_ns() + HOUR_NS
    drift = f"{anchor_ns} {DRIFT_PPB} {WANDER_PPB} {PERIOD_NS}"
    return drift, {"LD_PRELOAD": WALLCLOCK, "SYNCLINE_TESTBED_DRIFT": drift}


def check(name, samples, drift, more=""):
    """Prints what a model of the samples is worth."""
    judged = judge(samples, drift)
    print(
        f"\n{name}: error p99 {judged['error_ns']['p99']} ns, bound p50 {judged['bound_ns']['p50']}"
        f" p99 {judged['bound_ns']['p99']} ns, one-way minima {judged['one_way_minima_ns']},"
        f" samples {judged['samples_by_source']}{more}"
    )
    assert judged["outside"] == 0, "the truth is not inside the bound"
    assert judged["samples"] > 50
    drifted = abs(judged["drift_ppb"] - DRIFT_PPB) < 5_000
    assert drifted, "the clocks do not drift: nothing is tested"
    return judged


def measure(pair, path, name, *options, relay=None, both=True):
    """A model of a few seconds of probes, judged. Each asks the other, as in small fleets."""
    drift, drifting = drift_from_now()
    samples, answers_to = [str(path / "samples")], []
    keep = ["--samples", samples[0]]
    if both:
        samples.append(str(path / "peers_samples"))
        answers_to = ["--both", "--peer", f"{ASKING}:{PORT}"]
        keep += ["--both", "--peers-samples", samples[1]]
    with contextlib.ExitStack() as stack:
        way = {}
        if relay:
            relaying = stack.enter_context(pair.relay(*relay))
            stack.callback(relaying.kill)
            way = {"by_way_of": RELAYING}
        responder = pair.answer(SECONDS + 1, *options, *answers_to, environment=drifting)
        asked = result_of(pair.ask(SECONDS, *options, *keep, **way))
        result_of(responder)
    return check(name, samples, drift, f", processor {asked['cpu_share']:.2%}")


@pytest.fixture
def direct():
    made = Pair(False)
    yield made
    made.close()


@pytest.fixture
def bridged():
    made = Pair(True)
    yield made
    made.close()


def test_kernel_stamps_on_one_wire(direct, tmp_path):
    judged = measure(direct, tmp_path, "veth pair, kernel stamps")
    assert judged["bound_ns"]["p50"] < 3_000 and judged["error_ns"]["p50"] < 1_000


def test_kernel_stamps_across_a_bridge(bridged, tmp_path):
    judged = measure(bridged, tmp_path, "bridge, kernel stamps")
    assert judged["bound_ns"]["p50"] < 10_000 and judged["error_ns"]["p50"] < 2_000


def test_kernel_stamps_across_a_bridge_asked_from_one_side(bridged, tmp_path):
    """As the leaves of a large fleet are."""
    judged = measure(bridged, tmp_path, "bridge, asked from one side", both=False)
    assert judged["bound_ns"]["p50"] < 10_000 and judged["error_ns"]["p50"] < 2_000


def test_kernel_stamps_while_the_processors_are_busy(direct, tmp_path):
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(4)]
    try:
        judged = measure(direct, tmp_path, "veth pair, kernel stamps, four busy loops")
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert judged["bound_ns"]["p50"] < 10_000


def test_user_stamps_blocking(direct, tmp_path):
    name = "veth pair, user stamps, blocking"
    assert measure(direct, tmp_path, name, "--stamps", "blocking")["bound_ns"]["p50"] < 500_000


def test_user_stamps_spinning(tmp_path):
    pair = Pair(False, own_processors=len(os.sched_getaffinity(0)) > 1)
    try:
        judged = measure(pair, tmp_path, "veth pair, user stamps, spinning", "--stamps", "spin")
    finally:
        pair.close()
    assert judged["bound_ns"]["p50"] < 500_000


def test_the_grpc_stream_alone(direct, tmp_path):
    """With TLS, as always: what is left where UDP does not get through."""
    drift, drifting = drift_from_now()
    agent = direct.agent(str(tmp_path), drifting)
    samples = str(tmp_path / "samples")
    try:
        direct.ask_over_grpc(str(tmp_path), samples, SECONDS)
        assert agent.poll() is None, "the agent ended by itself"
    finally:
        end_agent(agent)
    judged = check("veth pair, gRPC stream with TLS", [samples], drift)
    assert judged["bound_ns"]["p50"] < 2_000_000


def test_jitter_on_both_ways_alike(bridged, tmp_path):
    judged = measure(bridged, tmp_path, "relay 50 us, jitter 20 us", relay=(50, 50, 20), both=False)
    least_ns = sum(judged["one_way_minima_ns"].values()) / 2
    assert least_ns > 50_000, "the relay delays nothing"
    assert judged["error_ns"]["p50"] < 50_000 and judged["bound_ns"]["p50"] < 4 * least_ns


def test_one_way_that_is_longer_is_inside_the_bound(bridged, tmp_path):
    """Half of the difference is what the estimate must be wrong by: nothing tells it."""
    judged = measure(bridged, tmp_path, "relay 60/40 us", relay=(60, 40, 0), both=False)
    minima_ns = judged["one_way_minima_ns"]
    assert minima_ns["out"] > 60_000 and 40_000 < minima_ns["back"] < 60_000
    half_ns = (minima_ns["out"] - minima_ns["back"]) / 2
    assert abs(judged["error_ns"]["p50"] - half_ns) < 3_000
