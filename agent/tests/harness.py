# SPDX-License-Identifier: Apache-2.0
"""What the agent's integration tests stand on: namespaces of their own, an agent, calls to it.

A test file runs itself in mount and pid namespaces with private /dev/shm and /var/run/lttng:
nothing of this machine's LTTng is touched, and what is left behind ends with the namespace. Usage:
FILE BUILD_DIR [unittest arguments]. Needs root and the programs of NEEDED; exits 77 without them.
"""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

NEEDED = ["lttng-sessiond", "babeltrace2", "openssl", "unshare", "setpriv", "prlimit"]
SKIPPED = 77
OTHER_UID = 61234
BUILD = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""


def wait_until(condition, seconds=10.0, what="condition"):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} not within {seconds} s")
        time.sleep(0.02)


def children_named(name):
    """Pids of living programs of this name in our pid namespace."""
    result = subprocess.run(["ps", "-C", name, "-o", "pid=,stat="],
                            capture_output=True, text=True, check=False)
    found = [line.split() for line in result.stdout.splitlines()]
    return [int(pid) for pid, state in found if not state.startswith("Z")]


def as_user(uid):
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] if uid else []


class CallError(Exception):
    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Agent:
    """One agent with a data directory below `root`; remembers how to call it."""

    def __init__(self, root, uid=0, arguments=(), name="data", environment=None,
                 limits=None):
        self.data = os.path.join(root, name)
        self.log = os.path.join(root, name + ".log")
        self.socket = os.path.join(self.data, "agent.sock")
        self.uid = uid
        self.arguments = list(arguments)
        self.environment = environment
        self.limits = limits  # of open files: soft, hard
        self.process = None
        self.start()

    def start(self):
        limit = ["prlimit", "--nofile={}:{}".format(*self.limits)] if self.limits else []
        agent = [f"{BUILD}/bin/syncline-agent", "--data-dir", self.data]
        command = limit + as_user(self.uid) + agent
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command + self.arguments, stderr=log, env=self.environment
            )
        wait_until(lambda: self.serving() or self.process.poll() is not None, what="agent serves")
        assert self.process.poll() is None, self.log_text()

    def serving(self):
        return f" pid={self.process.pid} " in self.log_text()

    def log_text(self):
        with open(self.log, encoding="utf-8") as log:
            return log.read()

    def command(self, method, request, target=None, extra=()):
        target = target or f"unix:{self.socket}"
        return as_user(self.uid) + [
            f"{BUILD}/tests/agent_call", target, method, json.dumps(request), *extra
        ]

    def call(self, method, target=None, extra=(), cwd=None, **request):
        result = subprocess.run(
            self.command(method, request, target, extra),
            capture_output=True, text=True, timeout=60, cwd=cwd, check=False,
        )
        if result.returncode >= 100:
            raise CallError(result.returncode - 100, result.stderr)
        assert result.returncode == 0, result
        return json.loads(result.stdout)

    def record(self, recording_id, seconds=0.3, **prepare):
        self.call("Prepare", recording_id=recording_id, holder="test@here", **prepare)
        self.call("Start", recording_id=recording_id)
        time.sleep(seconds)
        return self.call("Stop", recording_id=recording_id)

    def end(self, signal_number=signal.SIGTERM):
        self.process.send_signal(signal_number)
        return self.process.wait(timeout=30)


def count_events(directory):
    """Events of a trace by babeltrace2, without the canary's."""
    text = subprocess.run(
        ["babeltrace2", directory], capture_output=True, text=True, check=True, errors="replace"
    ).stdout
    return sum("syncline:canary" not in line for line in text.splitlines())


def discarded_events(stopped):
    """What the tracer says that it threw away: it does where the consumer daemon got no processor
    in time."""
    return sum(int(stream["discarded_events_count"]) for stream in stopped["streams"])


def open_the_way():
    """Lets other users reach the build in a checkout below somebody's private home (/root): in this
    mount namespace an empty directory with nothing but the checkout lies over that home."""
    checkout = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if os.path.commonpath([checkout, BUILD]) != checkout:
        return
    parts = checkout.split("/")[1:]
    ancestors = ["/" + "/".join(parts[:count]) for count in range(1, len(parts))]
    private = [path for path in ancestors if not os.stat(path).st_mode & 0o001]
    if not private:
        return
    for command in (
        ["mount", "--bind", checkout, "/mnt"],
        ["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", private[0]],
        ["mkdir", "-p", checkout],
        ["mount", "--bind", "/mnt", checkout],
        ["umount", "/mnt"],
    ):
        subprocess.run(command, check=True)


def main():
    if os.environ.get("SYNCLINE_AGENT_TEST") != "inside":
        missing = [name for name in NEEDED if subprocess.run(
            ["which", name], stdout=subprocess.DEVNULL, check=False).returncode != 0]
        if os.geteuid() != 0 or missing:
            print(f"skipped: needs root and {' '.join(NEEDED)}; missing: {missing}")
            sys.exit(SKIPPED)
        os.environ["SYNCLINE_AGENT_TEST"] = "inside"
        os.execvp("unshare", ["unshare", "--mount", "--pid", "--fork", "--mount-proc",
                              "--kill-child", "sh", "-c", '"$@"; exit $?', "init", sys.executable,
                              *sys.argv])  # the shell buries what daemons leave
    os.makedirs("/var/run/lttng", exist_ok=True)
    for directory in ("/var/run/lttng", "/dev/shm"):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", directory], check=True)
    open_the_way()
    unittest.main(module="__main__", argv=[sys.argv[0], "-v", *sys.argv[2:]])
