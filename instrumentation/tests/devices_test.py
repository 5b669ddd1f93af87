# SPDX-License-Identifier: Apache-2.0
"""What devices do, recorded for real: OpenCL on a driver for CPUs, CUDA, Level Zero and ROCm on
drivers of the tests'.

Usage: devices_test.py BUILD_DIRECTORY (opencl | cuda | level_zero | rocm)
"""

import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from lttng_fixture import SKIPPED, enter_namespaces

BUILD = os.path.abspath(sys.argv[1])
SYNCLINE = os.path.join(BUILD, "bin", "syncline")
FAKES = os.path.join(BUILD, "tests", "fake_cuda")
FAKE_ROCM = os.path.join(BUILD, "tests", "fake_rocm")
TORCH = os.path.join(FAKES, "libtorch_fake.so")
INCOMPLETE = 3
COMMANDS_OF_STEP = 4  # of a thread, in both programs
LATE_NS = 300_000_000  # between what a device did and the end of a recording: none is lost before


def syncline(*words, expected=(0,)):
    done = subprocess.run([SYNCLINE, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode in expected, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout


def events(run):
    return [json.loads(line) for line in syncline("events", run, "--format", "jsonl").splitlines()]


def started(words, folder, environment=None):
    program = subprocess.Popen(words, env={**os.environ, **(environment or {})})
    deadline = time.monotonic() + 60
    while not any(name.startswith("ready") for name in os.listdir(folder)):
        if program.poll() == SKIPPED:
            print("skipped: there is no OpenCL driver (pocl-opencl-icd, ocl-icd-libopencl1)")
            sys.exit(SKIPPED)
        assert program.poll() is None and time.monotonic() < deadline, program.returncode
        time.sleep(0.02)
    return program


def stop(folder, programs):
    open(os.path.join(folder, "stop"), "w").close()
    for program in programs:
        assert program.wait(30) == 0


def check_events(found):
    """Each piece of work has its call, which was before it; (work, call) by process."""
    calls, pairs = {}, collections.defaultdict(list)
    for event in found:
        fields = event["fields"]
        if event["event"] == "syncline_device:launch":
            calls[fields["pid"], fields["launch"]] = event
        elif event["event"] == "syncline_device:work":
            call = calls[fields["pid"], fields["launch"]]  # it was written before
            begin, end = fields["begin"], fields["end"]
            bound = fields["bound"]
            assert call["clock_ns"] - bound <= begin <= end <= event["clock_ns"] + bound, event
            pairs[fields["pid"]].append((event, call))
    last = max(event["clock_ns"] for event in found)
    answered = {(pid, call["fields"]["launch"]) for pid, of in pairs.items() for _, call in of}
    lost = [call for key, call in calls.items() if key not in answered]
    early = [call for call in lost if call["clock_ns"] < last - LATE_NS]
    assert not early, (len(early), early[:3])
    return pairs, len(lost)


def events_of(out):
    """(event, name of its lane) of each event of Chrome's files."""
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
                yield event, lanes.get((event["pid"], event.get("tid")))


def spans(run, out, expected=(0,)):
    """(process, lane, name, begin, end, task) of each span on a device."""
    syncline("merge", run, "--out", out, "--format", "chrome", expected=expected)
    found = []
    for event, lane in events_of(out):
        if event.get("cat", "").startswith("device "):
            begin = event["ts"]
            task = event["args"].get("operator")
            found.append((event["pid"], lane, event["name"], begin, begin + event["dur"], task))
    return found


def check_steps(out, device):
    """The report's table of a device is drawn: a span for each step, whose parts add up to it."""
    wanted = "step of a device"
    found = [(event, lane) for event, lane in events_of(out) if event.get("cat") == wanted]
    assert {lane for _, lane in found} == {device["device"] + " · steps"}, found[:3]
    assert [event["name"] for event, _ in found] == [step["name"] for step in device["steps"]]
    for (event, _), step in zip(found, device["steps"]):
        parts = event["args"]
        assert parts["kernels, copies and fills"] == step["work"], (parts, step)
        assert parts["computing, ns"] == step["computing_ns"], (parts, step)
        names = ("computing", "exposed communication", "exposed copies", "idle before a launch")
        names += ("idle after the launch", "idle, launch not known")
        whole_ns = sum(parts.get(name + ", ns", 0) for name in names)
        assert abs(whole_ns - 1000 * event["dur"]) <= 1, (parts, event)


def check_pieces(run, out):
    """A timeline that is written in pieces has the steps, too."""
    syncline("merge", run, "--out", out, "--shard-size", "50000")
    for name in ("timeline.perfetto-trace", os.path.join("timeline", "001.perfetto-trace")):
        with open(os.path.join(out, name), "rb") as file:
            assert "GPU 1 · steps".encode() in file.read(), name


def check_lanes(found):
    """Nothing on a queue overlaps."""
    ends = {}
    for process, lane, _, begin, end, _ in sorted(found, key=lambda span: span[3]):
        assert ends.get((process, lane), 0) <= begin + 0.001, (process, lane)
        ends[process, lane] = end


def check_tasks(found, wanted):
    """`wanted`: task by name. Both all there, and right; how many of each.

    A recording can begin within a step. What is launched directly in a task that was open then has
    no task, because nothing tells which one it was.
    """
    counts = collections.Counter()
    begun = collections.Counter()  # commands of the step that was open, by lane; None: it is over
    for process, lane, name, _, _, task in sorted(found, key=lambda span: span[3]):
        key = (process, lane)
        if task == "step":
            begun[key] = None
        elif begun[key] is not None:
            begun[key] += 1
            assert begun[key] < COMMANDS_OF_STEP, key
            task = task or wanted[name]
        counts[name, task] += 1
    assert set(counts) == set(wanted.items()), counts
    return counts


def opencl(work):
    program = os.path.join(BUILD, "tests", "opencl_program")
    run = os.path.join(work, "run")
    words = [SYNCLINE, "run", "--devices", "--job", "cl", "--rank"]
    environment = {"POCL_CACHE_DIR": os.path.join(work, "pocl")}
    programs = []
    for rank in "01":
        folder = os.path.join(work, "rank" + rank)
        os.makedirs(folder)
        command = [*words, rank, "--", program, folder, "1000000", rank]
        programs.append((started(command, folder, environment), folder))
        open(os.path.join(folder, "go"), "w").close()
    syncline("record", "--for", "3s", "--out", run)
    for one, folder in programs:
        stop(folder, [one])
        with open(os.path.join(folder, f"truth-{folder[-1]}.txt")) as file:
            steps, wrong, odd = (int(word) for word in file.read().split()[1::2])
        assert steps > 20 and wrong == 0 and odd == 0, (steps, wrong, odd)
    pairs, _ = check_events(events(run))
    assert len(pairs) == 2, list(pairs)
    bytes_moved = {event["fields"]["bytes"] for of in pairs.values() for event, _ in of}
    assert bytes_moved == {0, 4 << 16}, bytes_moved
    found = spans(run, os.path.join(work, "out"))
    check_lanes(found)
    counts = check_tasks(
        found,
        {
            "scale_kernel": "scale",
            "shift_kernel": "shift",
            "write buffer": "step",
            "read buffer": "step",
        },
    )
    assert sum(counts.values()) == sum(len(of) for of in pairs.values())
    # Each queue takes its own commands: a thread has one, a process two threads.
    assert {lane[-7:] for _, lane, *_ in found} == {"queue 1", "queue 2"}
    report = json.loads(syncline("report", run, "--json"))
    assert report["complete"] and len(report["devices"]) == 2, report["devices"]
    for device in report["devices"]:
        assert device["steps_by"] == "task" and len(device["steps"]) > 5, device
        assert device["without_launch"] == device["outside_operators"] == 0, device
        parts = ("computing_ns", "exposed_communication_ns", "exposed_copies_ns", "idle_ns")
        for step in device["steps"]:
            assert sum(step[part] for part in parts) == step["end_ns"] - step["begin_ns"], step


def cuda_run(work, name, environment=None, arguments=(), recordings=1):
    folder = os.path.join(work, name)
    os.makedirs(folder)
    words = [SYNCLINE, "run", "--devices", "--", os.path.join(FAKES, "cuda_program"), folder]
    environment = {"LD_LIBRARY_PATH": FAKES, **(environment or {})}
    program = started([*words, *arguments], folder, environment)
    runs = []
    for number in range(recordings):
        runs.append(os.path.join(folder, f"run{number}"))
        syncline("record", "--for", "1s", "--out", runs[-1])
    stop(folder, [program])
    return runs


def losses(run):
    report = json.loads(syncline("report", run, "--json", expected=(INCOMPLETE,)))
    return " ".join(loss["detail"] for node in report["nodes"] for loss in node["losses"])


def cuda(work):
    wanted = {"copy host to device": "step", "copy GPU 1 to GPU 0": "step", "fill": "step"}
    for thread in "01":
        wanted |= {f"multiply_{thread}": "multiply", f"add_{thread}": "add"}
    # Twice: what is registered with CUPTI stays from the first time.
    for run in cuda_run(work, "both", recordings=2):
        pairs, lost = check_events(events(run))
        (of,) = pairs.values()
        assert len(of) > 200 and lost < len(of) / 4, (len(of), lost)
        found = spans(run, run + "-out")
        check_lanes(found)
        check_tasks(found, wanted)
        for _, lane, name, begin, end, _ in found:
            if "_" in name:
                assert lane[-1] == ("8" if name.endswith("_1") else "7"), (lane, name)
            length = {"multiply": 300, "add": 100}.get(name.split("_")[0], end - begin)
            assert abs(end - begin - length) < 0.01, (name, end - begin)
        (device,) = json.loads(syncline("report", run, "--json"))["devices"]
        assert device["device"] == "GPU 1" and len(device["steps"]) > 20, device["device"]
        check_steps(run + "-out", device)
        assert device["unfinished"] == lost, (device["unfinished"], lost)
    check_pieces(run, run + "-pieces")
    (run,) = cuda_run(work, "busy", {"FAKE_CUPTI_BUSY": "1"})
    assert "another tool uses it" in losses(run)
    (run,) = cuda_run(work, "torch", arguments=[TORCH])
    assert "left to the profiler of the program's framework" in losses(run)
    only_driver = os.path.join(work, "driver")
    os.makedirs(only_driver)
    os.symlink(os.path.join(FAKES, "libcuda.so.1"), os.path.join(only_driver, "libcuda.so.1"))
    (run,) = cuda_run(work, "alone", {"LD_LIBRARY_PATH": only_driver})
    assert "no libcupti.so is found" in losses(run)


def level_zero_run(work, name, environment=None, arguments=()):
    folder = os.path.join(work, name)
    os.makedirs(folder)
    place = os.path.join(BUILD, "tests", "fake_level_zero")
    words = [SYNCLINE, "run", "--devices", "--", os.path.join(place, "level_zero_program"), folder]
    driver = {"ZE_ENABLE_ALT_DRIVERS": os.path.join(place, "libfake_level_zero.so")}
    program = started([*words, *arguments], folder, {**driver, **(environment or {})})
    run = os.path.join(folder, "run")
    syncline("record", "--for", "3s", "--out", run)
    stop(folder, [program])
    return run


def level_zero(work):
    run = level_zero_run(work, "all")
    found = events(run)
    refused = {
        event["fields"]["launch"] for event in found if event["fields"].get("kind") == 0
    }
    pairs, lost = check_events([e for e in found if e["fields"].get("launch") not in refused])
    (of,) = pairs.values()
    assert len(of) > 1000 and lost < len(of) / 10, (len(of), lost)
    assert max(event["fields"]["bound"] for event, _ in of) < 200_000
    # A list that the recording's begin finds half full loses what was in it.
    either = (0, INCOMPLETE)
    assert sum(e["fields"]["count"] for e in found if e["event"].endswith("e:lost")) <= 8
    drawn = spans(run, run + "-out", either)
    check_lanes(drawn)
    immediate = [span for span in drawn if "immediate list" in span[1]]
    wanted = {"copy": "step", "fill": "step"}
    for thread in "01":
        wanted |= {f"multiply_{thread}": "multiply", f"add_{thread}": "add"}
    check_tasks(immediate, wanted)
    executed = [span for span in drawn if "queue" in span[1]]
    assert len(immediate) + len(executed) == len(drawn) and len({s[1] for s in executed}) == 1
    assert {span[2] for span in executed} == {"copy", "fill", "multiply_2", "add_2"}
    assert {span[5] for span in executed[COMMANDS_OF_STEP:]} == {"execute"}
    for _, _, name, begin, end, _ in drawn:
        length = {"multiply": 300, "add": 100}.get(name.split("_")[0], 20)
        assert abs(end - begin - length) < 0.2, (name, end - begin)
    # Each refused launch of the immediate lists is known to be one.
    assert len(refused) > 100, len(refused)
    (device,) = json.loads(syncline("report", run, "--json", expected=either))["devices"]
    assert device["device"] == "Level Zero 0 Fake GPU" and len(device["steps"]) > 100, device
    assert device["unfinished"] == lost, (device["unfinished"], lost)
    run = level_zero_run(work, "old", arguments=["old"])
    assert "whose time is not known" in losses(run), losses(run)
    run = level_zero_run(work, "off", {"ZE_ENABLE_TRACING_LAYER": "0"})
    assert "tracing layer is off" in losses(run)
    run = level_zero_run(work, "torch", arguments=[TORCH])
    assert "left to the profiler of the program's framework" in losses(run)


def rocm_run(work, name, place=FAKE_ROCM, environment=None, arguments=(), recordings=1):
    folder = os.path.join(work, name)
    os.makedirs(folder)
    words = [SYNCLINE, "run", "--devices", "--", os.path.join(FAKE_ROCM, "rocm_program"), folder]
    environment = {"LD_LIBRARY_PATH": place, **(environment or {})}
    program = started([*words, *arguments], folder, environment)
    runs = []
    for number in range(recordings):
        runs.append(os.path.join(folder, f"run{number}"))
        syncline("record", "--for", "1s", "--out", runs[-1])
    stop(folder, [program])  # it was not aborted
    return runs


def check_rocm(run):
    pairs, lost = check_events(events(run))
    (of,) = pairs.values()
    assert len(of) > 200 and lost < len(of) / 4, (len(of), lost)
    wanted = {"copy host to device": "step", "copy device to host": "step"}
    for thread in "01":
        wanted |= {f"multiply_{thread}": "multiply", f"add_{thread}": "add"}
    found = spans(run, run + "-out")
    kernels = [span for span in found if "_" in span[2]]
    check_lanes(kernels)
    odd = collections.Counter()
    for _, lane, name, begin, end, task in found:
        name = name.split("(")[0]  # one is mangled
        if task != wanted[name]:
            odd[name] += 1
            assert task is None, (name, task)
        if name in ("multiply_0", "add_0"):
            assert lane.endswith("queue 1") or lane.endswith("queue 2"), lane
        length = {"multiply": 300, "add": 100}.get(name.split("_")[0], end - begin)
        assert abs(end - begin - length) < 0.01, (name, end - begin)
    # Only those of a step that was open when the recording began.
    assert all(count <= 2 for count in odd.values()), odd
    lanes = {name.split("(")[0]: lane for _, lane, name, *_ in found}
    assert set(lanes) == set(wanted), lanes
    assert lanes["multiply_0"] == lanes["add_0"] != lanes["multiply_1"] == lanes["add_1"], lanes
    copies = [lanes[name].split(" · ") for name in sorted(wanted) if name.startswith("copy")]
    assert copies == [["GPU 1", "copies to the host"], ["GPU 1", "copies to the device"]], copies
    (device,) = json.loads(syncline("report", run, "--json"))["devices"]
    assert device["device"] == "GPU 1" and len(device["steps"]) > 20, device["device"]
    assert device["unfinished"] == lost, (device["unfinished"], lost)
    assert device["without_launch"] == 0, device["without_launch"]
    moved = {e["fields"]["bytes"] for e, _ in of if e["fields"]["kind"] == 2}
    assert moved == {4096, 64}, moved


def rocm_late(work):
    """The program uses ROCm from the middle of a recording on, and ends before it does."""
    folder = os.path.join(work, "late")
    os.makedirs(folder)
    words = [SYNCLINE, "run", "--devices", "--", os.path.join(FAKE_ROCM, "rocm_program"), folder]
    program = started([*words, "late"], folder, {"LD_LIBRARY_PATH": FAKE_ROCM})
    run = os.path.join(folder, "run")
    recording = subprocess.Popen([SYNCLINE, "record", "--for", "4s", "--out", run])
    time.sleep(2)
    open(os.path.join(folder, "go"), "w").close()
    time.sleep(1)
    stop(folder, [program])
    assert recording.wait(60) == 0
    pairs, lost = check_events(events(run))
    assert len(next(iter(pairs.values()), [])) > 100, pairs
    # At the program's end it is recorded what was done until then.
    assert lost <= 2 * COMMANDS_OF_STEP, lost
    assert json.loads(syncline("report", run, "--json"))["complete"]


def rocm(work):
    for run in rocm_run(work, "both", recordings=2):
        check_rocm(run)
    for run in rocm_run(work, "old", environment={"FAKE_ROCM_VERSION": "600"}):
        check_rocm(run)
    (run,) = rocm_run(work, "older", environment={"FAKE_ROCM_VERSION": "400"})
    assert "it is older than 0.5" in losses(run)
    (run,) = rocm_run(work, "refuses", environment={"FAKE_ROCM_REFUSES": "1"})
    assert "it does not begin to record" in losses(run)
    # Where the runtime asks for no tool there may be nothing to record, and nothing is said.
    (run,) = rocm_run(work, "deaf", environment={"FAKE_ROCM_DEAF": "1"})
    assert json.loads(syncline("report", run, "--json"))["complete"]
    rocm_late(work)
    (run,) = rocm_run(work, "tools", environment={"HSA_TOOLS_LIB": "libolder.so"})
    assert "another tool uses ROCm's runtime" in losses(run)
    (run,) = rocm_run(work, "loses", environment={"FAKE_ROCM_LOSES": "1"})
    counts = [e["fields"]["count"] for e in events(run) if e["event"] == "syncline_device:lost"]
    assert counts == [7], counts  # the SDK's count goes on, and is not added up
    (run,) = rocm_run(work, "torch", arguments=[TORCH])
    assert "left to the profiler of the program's framework" in losses(run)
    # Its framework brings in the SDK, which looks into our library, too.
    theirs = {"LD_PRELOAD": TORCH, "FAKE_ROCM_IS_THEIRS": "1"}
    (run,) = rocm_run(work, "theirs", environment=theirs)
    assert "left to the profiler of the program's framework" in losses(run)
    another = {"ROCPROFILER_REGISTER_LIBRARY": TORCH, "FAKE_ROCM_IS_THEIRS": "1"}
    (run,) = rocm_run(work, "another", environment=another)
    assert "another one is named (ROCPROFILER_REGISTER_LIBRARY)" in losses(run)
    # A runtime without its SDK aborts a program in which it finds a tool.
    without = os.path.join(work, "without")
    os.makedirs(without)
    for name in ("libhsa-runtime64.so.1", "librocprofiler-register.so.0"):
        shutil.copy(os.path.join(FAKE_ROCM, name), without)
    (run,) = rocm_run(work, "alone", place=without)
    assert "no librocprofiler-sdk.so can be loaded" in losses(run)


def main():
    enter_namespaces()
    with tempfile.TemporaryDirectory(prefix="syncline-devices-") as work:
        os.environ["SYNCLINE_DATA_DIR"] = os.path.join(work, "data")
        tests = {"opencl": opencl, "cuda": cuda, "level_zero": level_zero, "rocm": rocm}
        tests[sys.argv[2]](work)
    print("ok")


if __name__ == "__main__":
    main()
