# SPDX-License-Identifier: Apache-2.0
"""Two hosts with agents and a program each, of which one is hit: what the cells stand on.

`left` is the witness, `right` is hit. Processes are found from outside, by the pid namespace of
their host, so that a signal goes out at once.
"""

import contextlib
import dataclasses
import glob
import os
import signal
import threading
import time

from tests.faults import truth
from tests.faults.cells import STOP_S
from tests.integration.fleet import Fleet, agent_pid
from tests.testbed import HostSpec, Testbed
from tests.testbed.machine import BUILD

PROGRAM = "/opt/faults/program"
PREFIX = "/opt/syncline"
DATA = f"{PREFIX}/var/data"
SESSION = f"{PREFIX}/libexec/syncline/session"
WITNESS, VICTIM = "left", "right"
GONE_S = 5  # until a process is gone that was sent SIGKILL
TERM_S = 10  # or SIGTERM; one that is there afterwards goes on


class NotThere(Exception):
    """There is no such process just now."""


def wait_until(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.02)
    return found


@dataclasses.dataclass
class Process:
    """One process of a host, as this machine numbers it."""

    pid: int
    parent: int
    state: str
    started: int
    name: str
    command: str

    def is_alive(self):
        now = look(self.pid)
        return now is not None and now.started == self.started and now.state not in "ZX"


def look(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            command = file.read().replace("\0", " ").strip()
    except OSError:
        return None
    words = text[text.rindex(")") + 2 :].split()
    name = text[text.index("(") + 1 : text.rindex(")")]
    return Process(int(pid), int(words[1]), words[0], int(words[19]), name, command)


def processes(host):
    """All living processes of a host, the oldest first."""
    space = os.readlink(f"/proc/{host.pid}/ns/pid")
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/ns/pid") != space:
                continue
        except OSError:
            continue
        one = look(pid)
        if one is not None and one.state not in "ZX":
            found.append(one)
    return sorted(found, key=lambda process: (process.started, process.pid))


def of_target(target, found):
    """The target's processes among those of its host."""
    agents = [p for p in found if p.name == "syncline-agent" and "--session-child" not in p.command
              and "--guard" not in p.command and "--limit-files" not in p.command]
    if target == "agent":
        return agents
    if target == "session-child":
        return [p for p in found if p.command.endswith("--session-child")
                and p.parent in [agent.pid for agent in agents]]
    if target == "program":  # an exec changes its name
        return [p for p in found if p.command.startswith(PROGRAM)]
    names = {"session-daemon": "lttng-sessiond", "consumer-daemon": "lttng-consumerd",
             "guard": "syncline-guard"}
    return [p for p in found if p.name == names[target]]


class Injection:
    """One fault, and whether it really happened."""

    def __init__(self, process, fault):
        self.process, self.fault = process, fault
        self.problem = ""
        self.at_monotonic_ns = time.monotonic_ns()
        self._timer = None
        number = {"KILL": signal.SIGKILL, "STOP": signal.SIGSTOP, "TERM": signal.SIGTERM}[fault]
        try:
            os.kill(process.pid, number)
        except ProcessLookupError:
            raise NotThere(process.name) from None
        if fault == "STOP":
            self._hold()
        elif fault == "KILL":
            with contextlib.suppress(AssertionError):
                wait_until(lambda: not process.is_alive(), GONE_S, "the end")
            self._expect(not process.is_alive(), "it lives after SIGKILL")

    def _expect(self, good, what):
        if not good:
            self.problem = f"the fault did not happen: {what}"

    def _is_stopped(self):
        now = look(self.process.pid)
        return now is not None and now.state in "Tt" and now.started == self.process.started

    def _hold(self):
        with contextlib.suppress(AssertionError):
            wait_until(self._is_stopped, 2, "stopped")
        self._expect(self._is_stopped(), "it does not stop")
        self._timer = threading.Timer(STOP_S, self._go_on)
        self._timer.start()

    def _go_on(self):
        # Somebody may have killed it meanwhile, because it did not answer: it stood still until
        # then.
        alive = self.process.is_alive()
        self._expect(not alive or self._is_stopped(), f"it ran within the {STOP_S} s")
        if alive:
            os.kill(self.process.pid, signal.SIGCONT)

    def finish(self):
        """Waits until it is over; whether the process has ended."""
        if self._timer:
            self._timer.join()
        if self.fault == "TERM":  # a process may have much to do before it ends, or go on
            with contextlib.suppress(AssertionError):
                wait_until(lambda: not self.process.is_alive(), TERM_S, "the end")
        return not self.process.is_alive()


class Stage:
    """The hosts, from start to end: a context manager."""

    def __init__(self, work, seed):
        self.work = str(work)
        specs = [HostSpec(WITNESS), HostSpec(VICTIM)]
        program = os.path.join(BUILD, "bin", "syncline-faults-program")
        self.bed = Testbed(specs, seed=seed, binds={PROGRAM: program})
        self.truths = {WITNESS: 0, VICTIM: 0}  # how many programs were started
        self.fleet = None

    def __enter__(self):
        self.bed.start()
        try:
            self.fleet = Fleet(self.bed, self.work)
            self.fleet.up()
            for host in self.bed.hosts:
                self.start_program(host)
            self.fleet.record("warm", 0.5, fine=(0, 3))
        except BaseException:
            self.bed.stop()
            raise
        return self

    def __exit__(self, *_):
        self.bed.stop()

    @property
    def victim(self):
        return self.bed[VICTIM]

    # ---- the programs

    def start_program(self, host, *options):
        self.truths[host.name] += 1
        inside = f"/tmp/truth.{self.truths[host.name]}"
        command = [PROGRAM, *options, inside]
        host.run([SESSION, "start", "/tmp/program.pid", "/tmp/program.log",
                  f"{PREFIX}/bin/syncline", "run", "--job", "faults", "--", *command])
        outside = self.outside(host, inside)
        wait_until(lambda: os.path.exists(outside) and truth.begun(outside) > 10, 30,
                   "the program makes calls")

    def end_program(self, host):
        host.run([SESSION, "end", "/tmp/program.pid"])

    def outside(self, host, path):
        """Where a file of the host is for this machine."""
        return f"/proc/{host.pid}/root{path}"

    def newest_truth(self, host):
        return self.outside(host, f"/tmp/truth.{self.truths[host.name]}")

    def calls(self, host):
        """The calls of all programs that the host has had, in its clock."""
        found = []
        for path in glob.glob(self.outside(host, "/tmp/truth.*")):
            found += truth.read(path)
        return sorted(found, key=lambda call: call.before_ns)

    def forget_old_programs(self):
        """What programs did that are gone is of no further interest."""
        for host in self.bed.hosts:
            for path in glob.glob(self.outside(host, "/tmp/truth.*")):
                if not path.endswith(f".{self.truths[host.name]}"):
                    os.unlink(path)

    def is_calling(self, host):
        """Whether the newest program makes calls."""
        path = self.newest_truth(host)
        before = truth.begun(path)
        with contextlib.suppress(AssertionError):
            return bool(wait_until(lambda: truth.begun(path) > before, 3, "calls"))
        return False

    # ---- the agents

    def start_agent(self, host):
        command = [f"{PREFIX}/bin/syncline-agent", "--listen", f"{host.address}:7611",
                   "--data-dir", DATA, "--tls-dir", f"{PREFIX}/tls", "--node-name", host.name]
        files = [f"{PREFIX}/var/agent.pid", f"{PREFIX}/var/agent.log"]
        host.run([SESSION, "start", *files, *command])
        listens = f"ss -Hltnp 'sport = :7611' | grep -q pid={agent_pid(host)},"
        wait_until(lambda: host.run(["sh", "-c", listens], check=False).returncode == 0, 30,
                   f"the agent of {host.name} serves")

    def restore(self):
        """What an operator does: starts again what is gone. Says what that was."""
        said = []
        for host in self.bed.hosts:
            found = processes(host)
            if not of_target("agent", found):
                self.start_agent(host)
                said.append(f"agent of {host.name}")
            if not of_target("program", found):
                self.start_program(host)
                said.append(f"program of {host.name}")
        return said

    # ---- what is left behind

    def kept(self, host):
        """Recordings on the node."""
        return sorted(os.listdir(self.outside(host, f"{DATA}/recordings")))

    def left_behind(self, host):
        """Sessions, recordings, processes and shared memory that should not be there, in words."""
        said = [f"recording {name}" for name in self.kept(host)]
        listed = host.run(["timeout", "10", "lttng", "list"], check=False).stdout
        said += [f"session {line.strip()}" for line in listed.splitlines() if ") syncline-" in line]
        found = processes(host)
        for target, most in (("agent", 1), ("session-child", 1), ("guard", 0), ("program", 1),
                             ("session-daemon", 1), ("consumer-daemon", 1)):
            have = of_target(target, found)
            if len(have) > most:
                said.append(f"{len(have)} x {target}: {', '.join(p.command for p in have)}")
        said += [f"process {p.command}" for p in found if p.name.startswith("syncline-canar")]
        return said + self.left_in_shared_memory(host)

    def left_in_shared_memory(self, host):
        """Blocks of processes that are gone, and buffers that nobody freed."""
        alive = host.run(["ps", "-A", "-o", "pid="]).stdout.split()
        shm = self.outside(host, "/dev/shm")
        said = []
        for path in glob.glob(f"{shm}/syncline-*/*.block"):
            if os.path.basename(path).split("-")[1] not in alive:
                said.append(f"control block {os.path.basename(path)}")
        named = sum(info.st_blocks * 512 for info in map(os.lstat, files_below(shm)))
        space = os.statvfs(shm)
        used = (space.f_blocks - space.f_bfree) * space.f_frsize
        if used - named > 1 << 20:
            said.append(f"{(used - named) >> 10} KiB of /dev/shm without a name")
        return said


def files_below(folder):
    return [os.path.join(path, name) for path, _, names in os.walk(folder) for name in names]


def lease_of(cell):
    """A node stops by itself after this long without its coordinator."""
    return "5s" if cell.target == "coordinator" else "20s"
