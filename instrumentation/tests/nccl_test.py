# SPDX-License-Identifier: Apache-2.0
"""What GPUs do for NCCL's collectives, recorded from ranks that call the plugin as NCCL does.

Usage: nccl_test.py BUILD_DIRECTORY

Witnesses are the ranks themselves: each writes down what it said, and when by the host's clock.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
import time

from lttng_fixture import enter_namespaces

BUILD = os.path.abspath(sys.argv[1])
SYNCLINE = os.path.join(BUILD, "bin", "syncline")
PROGRAM = os.path.join(BUILD, "tests", "nccl_program")
PLUGIN = os.path.join(BUILD, "lib", "libsyncline_nccl.so")
COMMUNICATOR = 0xC0FFEE0000000007
RANKS = 3
INCOMPLETE = 3
CALLS = 512 | 1024  # of the mask: asked for all the time
ALL = CALLS | 2 | 4 | 64
KERNEL_NS = 300_000  # from the last rank's begin on


def syncline(*words, expected=(0,)):
    done = subprocess.run([SYNCLINE, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode in expected, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout


class Job:
    """Ranks of the program, until they are told to stop."""

    def __init__(self, folder, version, late_us, ranks=RANKS, odd=(), environment=None):
        os.makedirs(folder)
        self.folder, self.ranks = folder, ranks
        words = [SYNCLINE, "run", "--nccl", "--job", "nccl", "--rank"]
        self.processes = [
            subprocess.Popen(
                [*words, str(rank), "--", PROGRAM, folder, str(version), str(rank), str(ranks)]
                + [str(late_us), *odd],
                env={**os.environ, **(environment or {})},
            )
            for rank in range(ranks)
        ]
        deadline = time.monotonic() + 60
        while sum(name.startswith("ready") for name in os.listdir(folder)) < ranks:
            assert all(one.poll() is None for one in self.processes), "a rank has ended"
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def record(self, name="run"):
        run = os.path.join(self.folder, name)
        syncline("record", "--for", "2s", "--out", run, expected=(0, INCOMPLETE))
        return run

    def stop(self, mask=CALLS):
        """By rank: {(function, number): (begin, end)} of all that was said while recorded."""
        open(os.path.join(self.folder, "stop"), "w").close()
        for process in self.processes:
            assert process.wait(60) == 0, process.returncode
        truth = []
        for rank in range(self.ranks):
            with open(os.path.join(self.folder, f"truth-{rank}")) as file:
                lines = [line.split() for line in file]
            # No handle for what nobody asked for; and what NCCL is asked for when all is over.
            wanted = ["vain", "0", "mask", str(mask)]
            assert lines[-1] == wanted, lines[-1]
            lines.pop()
            truth.append({(line[0], int(line[1])): (int(line[2]), int(line[3])) for line in lines})
        return truth


def events(run):
    return [json.loads(line) for line in syncline("events", run, "--format", "jsonl").splitlines()]


def recorded(run):
    """By rank: {(function, number): event}; and what else there is, by function."""
    by_rank, odd = collections.defaultdict(dict), collections.Counter()
    calls = {}
    for event in events(run):
        fields = event["fields"]
        if event["event"] == "syncline_device:collective_call":
            calls[fields["pid"], fields["launch"]] = event
        if event["event"] != "syncline_device:collective":
            continue
        assert fields["communicator"] == COMMUNICATOR and fields["description"] == "RING, LL"
        call = calls[fields["pid"], fields["launch"]]  # it was written before
        assert call["fields"]["name"] == fields["name"]
        assert fields["since"] <= call["clock_ns"] <= event["clock_ns"]
        if fields["name"] not in ("AllReduce", "Broadcast"):
            odd[fields["name"]] += 1
            continue
        assert (fields["size"], fields["peer"], fields["bytes"]) == (RANKS, 0, 4096), fields
        key = fields["name"], fields["sequence"]
        assert key not in by_rank[fields["rank"]]
        by_rank[fields["rank"]][key] = fields
    return by_rank, odd


def check_events(found, truth, run):
    """All that a rank said is there, but at the edges of the recording; and it is right."""
    for rank in range(RANKS):
        wanted = truth[rank]
        assert set(found[rank]) <= set(wanted), (rank, run)
        assert len(found[rank]) > 100, (rank, len(found[rank]))
        begin, end = (edge(wanted[key][0] for key in found[rank]) for edge in (min, max))
        between = [key for key, times in wanted.items() if begin < times[0] < end]
        missing = [key for key in between if key not in found[rank]]
        assert not missing, (rank, missing[:5])
        for key, fields in found[rank].items():
            length = fields["end"] - fields["begin"]
            is_so = wanted[key][1] - wanted[key][0]
            assert abs(length - is_so) < 2000 + is_so * 100e-6, (key, length, is_so)


def spans(run):
    """By rank: {(function, number): (begin, bound)} by the trace clock, as the lanes have it."""
    out = run + "-out"
    syncline("merge", run, "--out", out, "--format", "chrome", expected=(0, INCOMPLETE))
    found, begin_of = collections.defaultdict(dict), {}
    for event in events(run):
        if event["event"] == "syncline_device:collective":
            begin_of[event["fields"]["pid"]] = event
    for folder, _, names in os.walk(os.path.join(out, "chrome")):
        for name in names:
            with open(os.path.join(folder, name)) as file:
                listed = json.load(file)["traceEvents"]
            lanes = {
                (event["pid"], event["tid"]): event["args"]["name"]
                for event in listed
                if event.get("ph") == "M" and event["name"] == "thread_name"
            }
            for event in listed:
                if event.get("cat") == "device collective":
                    lane = lanes[event["pid"], event["tid"]]
                    assert f"{COMMUNICATOR:x}" in lane, lane
                    rank = int(lane.split(" rank ")[1].split(" of ")[0])
                    key = event["name"], event["args"]["sequence"]
                    bound = event["args"]["clock bound ns"]
                    found[rank][key] = (event["ts"] * 1000, bound)
    return found


def check_spans(found, truth):
    """Of all ranks one distance between the timeline and the host's clock fits, within bounds."""
    least, most, bounds = -float("inf"), float("inf"), []
    for rank in range(RANKS):
        assert found[rank], rank
        for key, (begin, bound) in found[rank].items():
            apart = begin - truth[rank][key][0]
            least, most = max(least, apart - bound), min(most, apart + bound)
            bounds.append(bound)
    assert least <= most + 2000, (least, most)  # times of that format are rounded to microseconds
    return sorted(bounds)[len(bounds) // 2]


def why(run, expected=(0,)):
    return json.loads(syncline("why", run, "--json", expected=expected))


def versions(work):
    for version in (5, 6):
        job = Job(os.path.join(work, f"v{version}"), version, late_us=1500)
        # Twice: what is left of the first recording is no part of the second.
        runs = [job.record("one"), job.record("two")] if version == 5 else [job.record()]
        truth = job.stop()
        for run in runs:
            found, odd = recorded(run)
            assert not odd, odd
            check_events(found, truth, run)
            bound = check_spans(spans(run), truth)
            print(f"version {version}: clocks within {bound / 1000:.0f} us")
            answer = why(run)
            assert answer["kind"] == "collectives" and answer["verdict"]["kind"] == "late", answer
            (late,) = answer["verdict"]["ranks"]
            assert late["rank"] == RANKS - 1, late
            # What each second has of waits: for the late rank, in every AllReduce.
            rounds = len([key for key in found[0] if key[0] == "AllReduce"])
            waits = late["lead_ns"]["est"] / 1e9 * answer["window_ns"] / rounds
            assert 1.2e6 < waits < 2.2e6, (waits, late)


def healthy(work):
    job = Job(os.path.join(work, "healthy"), 6, late_us=0)
    run = job.record()
    job.stop()
    answer = why(run)
    assert answer["verdict"]["kind"] in ("nobody", "undecided"), answer
    text = syncline("why", run)
    assert "least waits" in text and "LATE" not in text, text


def odd(work):
    job = Job(os.path.join(work, "odd"), 6, late_us=0, odd=("odd",))
    run = job.record()
    truth = job.stop()
    found, others = recorded(run)
    check_events(found, truth, run)
    # Channels of "More" work one after the other: no kernel does so.
    assert set(others) == {"Early"}, others
    # Of "Nothing" and "Unstamped" it is known that they are over, and not when.
    assert losses(run) == {"work of a device whose time is not known"}


def losses(run):
    report = json.loads(syncline("report", run, "--json", expected=(INCOMPLETE,)))
    return {loss["detail"] for node in report["nodes"] for loss in node["losses"]}


def not_told(work):
    """What NCCL cannot be asked without harm, or would tell wrong."""
    cases = (
        ("v7", 7, (), 0, "NCCL 2.31 or newer"),
        ("v4", 4, (), 0, "NCCL 2.27"),
        ("sent", 6, ("sent",), CALLS, "the program sends and receives"),
        ("captured", 6, ("captured",), CALLS, "captures its calls into CUDA graphs"),
    )
    for name, version, odd, mask, reason in cases:
        job = Job(os.path.join(work, name), version, late_us=1500, odd=odd)
        run = job.record()
        assert not any(job.stop(mask)), "it was asked"
        (lost,) = losses(run)
        assert reason in lost, lost
        done = subprocess.run([SYNCLINE, "why", run], capture_output=True, text=True)
        assert done.returncode == INCOMPLETE and reason in done.stderr, done
    job = Job(os.path.join(work, "behind"), 6, late_us=1500, odd=("behind",))
    run = job.record()
    job.stop()
    (lost,) = losses(run)
    assert "NCCL took those of other collectives" in lost, lost
    answer = why(run, expected=(INCOMPLETE,))
    assert answer["reason"] == "clock_unknown", answer


def sends(work):
    """NCCL is asked on in a program that sends: amid a group it must not change."""
    job = Job(os.path.join(work, "sends"), 6, late_us=0, odd=("sends",))
    run = job.record()
    job.stop(mask=ALL)
    name = "syncline_device:collective"
    found = [event["fields"] for event in events(run) if event["event"] == name]
    sent = [fields for fields in found if fields["name"] == "Send"]
    assert len(sent) > 100
    assert all(fields["peer"] == (fields["rank"] + 1) % RANKS for fields in sent)
    assert all(fields["bytes"] == 64 and fields["sequence"] == 2**64 - 1 for fields in sent)
    answer = why(run, expected=(INCOMPLETE,))
    assert answer["reason"] == "peer_to_peer", answer
    # Sends to itself are no loss, and take no places.
    assert syncline("report", run, "--section", "losses").count("none"), run


def other_plugin(work):
    folder = os.path.join(work, "other")
    os.makedirs(folder)
    words = [SYNCLINE, "run", "--nccl", "--", "sh", "-c", "echo $NCCL_PROFILER_PLUGIN"]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        env={**os.environ, "NCCL_PROFILER_PLUGIN": "inspector"},
    )
    assert done.stdout == "inspector\n" and "names another tool (inspector)" in done.stderr, done


def main():
    enter_namespaces()
    with tempfile.TemporaryDirectory(prefix="syncline-nccl-") as work:
        os.environ["SYNCLINE_DATA_DIR"] = os.path.join(work, "data")
        for test in (versions, healthy, odd, not_told, sends, other_plugin):
            test(work)
    print("ok")


if __name__ == "__main__":
    main()
