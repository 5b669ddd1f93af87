# SPDX-License-Identifier: Apache-2.0
"""A session daemon of one's own, gates, and traces as lists of events, for real recordings.

Under root everything runs in mount and pid namespaces of its own (own /run/lttng and /dev/shm), so
that
tests disturb neither each other nor the machine's LTTng and nothing is left behind; as an ordinary
user an
own LTTNG_HOME has to do. Exits with 77 (skipped) where neither is possible.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

SKIPPED = 77


def enter_namespaces():
    """Call first: starts this program again inside namespaces of its own."""
    for tool in ("lttng", "lttng-sessiond", "babeltrace2"):
        if shutil.which(tool) is None:
            print(f"skipped: {tool} is not installed")
            sys.exit(SKIPPED)
    if os.geteuid() != 0:
        return
    if os.environ.get("SYNCLINE_TEST_NAMESPACES") != "1":
        if subprocess.run(["unshare", "-mpf", "true"], capture_output=True).returncode != 0:
            print("skipped: namespaces are not permitted here")
            sys.exit(SKIPPED)
        os.environ["SYNCLINE_TEST_NAMESPACES"] = "1"
        os.execvp(
            "unshare",
            [
                "unshare",
                "-mpf",
                "--kill-child",
                "--mount-proc",
                "--propagation",
                "private",
                sys.executable,
            ]
            + sys.argv,
        )
    os.makedirs("/run/lttng", exist_ok=True)
    for path in ("/run/lttng", "/dev/shm"):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", path], check=True)


@dataclass
class Event:
    time_ns: int
    name: str
    fields: dict = field(default_factory=dict)

    def __getattr__(self, key):
        try:
            return self.__dict__["fields"][key]
        except KeyError as error:
            raise AttributeError(key) from error


_LINE = re.compile(
    r"^\[(\d+)\] (?:\(\+[^)]*\) )?(?:\S+ )?(syncline\w*:\w+): \{ cpu_id = \d+ \}, \{ (.*) \}$"
)
_FIELD = re.compile(r'(\w+) = (?:"((?:[^"\\]|\\.)*)"|\[ (.*?) \]|(-?[\w.+-]+))(?:, |$)')


def parse_events(text):
    events = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if not match:
            raise ValueError(f"cannot read babeltrace2's line: {line}")
        fields = {}
        for key, quoted, listed, plain in _FIELD.findall(match.group(3)):
            if listed:
                fields[key] = [int(v) for v in re.findall(r"= (-?\d+)", listed)]
            elif plain:
                fields[key] = (
                    int(plain, 0) if re.fullmatch(r"-?(0x[0-9A-F]+|\d+)", plain) else float(plain)
                )
            else:
                fields[key] = quoted
        events.append(Event(int(match.group(1)), match.group(2), fields))
    return events


class Fixture:
    """One temporary directory, one session daemon, any number of processes and recordings."""

    def __init__(self, build_directory):
        self.build = os.path.abspath(build_directory)
        self.directory = tempfile.mkdtemp(prefix="syncline-test-")
        self.runtime = os.path.join(self.directory, "runtime")
        self.environment = dict(
            os.environ,
            LTTNG_HOME=self.directory,
            SYNCLINE_RUNTIME_DIR=self.runtime,
            INTEL_LIBITTNOTIFY64=os.path.join(self.build, "lib/libsyncline_itt.so"),
        )
        self.environment.pop("LTTNG_UST_REGISTER_TIMEOUT", None)
        self.daemon = None
        self.processes = []
        self.sessions = 0

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        self.stop_daemon()
        shutil.rmtree(self.directory, ignore_errors=True)

    def start_daemon(self):
        self.daemon = subprocess.Popen(
            ["lttng-sessiond", "--no-kernel"],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.wait_for(lambda: self.lttng("list", check=False).returncode == 0, "the session daemon")

    def stop_daemon(self):
        if self.daemon is None:
            return
        self.daemon.terminate()
        try:
            self.daemon.wait(10)
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            self.daemon.wait()
        self.daemon = None

    def lttng(self, *arguments, check=True):
        done = subprocess.run(
            ["lttng", "--no-sessiond", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        if check and done.returncode != 0:
            raise RuntimeError(f"lttng {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done

    def start(self, *command, program="bin/syncline-itt-truth", registered=False, **environment):
        """`registered`: LTTng knows the program before its block says that it is live. A session
        that is set up while a program registers can have metadata that no reader accepts."""
        if registered:
            environment.setdefault("LTTNG_UST_REGISTER_TIMEOUT", "20000")
        process = subprocess.Popen(
            [os.path.join(self.build, program), *map(str, command)],
            env=dict(self.environment, **environment),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.processes.append(process)
        return process

    def finish(self, process, limit_s=60):
        output, errors = process.communicate(timeout=limit_s)
        if process.returncode != 0:
            raise RuntimeError(f"{process.args} ended with {process.returncode}: {output}{errors}")
        return output + errors

    def stop(self, process):
        """Ends a syncline-itt-truth, which then writes its truth."""
        process.terminate()
        return self.finish(process)

    @staticmethod
    def wait_for(condition, what, limit_s=20):
        until = time.monotonic() + limit_s
        while not condition():
            if time.monotonic() > until:
                raise TimeoutError(f"waited {limit_s} s for {what}")
            time.sleep(0.01)

    # ---- blocks and gates

    def block_tool(self, *arguments):
        return subprocess.run(
            [os.path.join(self.build, "tests/block_tool"), *map(str, arguments)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def blocks(self):
        """By pid: state, events, lost, cost (estimate, low, high), names, refused."""
        result = {}
        for line in self.block_tool("show", self.runtime).splitlines():
            numbers = list(map(int, line.split()[:9]))
            pid, state, events, lost, cost_ns, names, refused, cost_lo_ns, cost_hi_ns = numbers
            result[pid] = {
                "state": state,
                "events": events,
                "lost": lost,
                "cost_ns": cost_ns,
                "cost_lo_ns": cost_lo_ns,
                "cost_hi_ns": cost_hi_ns,
                "names": names,
                "refused": refused,
                "line": line,
            }
        return result

    def wait_for_blocks(self, count=1, limit_s=20):
        self.wait_for(
            lambda: sum(b["state"] == 1 for b in self.blocks().values()) >= count,
            f"{count} blocks",
            limit_s,
        )

    def set_gates(self, generation):
        return int(self.block_tool("set", self.runtime, generation))

    # ---- recordings

    def begin_session(self, subbuffer="1M", events=("syncline:*", "syncline_itt:*")):
        self.sessions += 1
        name = f"s{self.sessions}"
        output = os.path.join(self.directory, name)
        self.lttng("create", name, "-o", output)
        self.lttng(
            "enable-channel",
            "-u",
            "-s",
            name,
            "--subbuf-size",
            subbuffer,
            "--num-subbuf",
            "4",
            "syncline",
        )
        for pattern in events:
            self.lttng("enable-event", "-u", "-s", name, "-c", "syncline", pattern)
        self.lttng("start", name)
        return name

    def end_session(self, name):
        """Stops and destroys it: (events in order of time, discarded events)."""
        self.lttng("stop", name)
        self.lttng("destroy", name)
        done = subprocess.run(
            ["babeltrace2", "--clock-cycles", "--no-delta", os.path.join(self.directory, name)],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise RuntimeError(f"babeltrace2: {done.stderr}")
        discarded = sum(int(n) for n in re.findall(r"discarded (\d+) event", done.stderr))
        return parse_events(done.stdout), discarded


@dataclass
class Fact:
    """A line of syncline-itt-truth's file."""

    kind: str
    values: list


def read_truth(path):
    with open(path, encoding="utf-8") as lines:
        return [Fact(line.split("\t", 1)[0], line.rstrip("\n").split("\t")[1:]) for line in lines]
