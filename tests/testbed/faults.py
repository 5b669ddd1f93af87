# SPDX-License-Identifier: Apache-2.0
"""Real faults for the training job on simulated hosts: a CPU quota, a thief, or one in the job.

    with faults.ControlGroups() as groups, Testbed(specs, binds={**faults.BINDS, ...}) as bed:
        for host in bed.hosts:
            groups.admit(host)                 # from now on it sees control groups
        line = faults.job_line(groups, "python train.py")   # for bash, on every host
        groups.limit(1, 0.6)                   # rank 1 gets 0.6 CPUs from now on
        with faults.Thief(bed.hosts[0], 0.3, python): ...

Groups are those of cgroup v1's cpu controller, which is what the test machines have. Their names
carry the pid of the process that made them: what a killed run left is removed by the next one.
"""

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from tests.testbed.machine import REPOSITORY, TestbedError, kill, listdir

EXAMPLE = os.path.join(REPOSITORY, "examples", "pytorch_fault")
HOST_EXAMPLE = "/opt/faults"  # where hosts see it, when it is among the testbed's binds
BINDS = {HOST_EXAMPLE: EXAMPLE}
HOST_DATA = "/opt/data/pixels"  # likewise (data_on_disk): what a job with the fault storage reads
CONTROLLER = "/sys/fs/cgroup/cpu"  # the same path here and on the hosts
PREFIX = "syncline-test-"
PERIOD_US = 100_000
SHARES = 1024  # of a group for which nothing else is said
SHARES_MAX = 262_144  # the kernel's limit
REMOVE_LIMIT_S = 10
_numbers = itertools.count()

# `ip netns exec` mounts /sys anew, so that a host sees no control groups. Given the hierarchy's
# own mount back, it reads and writes what this machine does.
SHOW_GROUPS = f"""
set -e
test ! -d {CONTROLLER} || exit 0
mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
mkdir {CONTROLLER}
mount -t cgroup -o cpu cgroup {CONTROLLER}
"""


def check_control_groups():
    """Raises TestbedError where there are no quotas of cgroup v1."""
    if not os.path.exists(f"{CONTROLLER}/cpu.shares"):
        raise TestbedError(
            f"There is no cpu controller of cgroup v1 at {CONTROLLER}: mkdir -p {CONTROLLER} && "
            f"mount -t cgroup -o cpu cgroup {CONTROLLER}. Where systemd has taken the controller "
            "for cgroup v2, boot with systemd.unified_cgroup_hierarchy=0."
        )


class ControlGroups:
    """For each rank a group with one inside, in which its job runs: /syncline-test-PID-N/job/rankR
    has the limits, /syncline-test-PID-N/job/rankR/main the processes.

    Everything else of the hosts, and the process that made them, runs in a group beside it,
    `hosts`. All of it goes before what the machine does otherwise (cpu.shares): a compiler that
    runs beside it would be one more fault, and rightly be named.
    """

    def __init__(self, ranks=2):
        self._ranks = ranks
        self.root = f"/{PREFIX}{os.getpid()}-{next(_numbers)}"
        self._hosts = f"{CONTROLLER}{self.root}/hosts"
        # What is in it runs only while nobody else wants its core. (The policy SCHED_IDLE would not
        # do: it counts among the processes of one group.)
        self.idle = f"{CONTROLLER}{self.root}/idle"

    def __enter__(self):
        check_control_groups()
        remove_leftovers()
        with open("/proc/self/cgroup", encoding="ascii") as file:
            rows = [line.rstrip("\n").split(":", 2) for line in file]
        self._home = next(path for _, names, path in rows if "cpu" in names.split(","))
        try:
            for rank in range(self._ranks):
                os.makedirs(CONTROLLER + self.inner(rank))
            os.mkdir(self._hosts)
            put(f"{CONTROLLER}{self.root}/cpu.shares", SHARES_MAX)
            # A group's shares are divided among the cores that it runs on: one each.
            put(f"{CONTROLLER}{self.root}/job/cpu.shares", self._ranks * SHARES)
            os.mkdir(self.idle)
            put(f"{self.idle}/cpu.idle", 1)
            put(f"{self._hosts}/cgroup.procs", os.getpid())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        put(f"{CONTROLLER}{self._home}/cgroup.procs", os.getpid())
        remove(self.root)

    def admit(self, host):
        """The host's processes see this machine's cpu groups from now on, and run in one."""
        done = host.run(["sh", "-c", SHOW_GROUPS], check=False)
        if done.returncode != 0:
            raise TestbedError(f"{host.name}: cannot mount {CONTROLLER}: {done.stderr.strip()}")
        put(f"{self._hosts}/cgroup.procs", host.pid)

    def outer(self, rank):
        return f"{self.root}/job/rank{rank}"

    def inner(self, rank):
        return f"{self.outer(rank)}/main"

    def limit(self, rank, cpus, inner=False):
        """So many CPUs from now on; None: as many as there are."""
        group = CONTROLLER + (self.inner(rank) if inner else self.outer(rank))
        put(f"{group}/cpu.cfs_period_us", PERIOD_US)
        put(f"{group}/cpu.cfs_quota_us", -1 if cpus is None else round(cpus * PERIOD_US))

    def unlimited(self):
        """Takes all limits away: a parent's cannot be lower than a child's."""
        for rank in range(self._ranks):
            self.limit(rank, None, inner=True)
            self.limit(rank, None)

    def processes(self, rank):
        """The pids of the rank's job, as this machine numbers them."""
        return pids_in(CONTROLLER + self.inner(rank))

    def end_jobs(self):
        """Ends what runs in the groups, and waits until it is gone."""
        deadline = time.monotonic() + REMOVE_LIMIT_S
        number = signal.SIGTERM
        while pids := [pid for rank in range(self._ranks) for pid in self.processes(rank)]:
            if time.monotonic() > deadline - REMOVE_LIMIT_S / 2:
                number = signal.SIGKILL
            if time.monotonic() > deadline:
                raise TestbedError(f"the job's processes do not end: {pids}")
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(0.05)

    def statistics(self, rank, inner=False):
        """{name: value} of cpu.stat: nr_periods, nr_throttled, throttled_time (ns)."""
        group = CONTROLLER + (self.inner(rank) if inner else self.outer(rank))
        with open(f"{group}/cpu.stat", encoding="ascii") as file:
            return {name: int(value) for name, value in map(str.split, file)}


def pids_in(folder):
    """The processes of a control group."""
    with open(f"{folder}/cgroup.procs", encoding="ascii") as file:
        return [int(line) for line in file]


def put(path, value):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(value))


def remove_leftovers():
    """Groups of runs that were killed: their names carry a pid that is gone."""
    for entry in listdir(CONTROLLER):
        owner = entry.removeprefix(PREFIX).split("-")[0]
        if entry.startswith(PREFIX) and not os.path.exists(f"/proc/{owner}"):
            remove("/" + entry)


def remove(group):
    """The group and those in it, with what still runs in them."""
    folders = [folder for folder, _, _ in os.walk(CONTROLLER + group, topdown=False)]
    deadline = time.monotonic() + REMOVE_LIMIT_S
    for folder in folders:
        while True:
            try:
                os.rmdir(folder)
                break
            except FileNotFoundError:
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise TestbedError(f"cannot remove {folder}: {error.strerror}") from error
            with contextlib.suppress(OSError):
                for pid in pids_in(folder):
                    kill(pid)
            time.sleep(0.05)


def job_line(groups, command):
    """A line for a host's bash, which knows its RANK: the command, within its rank's group."""
    inner = f"{CONTROLLER}{groups.root}/job/rank$RANK/main"
    return f"echo $$ > {inner}/cgroup.procs && exec {command}"


@contextlib.contextmanager
def data_on_disk():
    """Binds that show hosts HOST_DATA, 64 MiB: their own directories are in memory."""
    folder = tempfile.mkdtemp(prefix=f"syncline-{os.getpid()}-data-", dir="/var/tmp")
    try:
        with open(os.path.join(folder, os.path.basename(HOST_DATA)), "wb") as file:
            for _ in range(64):
                file.write(os.urandom(2**20))
            file.flush()
            os.fsync(file.fileno())
        yield {os.path.dirname(HOST_DATA): folder}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Thief:
    """A process beside the job, on the host's core, that takes `share` of it; in the control group
    whose directory is given, else in the host's."""

    def __init__(self, host, share, python, name="thief", group=""):
        self._host = host
        core = host.index % os.cpu_count()
        join = f"echo $$ > {group}/cgroup.procs && " if group else ""
        thief = f"{python} {HOST_EXAMPLE}/thief.py --share {share:.3f} --name {name}"
        self._command = ["sh", "-c", f"{join}exec taskset -c {core} {thief}"]

    def __enter__(self):
        self._process = self._host.popen(
            self._command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        return self

    def __exit__(self, *_):
        self._process.kill()  # nsenter; its child dies with it (setpriv --pdeathsig)
        self._process.wait()


class Stealing:
    """A hypervisor that takes a quarter of a rank's time: the rank's processes stand still, and the
    host's /proc/stat says so, of all CPUs of this machine."""

    STANDS_S, RUNS_S = 0.006, 0.018

    def __init__(self, host, groups, rank):
        self._host, self._pids = host, groups.processes(rank)
        self._done = threading.Event()
        self._stolen_s = 0.0

    def __enter__(self):
        self._host.run(["sh", "-c", "touch /run/stat && mount --bind /run/stat /proc/stat"])
        self._file = os.open(f"/proc/{self._host.pid}/root/run/stat", os.O_WRONLY)
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._steal)
        self._thread.start()
        return self

    def _steal(self):
        while not self._done.wait(self.RUNS_S):
            begin = time.monotonic()
            self._send(signal.SIGSTOP)
            time.sleep(self.STANDS_S)
            self._send(signal.SIGCONT)
            now = time.monotonic()
            self._stolen_s += now - begin
            stolen, all_of_it = (int(100 * s) for s in (self._stolen_s, now - self._began))
            line = f"{all_of_it - stolen:09} 0 0 0 0 0 0 {stolen:09} 0 0\n"
            names = ["cpu"] + [f"cpu{number}" for number in range(os.cpu_count())]
            os.pwrite(self._file, "".join(f"{name} {line}" for name in names).encode(), 0)

    def _send(self, number):
        for pid in self._pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()
        os.close(self._file)
        self._host.run(["umount", "/proc/stat"])
