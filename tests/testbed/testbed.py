# SPDX-License-Identifier: Apache-2.0
"""Simulated hosts on one Linux machine, with clocks whose error is known to the nanosecond.

    with Testbed([HostSpec("master-0"), HostSpec("worker-0")], seed=7) as bed:
        print(bed["worker-0"].run(["hostname"]).stdout)
        truth_ns = bed.monotonic_difference_ns("master-0", "worker-0")  # worker minus master, exact

A host is a set of namespaces around an sshd (host_init.py says what is private to it). Hosts share
one bridge; the machine itself has address .254 on it and plays the coordinator. Every name carries
the pid of the process that made it: runs beside each other do not meet, and what a killed run left
behind is removed by the next one.

Where this flatters: the clocks do not drift (a time namespace has a constant offset), unless a
HostSpec says that they shall; all hosts share the machine's CPUs; delay and loss on the wire are
next to nothing.
"""

import ctypes
import dataclasses
import fcntl
import itertools
import json
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import uuid

from tests.testbed.machine import (
    REPOSITORY,
    WALLCLOCK_LIBRARY,
    TestbedError,
    block_interrupts,
    check_preconditions,
    free_subnet,
    ip,
    make_key,
    remove_leftovers,
    restore_interrupts,
    tail,
    write,
)

AGENT_PORT = 7611
NS_PER_S = 1_000_000_000
START_TIMEOUT_S = 20
STOP_TIMEOUT_S = 10
HOST_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}
_bed_numbers = itertools.count()


@dataclasses.dataclass
class HostSpec:
    """What a host is to be. None: drawn from the testbed's seed."""

    name: str
    role: str = ""
    # Added to this machine's CLOCK_MONOTONIC, _RAW and _BOOTTIME; not negative.
    monotonic_offset_ns: int | None = None
    wall_error_ns: int | None = None  # host's wall clock minus the true one
    shm_bytes: int = 0  # size of /dev/shm; 0: half of the memory, as usual
    boot_id: str | None = None  # a cloned machine has its twin's
    users: tuple = ()  # ordinary users, made with uids from 2001
    # (rate_ppb, wander_ppb, period_ns): how its own clocks drift from now on (wallclock/drift.h).
    drift: tuple | None = None


@dataclasses.dataclass
class Host:
    """One running simulated host."""

    spec: HostSpec
    address: str
    state_dir: str
    namespace: str
    index: int
    process: subprocess.Popen | None = None
    pid: int = 0
    drift: str = ""  # "ANCHOR_NS RATE_PPB WANDER_PPB PERIOD_NS"; "": its clocks do not drift

    @property
    def name(self):
        return self.spec.name

    @property
    def log_path(self):
        return os.path.join(self.state_dir, "sshd.log")

    def set_wall_error_ns(self, error_ns):
        """Steps the host's wall clock, also for the processes that run."""
        self.spec.wall_error_ns = error_ns
        with open(os.path.join(self.state_dir, "wallclock"), "r+b", buffering=0) as file:
            file.write(struct.pack("=q", error_ns))

    def undrifted_ns(self, reading_ns):
        """What the host's clock would have read, at the instant at which it read this."""
        library = ctypes.CDLL(WALLCLOCK_LIBRARY)
        library.syncline_testbed_undrifted.restype = ctypes.c_int64
        library.syncline_testbed_undrifted.argtypes = (ctypes.c_char_p, ctypes.c_int64)
        return library.syncline_testbed_undrifted(self.drift.encode(), reading_ns)

    def command(self, arguments, user=None):
        """The command line that runs `arguments` on this host from outside, without ssh."""
        enter = ["nsenter", "--target", str(self.pid), "--all", "--wdns=/"]
        # nsenter stays outside as the parent: with it the command ends too.
        enter += ["setpriv", "--pdeathsig", "KILL"]
        if user:
            uid = str(self._uid(user))
            enter += ["--reuid", uid, "--regid", uid, "--clear-groups", "env", f"HOME=/home/{user}"]
        return enter + ["--"] * (not user) + list(arguments)

    def _uid(self, user):
        return user_ids(self.spec)[user]

    def run(self, arguments, *, user=None, check=True, timeout=60, env=None, **options):
        """Runs a command on the host and returns its CompletedProcess (text, output captured)."""
        return subprocess.run(
            self.command(arguments, user),
            check=check,
            timeout=timeout,
            text=True,
            capture_output=True,
            env={**HOST_ENVIRONMENT, **(env or {})},
            **options,
        )

    def popen(self, arguments, *, user=None, env=None, **options):
        return subprocess.Popen(
            self.command(arguments, user),
            text=True,
            env={**HOST_ENVIRONMENT, **(env or {})},
            **options,
        )


def real_sources(binds):
    return {target: os.path.realpath(source) for target, source in binds.items()}


def user_ids(spec):
    return {name: 2001 + number for number, name in enumerate(spec.users)}


class Testbed:
    """Several hosts on one bridge. A context manager; start() and stop() for those who cannot use
    `with`."""

    __test__ = False

    def __init__(self, specs, *, seed=1, hidden=(REPOSITORY,), binds=None, shared=None, pin=True):
        """`hidden`: directories the hosts see empty; `binds`: host path -> path here, shown
        read-only; `shared`: the same, and all hosts may write there, as on a file system that they
        share; `pin`: host k runs on CPU k (modulo), so that hosts disturb each other less."""
        self._specs = [dataclasses.replace(spec) for spec in specs]
        self._hidden, self._pin = list(hidden), pin
        self._binds, self._shared = dict(binds or {}), dict(shared or {})
        tag = f"{os.getpid()}-{next(_bed_numbers)}"
        self._prefix = f"syncline-{tag}-"
        self.bridge = f"syn{tag}"
        self.directory = None
        self.hosts = []
        self._draw(random.Random(seed))

    def _draw(self, rng):
        for spec in self._specs:
            # 100 s to 1 h apart, not whole seconds; wall clocks 0.2 s to 5 s wrong, either way.
            monotonic_ns = rng.randrange(100 * NS_PER_S, 3600 * NS_PER_S)
            wall_ns = rng.choice((-1, 1)) * rng.randrange(NS_PER_S // 5, 5 * NS_PER_S)
            boot_id = str(uuid.UUID(int=rng.getrandbits(128), version=4))
            if spec.monotonic_offset_ns is None:
                spec.monotonic_offset_ns = monotonic_ns
            if spec.wall_error_ns is None:
                spec.wall_error_ns = wall_ns
            if spec.boot_id is None:
                spec.boot_id = boot_id

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def __getitem__(self, name):
        for host in self.hosts:
            if host.name == name:
                return host
        raise KeyError(name)

    def monotonic_difference_ns(self, local, remote):
        """The known truth: remote's CLOCK_MONOTONIC(_RAW) minus local's at the same instant."""
        return self[remote].spec.monotonic_offset_ns - self[local].spec.monotonic_offset_ns

    # ---- start -----------------------------------------------------------------------------------

    def start(self):
        check_preconditions()
        remove_leftovers()
        try:
            self.directory = tempfile.mkdtemp(prefix=self._prefix, dir="/var/tmp")
            self._make_user_key()
            self._make_network()
            for host in self.hosts:
                self._launch(host)
            deadline = time.monotonic() + START_TIMEOUT_S
            for host in self.hosts:
                wait_until_up(host, deadline)
            self._write_client_files()
        except BaseException:
            self.stop()
            raise

    def _make_user_key(self):
        self.key_path = os.path.join(self.directory, "id_ed25519")
        make_key(self.key_path)

    def _make_network(self):
        with open("/var/tmp/syncline-testbed.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two runs must not choose the same subnet
            subnet = free_subnet()
            ip("link", "add", self.bridge, "type", "bridge")
            ip("addr", "add", f"{subnet}.254/24", "dev", self.bridge)
        ip("link", "set", self.bridge, "up")
        self.coordinator_address = f"{subnet}.254"
        for index, spec in enumerate(self._specs):
            host = Host(
                spec,
                f"{subnet}.{index + 1}",
                os.path.join(self.directory, spec.name),
                self._prefix + spec.name,
                index,
            )
            self.hosts.append(host)
            outer = f"v{self.bridge[3:]}-{index}"
            ip("netns", "add", host.namespace)
            ip(
                "link",
                "add",
                outer,
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                host.namespace,
            )
            ip("link", "set", outer, "master", self.bridge, "up")
            ip("-n", host.namespace, "addr", "add", f"{host.address}/24", "dev", "eth0")
            ip("-n", host.namespace, "link", "set", "eth0", "up")
            ip("-n", host.namespace, "link", "set", "lo", "up")

    def _launch(self, host):
        os.makedirs(host.state_dir, mode=0o700)
        spec = host.spec
        make_key(os.path.join(host.state_dir, "host_key"))
        write(os.path.join(host.state_dir, "boot_id"), spec.boot_id + "\n")
        with open(os.path.join(host.state_dir, "wallclock"), "wb") as file:
            file.write(struct.pack("=q", spec.wall_error_ns))
        if spec.drift:
            anchor_ns = time.monotonic_ns() + spec.monotonic_offset_ns
            host.drift = " ".join(str(number) for number in (anchor_ns, *spec.drift))
        shutil.copy2(self.key_path + ".pub", os.path.join(host.state_dir, "authorized_keys"))
        write(os.path.join(host.state_dir, "sshd_config"), SSHD_CONFIG.format(address=host.address))
        write(
            os.path.join(host.state_dir, "spec.json"),
            json.dumps(
                {
                    "name": spec.name,
                    "state_dir": host.state_dir,
                    "monotonic_offset_ns": spec.monotonic_offset_ns,
                    "wallclock_file": os.path.join(host.state_dir, "wallclock"),
                    "wallclock_library": WALLCLOCK_LIBRARY,
                    "drift": host.drift,
                    "shm_bytes": spec.shm_bytes,
                    "users": [{"name": name, "uid": uid} for name, uid in user_ids(spec).items()],
                    "binds": real_sources(self._binds),
                    "shared": real_sources(self._shared),
                    "hidden": self._hidden,
                    "etc_hosts": "".join(f"{other.address} {other.name}\n" for other in self.hosts),
                    "cpu": host.index % os.cpu_count() if self._pin else None,
                }
            ),
        )
        init = os.path.join(os.path.dirname(os.path.abspath(__file__)), "host_init.py")
        with open(host.log_path, "wb") as log:
            host.process = subprocess.Popen(
                [
                    "ip",
                    "netns",
                    "exec",
                    host.namespace,
                    sys.executable,
                    "-I",
                    init,
                    os.path.join(host.state_dir, "spec.json"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=HOST_ENVIRONMENT,
                start_new_session=True,
            )

    def _write_client_files(self):
        """What a person at the coordinator would have: hosts file, ssh configuration, pinned
        keys."""
        self.hosts_file = os.path.join(self.directory, "hosts")
        self.known_hosts = os.path.join(self.directory, "known_hosts")
        self.ssh_config = os.path.join(self.directory, "ssh_config")
        lines, known, config = [], [], []
        for host in self.hosts:
            role = f" role={host.spec.role}" if host.spec.role else ""
            lines.append(f"{host.name} {host.address}:{AGENT_PORT}{role}\n")
            with open(os.path.join(host.state_dir, "host_key.pub"), encoding="ascii") as file:
                kind, key = file.read().split()[:2]
            known.append(f"{host.address} {kind} {key}\n")
            config.append(f"Host {host.name} {host.address}\n  HostName {host.address}\n")
        config.append(
            f"Host *\n  User root\n  IdentityFile {self.key_path}\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self.known_hosts}\n  StrictHostKeyChecking yes\n"
        )
        write(self.hosts_file, "".join(lines))
        write(self.known_hosts, "".join(known))
        write(self.ssh_config, "".join(config))

    # ---- stop ------------------------------------------------------------------------------------

    def stop(self):
        """Removes everything start() made, in whatever state it is; never raises."""
        previous = block_interrupts()
        try:
            for host in self.hosts:
                kill_host(host)
            for host in self.hosts:
                ip("netns", "delete", host.namespace, check=False)
            ip("link", "delete", self.bridge, check=False)
            if self.directory:
                shutil.rmtree(self.directory, ignore_errors=True)
            self.hosts = []
        finally:
            restore_interrupts(previous)


SSHD_CONFIG = """\
Port 22
ListenAddress {address}
HostKey /etc/syncline-testbed/host_key
AuthorizedKeysFile /etc/syncline-testbed/authorized_keys
PidFile /run/sshd.pid
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
UseDNS no
PrintMotd no
Subsystem sftp internal-sftp
MaxStartups 100:30:200
MaxSessions 64
"""


def wait_until_up(host, deadline):
    pid_path = os.path.join(host.state_dir, "pid")
    while True:
        if host.process.poll() is not None:
            raise TestbedError(
                f"Host {host.name} did not start:\n{tail(host.log_path)}"
                "If namespaces are not permitted here (a container?), give it CAP_SYS_ADMIN "
                "and CAP_NET_ADMIN (docker run --privileged), or use a virtual machine."
            )
        if os.path.exists(pid_path) and port_answers(host.address, 22):
            with open(pid_path, encoding="ascii") as file:
                host.pid = int(file.read())
            return
        if time.monotonic() > deadline:
            raise TestbedError(
                f"Host {host.name}: no ssh at {host.address} after {START_TIMEOUT_S} s. If a "
                f"firewall filters bridges, allow 10.77.0.0/16.\n{tail(host.log_path)}"
            )
        time.sleep(0.02)


def port_answers(address, port):
    try:
        with socket.create_connection((address, port), timeout=0.5):
            return True
    except OSError:
        return False


def kill_host(host):
    """The end of the host's first process ends every process of its pid namespace."""
    if not host.process:
        return
    if host.process.poll() is None:
        host.process.kill()
    try:
        host.process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        print(f"testbed: {host.name} (pid {host.process.pid}) does not die", file=sys.stderr)
    # The inner process dies with the outer one (PR_SET_PDEATHSIG); its files are ours once it is
    # gone.
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while host.pid and os.path.exists(f"/proc/{host.pid}") and time.monotonic() < deadline:
        time.sleep(0.01)
