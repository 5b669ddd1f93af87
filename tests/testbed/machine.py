# SPDX-License-Identifier: Apache-2.0
"""What the testbed does to this machine: checks what it needs, runs ip, removes what killed runs
left."""

import os
import shutil
import signal
import subprocess

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("SYNCLINE_BUILD_DIR", os.path.join(REPOSITORY, "build"))
WALLCLOCK_LIBRARY = os.path.join(BUILD, "lib", "libsyncline_testbed_wallclock.so")


class TestbedError(RuntimeError):
    """The testbed cannot be made; the message says what to do."""

    __test__ = False  # not a test class, whatever pytest thinks of its name


def check_preconditions():
    """Raises TestbedError with the remedy when simulated hosts cannot be made here."""
    if os.geteuid() != 0:
        raise TestbedError("Simulated hosts need root (namespaces, a bridge): run this with sudo.")
    if not os.path.exists("/proc/self/ns/time"):
        raise TestbedError(
            "This kernel has no time namespaces (Linux 5.6 or newer has, with CONFIG_TIME_NS)."
        )
    for program, package in (
        ("ip", "iproute2"),
        ("nsenter", "util-linux"),
        ("ssh-keygen", "openssh-client"),
        ("/usr/sbin/sshd", "openssh-server"),
    ):
        if not shutil.which(program):
            raise TestbedError(
                f"{program} is missing: apt-get install {package}, or run scripts/setup."
            )
    if not os.path.exists(WALLCLOCK_LIBRARY):
        raise TestbedError(
            f"{WALLCLOCK_LIBRARY} is missing: build first (scripts/setup), or name the build "
            "folder in SYNCLINE_BUILD_DIR."
        )


def remove_leftovers():
    """Removes what runs that were killed left behind: their names carry a pid that is gone."""
    for entry in listdir("/run/netns"):
        owner = owner_of(entry, "syncline-")
        if owner and not os.path.exists(f"/proc/{owner}"):
            for pid in ip("netns", "pids", entry, check=False).stdout.split():
                kill(int(pid))
            ip("netns", "delete", entry, check=False)
    for entry in listdir("/sys/class/net"):
        owner = owner_of(entry, "syn")
        if owner and not os.path.exists(f"/proc/{owner}"):
            ip("link", "delete", entry, check=False)
    for entry in listdir("/var/tmp"):
        owner = owner_of(entry, "syncline-")
        if owner and not os.path.exists(f"/proc/{owner}"):
            shutil.rmtree(os.path.join("/var/tmp", entry), ignore_errors=True)


def owner_of(entry, prefix):
    """The pid in PREFIXpid-n..., or None for a name that is not ours."""
    head = entry.removeprefix(prefix).split("-")
    return (
        int(head[0]) if entry.startswith(prefix) and len(head) > 1 and head[0].isdigit() else None
    )


def listdir(path):
    try:
        return os.listdir(path)
    except FileNotFoundError:
        return []


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def free_subnet():
    used = ip("-o", "-4", "addr").stdout
    start = os.getpid() % 250
    for step in range(250):
        subnet = f"10.77.{(start + step) % 250}"
        if f" {subnet}." not in used:
            return subnet
    raise TestbedError(
        "No free subnet in 10.77.0.0/16: 250 testbeds are up. Remove some: ip -br link."
    )


def ip(*arguments, check=True):
    result = subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=20)
    if check and result.returncode != 0:
        raise TestbedError(
            f"ip {' '.join(arguments)}: {result.stderr.strip()}. Simulated hosts need network "
            "namespaces, veth and a bridge; a container needs --privileged."
        )
    return result


def make_key(path):
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "syncline-testbed", "-f", path],
        check=True,
        timeout=20,
    )


def block_interrupts():
    """A second Ctrl-C must not stop the cleaning up half-way. (Only the main thread may do
    this.)"""
    try:
        return signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:
        return None


def restore_interrupts(previous):
    if previous is not None:
        signal.signal(signal.SIGINT, previous)


def tail(path, lines=15):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-lines:])
    except OSError:
        return ""


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
