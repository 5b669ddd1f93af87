# SPDX-License-Identifier: Apache-2.0
"""Drives Syncline on a testbed the way a user does: fab and the syncline command, nothing else."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

from tests.integration import raw_trace
from tests.testbed import Testbed
from tests.testbed.machine import BUILD, REPOSITORY

EXAMPLES = os.path.join(REPOSITORY, "examples")
TENSORFLOW = os.path.join(REPOSITORY, ".venv-tensorflow")
HOST_TENSORFLOW = "/opt/tensorflow"
HOST_TICKER = "/opt/jobs/ticker.py"
TICKER_BINDS = {
    HOST_TENSORFLOW: TENSORFLOW,
    HOST_TICKER: os.path.join(REPOSITORY, "tests", "integration", "ticker.py"),
}
COMMAND_TIMEOUT_S = 120
START_TIMEOUT_S = 60
FAILED, WRONG_USAGE, INCOMPLETE, INTERRUPTED = 1, 2, 3, 130


class Fleet:
    """A testbed, its certificates and the commands for it; `work` is a scratch directory, `user`
    whom ssh logs in as."""

    def __init__(self, bed, work, user="root"):
        self.bed = bed
        self.work = str(work)
        with open(bed.ssh_config, encoding="utf-8") as file:
            config = file.read().replace("User root", f"User {user}")
        self.ssh_config = os.path.join(self.work, "ssh_config")
        with open(self.ssh_config, "w", encoding="utf-8") as file:
            file.write(config)
        self.environment = {
            **os.environ,
            "PATH": ":".join([f"{BUILD}/bin", f"{BUILD}/tests", os.environ["PATH"]]),
            "SYNCLINE_BUILD": BUILD,
            "SYNCLINE_HOSTS": bed.hosts_file,
            "SYNCLINE_TLS_DIR": os.path.join(self.work, "tls"),
        }

    def fab(self, *arguments, check=True, ssh_config=None, **environment):
        """Runs a task; its output is the CompletedProcess' stdout, errors included."""
        program = os.path.join(os.path.dirname(sys.executable), "fab")
        config = ssh_config or self.ssh_config
        command = [program, "-r", REPOSITORY, "-S", str(config), *arguments]
        return self.run(command, check, **environment)

    def syncline(self, *arguments, check=True, fine=(0,), **environment):
        return self.run(["syncline", *arguments], check, fine, **environment)

    def run(self, command, check=True, fine=(0,), **environment):
        result = subprocess.run(
            command,
            cwd=self.work,
            env={**self.environment, **environment},
            timeout=COMMAND_TIMEOUT_S,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if check and result.returncode not in fine:
            raise AssertionError(f"{command}: exit {result.returncode}\n{result.stdout}")
        return result

    def fleet_arguments(self):
        return ["--hosts", self.bed.hosts_file, "--tls-dir", self.environment["SYNCLINE_TLS_DIR"]]

    def up(self):
        self.fab("certs")
        self.fab("up")

    def launch_tensorflow(self, job="digits"):
        """The example, without the accuracy test between steps: then every step is alike."""
        command = (
            f"env TF_CPP_MIN_LOG_LEVEL=2 {HOST_TENSORFLOW}/bin/python {{role}}.py "
            "$(test {role} = worker || echo --report-every 1000000)"
        )
        example = os.path.join(EXAMPLES, "tensorflow_two_partitions")
        self.fab(
            *("launch", "--job", job, "--copy", example, "--command", command),
            *("--ready", "step 1:"),
        )

    def launch_ticker(self, *arguments):
        """A small job with nested marks (ticker.py) on every host."""
        command = " ".join([f"{HOST_TENSORFLOW}/bin/python", HOST_TICKER, *arguments])
        self.fab("launch", "--command", command, "--ready", "ticking")

    def record(self, name, seconds=5, *options, fine=(0,)):
        """Records and collects; returns the recording's directory."""
        run = os.path.join(self.work, name)
        arguments = [
            "record",
            *self.fleet_arguments(),
            "--for",
            f"{round(seconds * 1000)}ms",
            "--out",
            run,
            *options,
        ]
        self.last = self.syncline(*arguments, fine=fine)
        return run

    def compare(self, now, before, *limits):
        """(exit code, answer) of `why NOW --against BEFORE`, with limits for --fail-if."""
        words = ["why", now, "--against", before, "--json"]
        for limit in limits:
            words += ["--fail-if", f"'{limit}'"]
        command = f"syncline {' '.join(words)} 2>/dev/null; echo \" $?\""
        text, _, code = self.run(["sh", "-c", command]).stdout.rpartition(" ")
        return int(code), json.loads(text)

    def start_record(self, name, seconds, *options):
        """The same, not waited for."""
        run = os.path.join(self.work, name)
        arguments = [*self.fleet_arguments(), "--for", f"{seconds}s", "--out", run, *options]
        return subprocess.Popen(
            ["syncline", "record", *arguments],
            cwd=self.work,
            env=self.environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def wait_until_it_records(self, recorder, run, seconds=1):
        """Until so long after T: what the coordinator writes before T is on the disk."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not os.path.exists(os.path.join(run, "recording.json")):
            assert recorder.poll() is None, recorder.stdout.read()
            assert time.monotonic() < deadline, "it does not begin"
            time.sleep(0.01)
        time.sleep(seconds)

    def clocks(self, run):
        """What `syncline clocks` says, with the edges by (local, remote)."""
        found = json.loads(self.syncline("clocks", run, "--json").stdout)
        found["edges"] = {(edge["local"], edge["remote"]): edge for edge in found["edges"]}
        return found

    def clock_difference(self, run, local, remote):
        """(lowest, highest): remote's trace clock minus local's, as the coordinator's own probes
        state it."""
        edges = self.clocks(run)["edges"]
        here, there = edges["coordinator", local], edges["coordinator", remote]
        bound_ns = here["bound_worst_ns"] + there["bound_worst_ns"]
        middle_ns = there["offset_ns"] - here["offset_ns"]
        return middle_ns - bound_ns, middle_ns + bound_ns

    def timeline_events(self, run, program="syncline", **environment):
        """{node: events in timeline time, as recorded}, from `syncline events`."""
        command = [program, "events", run, "--format", "jsonl", "--raw"]
        events = {}
        for line in self.run(command, fine=(0, 3), **environment).stdout.splitlines():
            if line.startswith("{"):
                record = json.loads(line)
                event = raw_trace.Event(record["time_ns"], record["event"], record["fields"])
                events.setdefault(record["node"], []).append(event)
        return events

    def timeline_tasks(self, run):
        """{node: tasks in timeline time}."""
        return {node: raw_trace.tasks(found) for node, found in self.timeline_events(run).items()}

    def ticks(self, run):
        """{node: how often the ticker's outer task is on the timeline}."""
        tasks = self.timeline_tasks(run)
        return {node: sum(task.name == "tick" for task in found) for node, found in tasks.items()}


class Recording:
    """A `syncline record` that runs: what it prints, as it comes."""

    def __init__(self, fleet, name, seconds, *options):
        self.run = os.path.join(fleet.work, name)
        options = ("--progress", "always", *options)
        self.process = fleet.start_record(name, seconds, *options)
        self.printed = ""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.printed += line

    def wait_for(self, text, seconds=40):
        """Until it has printed this."""
        deadline = time.monotonic() + seconds
        while text not in self.printed:
            assert time.monotonic() < deadline, f"{text!r} is not in:\n{self.printed}"
            time.sleep(0.02)

    def interrupt(self, signal_number=signal.SIGINT):
        self.process.send_signal(signal_number)

    def end(self, seconds=60):
        """Waits for the end; the exit code."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end:\n{self.printed}") from None
        self.reader.join(seconds)
        return self.process.returncode


@contextlib.contextmanager
def ticking(work, specs, seed, binds=None):
    """Hosts with agents, on each of which the ticker runs: a Fleet."""
    with Testbed(specs, seed=seed, binds={**TICKER_BINDS, **(binds or {})}) as bed:
        fleet = Fleet(bed, work)
        fleet.up()
        fleet.launch_ticker()
        yield fleet
        fleet.fab("down")


@contextlib.contextmanager
def standing_still(host, *pids):
    """The processes are stopped, and go on afterwards."""
    host.run(["kill", "-STOP", *pids])
    try:
        yield
    finally:
        host.run(["kill", "-CONT", *pids])


def pids_of(host, program):
    """The processes whose program has this name."""
    return host.run(["pgrep", "-x", program]).stdout.split()


def agent_pid(host):
    return host.run(["cat", "/opt/syncline/var/agent.pid"]).stdout.strip()


def node_of(run, name):
    """A node's entry in recording.json."""
    return next(n for n in load(os.path.join(run, "recording.json"))["nodes"] if n["name"] == name)


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)
