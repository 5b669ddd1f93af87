# SPDX-License-Identifier: Apache-2.0
"""One cell: a recording, the fault in it, what an operator does then, and everything that must hold
afterwards (README.md lists it)."""

import contextlib
import os
import random
import re
import signal
import subprocess
import time

from tests.faults import other_faults
from tests.faults.stage import (
    VICTIM,
    WITNESS,
    Injection,
    NotThere,
    lease_of,
    look,
    of_target,
    processes,
    wait_until,
)
from tests.faults.verdict import check_recording, judge_run
from tests.integration.fleet import FAILED, INCOMPLETE, INTERRUPTED, Recording, load

WINDOW_S = 2
NEXT_WINDOW = "500ms"
NEXT_ATTEMPTS = 3  # LTTng finds a program again up to 5 s after its daemon was replaced
RECORD_LIMIT_S = 150
CLEAN_LIMIT_S = 15
# How long after the moment's begin the fault comes, at most: drawn from the seed.
SPREAD_S = {"prepare": 0.25, "record": 0.8, "stop": 0.5}
TRIES = 5  # a moment that was over before the fault came is waited for again


class Scenario:
    """A cell that runs; problems and facts are collected in words."""

    def __init__(self, stage, cell, seed):
        self.stage, self.cell = stage, cell
        self.random = random.Random(f"{seed} {cell.name}")
        self.problems, self.facts = [], {}
        self.transcript = []
        self.recording = self.injection = self.run = None
        self.code = None
        self.alive = {}  # the program of each host, as it was before

    def go(self):
        for attempt in range(TRIES):
            try:
                self._record(attempt)
                break
            except NotThere as missed:
                self._give_up(missed)
        else:
            self.problems.append(f"the fault did not happen: {TRIES} times the moment was missed")
            return
        self._recover()
        self._judge()
        self._check_the_next()
        self._check_what_is_left()

    # ---- the recording and the fault

    def _record(self, attempt):
        stage, cell = self.stage, self.cell
        stage.restore()
        stage.forget_old_programs()
        other_faults.prepare(stage, cell)
        self.alive = {h.name: of_target("program", processes(h)) for h in stage.bed.hosts}
        self.begun_ns = time.monotonic_ns()
        delay_s = self.random.uniform(0, SPREAD_S.get(cell.moment, 0)) / (attempt + 1)
        if cell.moment == "before":
            self._inject()
        name = f"{cell.name}-{time.monotonic_ns() // 10**6}"
        self.recording = Recording(stage.fleet, name, WINDOW_S, "--lease", lease_of(cell))
        self.run = self.recording.run
        if cell.moment in ("prepare", "record", "stop"):
            self._wait_for({"prepare": "preparing ", "record": "recording ...",
                            "stop": "stopping ..."}[cell.moment])
            time.sleep(delay_s)
            self._inject(passed={"prepare": "recording ...", "record": "stopping ...",
                                 "stop": "fetching ..."}[cell.moment])
        elif cell.moment == "fetch":
            self._inject_in_the_transfer()
        self._end_of_record()
        if cell.moment == "idle":
            self._inject()
        self.facts["delay_s"] = round(delay_s, 3)

    def _wait_for(self, text):
        """Until the coordinator has said it; it may have ended without."""
        process = self.recording.process
        wait_until(lambda: text in self.recording.printed or process.poll() is not None, 60, text)
        if text not in self.recording.printed:
            raise NotThere(f"it ended before {text!r}: {self.recording.printed}")

    def _inject(self, passed=""):
        """`passed`: what the coordinator prints when the moment is over."""
        if self.cell.fault not in ("KILL", "STOP", "TERM"):
            self.injection = other_faults.inject(self.stage, self.cell)
            return
        process = self._find(passed)
        if passed and passed in self.recording.printed:
            raise NotThere(f"{passed!r} came first")
        self.injection = Injection(process, self.cell.fault)

    def _find(self, passed):
        """The process to hit; one that is not there yet in this moment is waited for."""
        if self.cell.target == "coordinator":
            if self.recording.process.poll() is not None:
                raise NotThere("the coordinator")
            return look(self.recording.process.pid)
        deadline = time.monotonic() + 5
        while True:
            found = of_target(self.cell.target, processes(self.stage.victim))
            if found:
                return found[0]
            over = passed and passed in self.recording.printed
            if over or time.monotonic() > deadline:
                raise NotThere(self.cell.target)

    def _inject_in_the_transfer(self):
        """It is short: the coordinator is held while the fault happens. When the window's end is on
        the disk the transfer begins."""
        process = self.recording.process
        self._wait_for("stopping ...")
        path = os.path.join(self.run, "recording.json")
        while process.poll() is None and load(path)["window"]["stop_reason"] == "":
            pass
        process.send_signal(signal.SIGSTOP)
        try:
            self._inject()
        finally:
            if process.poll() is None and self.cell.target != "coordinator":
                process.send_signal(signal.SIGCONT)
        # A coordinator that was sent SIGTERM acts on it when it goes on.
        if self.cell.target == "coordinator" and self.cell.fault == "TERM":
            process.send_signal(signal.SIGCONT)

    def _end_of_record(self):
        begin = time.monotonic()
        self.code = self.recording.end(RECORD_LIMIT_S)
        self.facts["record_s"] = round(time.monotonic() - begin, 1)
        self._say(f"record: exit {self.code}", self.recording.printed)

    def _give_up(self, missed):
        """The moment was missed: the recording goes on to its end, and once more."""
        self._say(f"missed: {missed}")
        if self.injection:
            self.injection.finish()
        if self.recording:
            self.recording.end(RECORD_LIMIT_S)

    # ---- what an operator does

    def _recover(self):
        gone = self.injection.finish()
        if self.injection.problem:
            self.problems.append(self.injection.problem)
        self.facts["ended"] = gone
        self.facts["restored"] = self.stage.restore()
        self._check_code()
        if self.cell.target == "coordinator" and self.code < 0:
            self._wait_for_the_lease()
        if not self._has_recording():
            return
        states = self._states()
        if self.code != 0 and (self.code < 0 or "left" in states.values()):
            result = self._syncline("fetch", self.run, *self._fleet())
            self.facts["fetch"] = result.returncode
            self.code = result.returncode

    def _check_code(self):
        killed = self.cell.target == "coordinator" and self.cell.fault == "KILL"
        fine = (-signal.SIGKILL,) if killed else (0, FAILED, INCOMPLETE, INTERRUPTED)
        if self.cell.moment == "idle" and self.code != 0:
            self.problems.append(f"the recording before the fault: exit {self.code}")
        if self.code not in fine:
            self.problems.append(f"record ended with {self.code}")
        self.facts["code"] = self.code

    def _wait_for_the_lease(self):
        """The nodes of a dead coordinator stop by themselves."""
        def stopped():
            said = self._syncline("status", *self._fleet()).stdout
            return not re.search(r"\b(recording|preparing|stopping|ready)\b", said)

        try:
            wait_until(stopped, 40, "the nodes stop by their lease")
        except AssertionError as late:
            self.problems.append(str(late))

    def _has_recording(self):
        return os.path.exists(os.path.join(self.run, "recording.json"))

    def _states(self):
        nodes = load(os.path.join(self.run, "recording.json"))["nodes"]
        return {node["name"]: node["state"] for node in nodes}

    # ---- what must hold

    def _judge(self):
        if not self._has_recording():
            self.facts["outcome"] = "refused"
            if self.code == 0:
                self.problems.append("exit 0, and there is no recording")
            self._release_what_was_named()
            return
        self.facts["outcome"] = "recorded"
        self._judge_run(self.run, self.code, others_whole=self.cell.target != "coordinator")

    def _judge_run(self, run, code, others_whole):
        verdicts = judge_run(self.stage, run, self._say)
        self.facts.setdefault("runs", []).append(
            {name: verdict.summary() for name, verdict in verdicts.items()})
        self.problems += check_recording(run, code, verdicts)
        if others_whole and verdicts[WITNESS].lacks():
            self.problems.append(f"the other node is not whole: {verdicts[WITNESS].lacks()}")
        return verdicts

    def _release_what_was_named(self):
        """The coordinator says of what it could not roll back how to delete it."""
        for name in set(re.findall(r"`syncline release (\S+)`", self.recording.printed)):
            self._syncline("release", name, *self._fleet())

    def _check_the_next(self):
        """A recording that lacks something says so; after a few at most it is whole again."""
        for attempt in range(1, NEXT_ATTEMPTS + 1):
            name = f"next-{attempt}-{os.path.basename(self.run)}"
            run = os.path.join(self.stage.fleet.work, name)
            arguments = ["--for", NEXT_WINDOW, "--out", run]
            result = self._syncline("record", *self._fleet(), *arguments)
            self.facts["next"] = attempt
            if os.path.exists(os.path.join(run, "recording.json")):
                verdicts = self._judge_run(run, result.returncode, others_whole=False)
                if result.returncode == 0 and all(v.calls > 100 for v in verdicts.values()):
                    return
            time.sleep(1)
        self.problems.append(f"no recording is whole after it: {result.stdout[-600:]}")

    def _check_what_is_left(self):
        for host in self.stage.bed.hosts:
            with contextlib.suppress(AssertionError):
                wait_until(lambda h=host: not self.stage.left_behind(h), CLEAN_LIMIT_S, "clean")
            left = self.stage.left_behind(host)
            self.problems += [f"{host.name}: left behind: {what}" for what in left]
        for name, before in self.alive.items():
            hit = name == VICTIM and self.cell.target == "program"
            ended = hit and (self.facts.get("ended") or other_faults.ends_program(self.cell))
            if not ended and not all(process.is_alive() for process in before):
                self.problems.append(f"the program of {name} is dead")
            if not self.stage.is_calling(self.stage.bed[name]):
                self.problems.append(f"the program of {name} makes no calls")
        self._count_sleeps()

    def _count_sleeps(self):
        """No call of ours sleeps in the program. (One that was stopped did, by SIGSTOP.)"""
        allowed = 1 if self.cell.target == "program" else 0
        for host in self.stage.bed.hosts:
            offset_ns = host.spec.monotonic_offset_ns
            calls = [call for call in self.stage.calls(host)
                     if call.before_ns - offset_ns > self.begun_ns]
            slept = [call for call in calls if call.after_ns and call.switches]
            self.facts[f"slept_{host.name}"] = len(slept)
            done = [call for call in calls if call.after_ns]
            longest = max((call.cpu_ns for call in done), default=0)
            self.facts[f"longest_cpu_us_{host.name}"] = longest // 1000
            longest = max((call.after_ns - call.before_ns for call in done), default=0)
            self.facts[f"longest_wall_us_{host.name}"] = longest // 1000
            threads = len({(call.pid, call.tid) for call in slept})
            if len(slept) - threads > allowed:
                self.problems.append(f"{host.name}: {len(slept)} calls slept in the program")
            elif threads > allowed:  # a thread's first recorded call, most likely
                self.problems.append(f"{host.name}: in each of {threads} threads one call slept")

    # ---- commands

    def _fleet(self):
        return self.stage.fleet.fleet_arguments()

    def _syncline(self, *arguments):
        try:
            result = self.stage.fleet.syncline(*arguments, check=False)
        except subprocess.TimeoutExpired as late:
            self.problems.append(f"syncline {arguments[0]} does not end: {late.output}")
            raise
        self._say(f"{arguments[0]}: exit {result.returncode}", result.stdout)
        return result

    def _say(self, title, text=""):
        self.transcript.append(f"--- {title}\n{text}")


def absent(stage, cell):
    """Whether there is really nothing to hit, where a cell is said to be not applicable."""
    if cell.target == "coordinator":
        return True  # every cell starts one, and waits for its end
    return not of_target(cell.target, processes(stage.victim))
