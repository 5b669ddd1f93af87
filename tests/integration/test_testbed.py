# SPDX-License-Identifier: Apache-2.0
"""The instrument checks itself: are the hosts' clocks wrong by exactly what is claimed, are they
apart?"""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.testbed import HostSpec, Testbed
from tests.testbed.testbed import REPOSITORY

NS_PER_S = 1_000_000_000


@pytest.fixture(scope="module")
def bed():
    specs = [
        HostSpec("master-0", role="master"),
        HostSpec("worker-0", role="worker", shm_bytes=64 << 20, users=("ann",)),
    ]
    with Testbed(specs, seed=11) as made:
        yield made


def read_clock(host, clock):
    """(earliest, latest possible) difference host minus this machine, of one clock by its Python
    name."""
    code = f"import time; print(time.clock_gettime_ns(time.{clock}))"
    before = time.clock_gettime_ns(getattr(time, clock))
    there = int(host.run(["python3", "-I", "-c", code]).stdout)
    after = time.clock_gettime_ns(getattr(time, clock))
    return there - after, there - before


@pytest.mark.parametrize("clock", ["CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW", "CLOCK_BOOTTIME"])
def test_monotonic_clocks_are_off_by_the_claimed_amount(bed, clock):
    for host in bed.hosts:
        lowest, highest = read_clock(host, clock)
        assert lowest <= host.spec.monotonic_offset_ns <= highest


def test_the_kernel_holds_the_offset_to_the_nanosecond(bed):
    for host in bed.hosts:
        with open(f"/proc/{host.pid}/timens_offsets", encoding="ascii") as file:
            rows = [line.split() for line in file]
        offsets = {name: int(seconds) * NS_PER_S + int(ns) for name, seconds, ns in rows}
        assert offsets["monotonic"] == host.spec.monotonic_offset_ns


def test_wall_clocks_are_wrong_by_the_claimed_amount_and_can_be_stepped(bed):
    for host in bed.hosts:
        lowest, highest = read_clock(host, "CLOCK_REALTIME")
        assert lowest <= host.spec.wall_error_ns <= highest
        assert abs(host.spec.wall_error_ns) >= NS_PER_S // 5
    host = bed["worker-0"]
    was = host.spec.wall_error_ns
    host.set_wall_error_ns(-2 * 86400 * NS_PER_S)
    try:
        lowest, highest = read_clock(host, "CLOCK_REALTIME")
        assert lowest <= -2 * 86400 * NS_PER_S <= highest
    finally:
        host.set_wall_error_ns(was)


PACKET_STAMP = """
import socket, struct, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
s.setsockopt(socket.SOL_SOCKET, {option}, {value})
extra = []
while not extra:  # the kernel begins to stamp some time after it was asked to
    before = time.time_ns()
    s.sendto(b"x", s.getsockname())
    extra = s.recvmsg(8, 256)[1]
    after = time.time_ns()
seconds, ns = struct.unpack_from("=qq", extra[0][2])
print(before, seconds * 10**9 + ns, after)
"""


@pytest.mark.parametrize(
    "option,value",
    [(35, 1), (64, 1), (37, 0x18)],
    ids=["SO_TIMESTAMPNS", "SO_TIMESTAMPNS_NEW", "SO_TIMESTAMPING"],
)
def test_packet_stamps_follow_the_wrong_clock(bed, option, value):
    code = PACKET_STAMP.format(option=option, value=value)
    before, stamp, after = map(
        int, bed["worker-0"].run(["python3", "-I", "-c", code]).stdout.split()
    )
    assert before <= stamp <= after


WAIT = """
import ctypes, time
libc = ctypes.CDLL(None, use_errno=True)
class Timespec(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
end = time.time_ns() + 200_000_000
deadline = ctypes.byref(Timespec(end // 10**9, end % 10**9))
begin = time.monotonic()
if "{how}" == "semaphore":
    semaphore = (ctypes.c_long * 4)()
    libc.sem_init(semaphore, 0, 0)
    libc.sem_timedwait(semaphore, deadline)
elif "{how}" == "condition":
    mutex, condition = (ctypes.c_long * 5)(), (ctypes.c_long * 6)()
    libc.pthread_mutex_lock(mutex)
    libc.pthread_cond_timedwait(condition, mutex, deadline)
else:
    SYS_futex, WAIT_BITSET_PRIVATE, CLOCK_REALTIME = 202, 9 | 128, 256
    word = ctypes.c_int(0)
    how = WAIT_BITSET_PRIVATE | CLOCK_REALTIME
    libc.syscall(SYS_futex, ctypes.byref(word), how, 0, deadline, None, -1)
print(time.monotonic() - begin)
"""


@pytest.mark.parametrize("how", ["semaphore", "condition", "futex"])
@pytest.mark.parametrize("error_s", [-3600, 3600])
def test_waiting_until_a_wall_clock_time_takes_as_long_as_it_should(bed, how, error_s):
    host = bed["worker-0"]
    was = host.spec.wall_error_ns
    host.set_wall_error_ns(error_s * NS_PER_S)
    try:
        waited_s = float(host.run(["python3", "-I", "-c", WAIT.format(how=how)], timeout=20).stdout)
    finally:
        host.set_wall_error_ns(was)
    assert 0.19 <= waited_s < 5


def test_ssh_reaches_a_host_of_its_own(bed):
    boot_ids = set()
    for host in bed.hosts:
        command = (
            "hostname; cat /proc/sys/kernel/random/boot_id; ps -e -o pid= | head -1; date +%s%N"
        )
        before = time.time_ns()
        result = subprocess.run(
            ["ssh", "-F", bed.ssh_config, host.name, command],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        after = time.time_ns()
        name, boot_id, first_pid, wall_ns = result.stdout.split()
        boot_ids.add(boot_id)
        assert (name, int(first_pid)) == (host.name, 1)
        assert before + host.spec.wall_error_ns <= int(wall_ns) <= after + host.spec.wall_error_ns
    assert len(boot_ids) == len(bed.hosts)


def test_files_are_private_and_the_checkout_is_out_of_sight(bed):
    master, worker = bed.hosts
    master.run(
        [
            "sh",
            "-c",
            "mkdir /run/lttng; touch /run/lttng/mark /dev/shm/mark /tmp/mark /etc/mark /opt/mark",
        ]
    )
    seen = worker.run(
        ["sh", "-c", "ls -d /run/lttng/mark /dev/shm/mark /tmp/mark /etc/mark /opt/mark"],
        check=False,
    )
    assert seen.stdout == ""
    assert not any(
        os.path.exists(f"{directory}/mark") for directory in ("/dev/shm", "/tmp", "/etc", "/opt")
    )
    # Empty, or not even there when the checkout lies below a directory that is private.
    assert worker.run(["ls", "-A", REPOSITORY], check=False).stdout == ""
    size = worker.run(["df", "--output=size", "-B1", "/dev/shm"]).stdout.split()[1]
    assert int(size) == 64 << 20


def test_an_ordinary_user_can_be_had(bed):
    result = bed["worker-0"].run(
        ["sh", "-c", "id -u; touch ~/mine && echo $HOME; touch /etc/x || echo refused"], user="ann"
    )
    assert result.stdout.split() == ["2001", "/home/ann", "refused"]


HOLD = """
import signal
from tests.testbed import HostSpec, Testbed
with Testbed([HostSpec("a")]) as bed:
    print(bed.directory, bed.bridge, flush=True)
    signal.pause()
"""


def start_holder():
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    directory, bridge = holder.stdout.readline().split()
    return holder, directory, f"/sys/class/net/{bridge}"


def test_nothing_is_left_after_an_interrupt_and_two_runs_stand_beside_each_other(bed):
    holder, directory, bridge = start_holder()
    assert os.path.exists(directory) and os.path.exists(bridge)
    os.killpg(holder.pid, signal.SIGINT)
    holder.wait(30)
    assert not os.path.exists(directory) and not os.path.exists(bridge)
    assert bed["master-0"].run(["hostname"]).stdout == "master-0\n"


def test_the_next_run_removes_what_a_killed_one_left(bed):
    holder, directory, bridge = start_holder()
    holder.kill()
    holder.wait(30)
    assert os.path.exists(directory)
    with Testbed([HostSpec("b")]):
        assert not os.path.exists(directory) and not os.path.exists(bridge)
