# SPDX-License-Identifier: Apache-2.0
"""Tries `syncline vtune` with the Intel VTune of this machine, and checks what it documents.

Usage: scripts/try-vtune [--analysis NAME] [--syncline SYNCLINE] [--hosts FILE] [--keep DIR]

A program that makes ITT tasks runs under `syncline run`. It is recorded with VTune attached to it,
the recording is merged, and every command that `syncline report` and `syncline merge` print is run.

What is checked: the program lives on when VTune stops; the recording is complete and VTune had no
problem; VTune was told to resume and to stop at the instants of the window; its result has as much
time that was not paused as the window, within what the commands took; each printed command works.

Exit status: 0 all checks hold, 1 one does not, 77 there is no VTune that the agent can use.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

WINDOW_S = 5
LATE_S = 0.5  # from an instant until the agent has told VTune: scheduling
BUILD = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build")


class Checks:
    def __init__(self):
        self.failed = 0

    def check(self, holds, what):
        print(("  holds   " if holds else "  FAILED  ") + what, flush=True)
        self.failed += not holds


class Trial:
    def __init__(self, arguments):
        self.arguments = arguments
        self.folder = arguments.keep or tempfile.mkdtemp(prefix="syncline-try-vtune-")
        os.makedirs(self.folder, exist_ok=True)
        self.folder = os.path.abspath(self.folder)
        self.run = os.path.join(self.folder, "run")
        self.checks = Checks()

    def syncline(self, *words, fine=(0,)):
        hosts = ["--hosts", self.arguments.hosts] if self.arguments.hosts else []
        command = [self.arguments.syncline, *words, *hosts]
        print("$ " + shlex.join(command), flush=True)
        run = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             check=False)
        if run.returncode not in fine:
            sys.exit(f"{shlex.join(command)}: exit {run.returncode}\n{run.stdout}{run.stderr}")
        return run

    def vtune(self):
        """Where the agent found it; None: nowhere."""
        nodes = json.loads(self.syncline("nodes", "--json", fine=(0, 1, 3)).stdout)
        for node in nodes:
            for tool in node.get("description", {}).get("tools", []):
                if tool["name"] == "vtune" and not tool["problem"]:
                    print(f"{node['name']}: {tool['version']}")
                    return tool["path"]
        return None

    def record(self):
        words = ("vtune", self.arguments.analysis, "--for", f"{WINDOW_S}s", "--out", self.run)
        said = self.syncline(*words, fine=(0, 3)).stderr
        print(said)
        with open(os.path.join(self.run, "recording.json"), encoding="utf-8") as file:
            (self.node,) = json.load(file)["nodes"]
        self.checks.check(self.node["state"] == "complete", "the recording is complete")

    def check_record(self):
        folder = os.path.join(self.run, "nodes", self.node["name"], "vtune")
        (pid,) = os.listdir(folder)
        with open(os.path.join(folder, pid, "syncline-vtune.json"), encoding="utf-8") as file:
            record = json.load(file)
        check = self.checks.check
        check(record["problem"] == "", f"VTune had no problem: {record['problem']!r}")
        check(record["ready_raw_ns"] > 0, "VTune said that its collection has started")
        for verb, instant in (("resume", "start"), ("stop", "stop")):
            at_ns = self.node[instant]["requested_monotonic_raw_ns"]
            late_s = (record[verb]["begin_raw_ns"] - at_ns) / 1e9
            took_s = (record[verb]["end_raw_ns"] - record[verb]["begin_raw_ns"]) / 1e9
            check(0 <= late_s < LATE_S, f"told to {verb} {late_s * 1e3:.1f} ms behind the instant, "
                  f"which took {took_s:.2f} s")
        return record, os.path.join(folder, pid, "result")

    def printed_commands(self):
        report = json.loads(self.syncline_offline("report", self.run, "--json").stdout)
        (result,) = report["vtune"]
        commands = result["commands"] + [span["command"] for span in result["spans"]]
        notes = self.syncline_offline("merge", self.run).stderr
        return commands + re.findall(r"`(vtune -import [^`]*)`", notes)

    def syncline_offline(self, *words):
        hosts, self.arguments.hosts = self.arguments.hosts, ""
        try:
            return self.syncline(*words)
        finally:
            self.arguments.hosts = hosts

    def run_commands(self, program):
        commands = self.printed_commands()
        self.checks.check(len(commands) >= 4, f"{len(commands)} commands are printed")
        for command in commands:
            words = [program, *shlex.split(command)[1:]]
            run = subprocess.run(words, cwd=self.run, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, check=False)
            self.checks.check(run.returncode == 0, command)
            if run.returncode != 0:
                print(run.stdout)

    def check_time(self, program, record, result):
        """Elapsed Time less Paused Time of VTune's summary, where it prints them."""
        summary = subprocess.run([program, "-report", "summary", "-result-dir", result], text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        times = dict(re.findall(r"(Elapsed Time|Paused Time): ([0-9.]+)s", summary.stdout))
        if "Elapsed Time" not in times:
            print("  not checked: the summary has no Elapsed Time")
            return
        collected_s = float(times["Elapsed Time"]) - float(times.get("Paused Time", 0))
        took_s = sum(record[verb]["end_raw_ns"] - record[verb]["begin_raw_ns"]
                     for verb in ("resume", "stop")) / 1e9
        self.checks.check(abs(collected_s - WINDOW_S) <= took_s + LATE_S,
                          f"VTune collected for {collected_s:.3f} s of a window of {WINDOW_S} s")


def main():
    parser = argparse.ArgumentParser(prog="scripts/try-vtune")
    parser.add_argument("--analysis", default="hotspots")
    parser.add_argument("--syncline", default=os.path.join(BUILD, "bin", "syncline"))
    parser.add_argument("--hosts", default="", help="one node: this machine (default: its agent)")
    parser.add_argument("--keep", help="a folder for the recording and the results")
    trial = Trial(parser.parse_args())
    program = trial.vtune()
    if program is None:
        print("skipped: the agent found no VTune that it can use (docs/vtune.md)")
        sys.exit(77)
    truth = os.path.join(trial.folder, "truth")
    job = subprocess.Popen([
        trial.arguments.syncline, "run", "--", os.path.join(BUILD, "bin", "syncline-itt-truth"),
        "--tasks", "0", "--work-ns", "200000", "--duration-ms", "120000", "--truth", truth])
    try:
        time.sleep(2)
        trial.record()
        trial.checks.check(job.poll() is None, "the program lives on")
        record, result = trial.check_record()
        trial.run_commands(program)
        trial.check_time(program, record, result)
    finally:
        job.kill()
        job.wait()
        if trial.arguments.keep is None:
            shutil.rmtree(trial.folder, ignore_errors=True)
    print("all checks hold" if not trial.checks.failed else f"{trial.checks.failed} checks failed")
    sys.exit(1 if trial.checks.failed else 0)


if __name__ == "__main__":
    main()
