# SPDX-License-Identifier: Apache-2.0
"""First process of a simulated host: makes the namespaces and the private files, then becomes sshd.

Runs inside the host's network namespace (ip netns exec) as `host_init.py SPEC.json`; testbed.py
writes the specification. It lies in one file without imports from this package because the checkout
is hidden from the host before it is done.

What is private to the host: network, pids, hostname, monotonic clock, wall clock, boot id, and the
directories /etc (a copy), /run, /tmp, /var/tmp, /home, /root, /opt, /srv, /dev/shm. The rest of the
machine's file system is shared and should not be written to.
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys

CLONE_NEWNS, CLONE_NEWUTS = 0x00020000, 0x04000000
CLONE_NEWPID, CLONE_NEWTIME = 0x20000000, 0x00000080
PR_SET_PDEATHSIG = 1
NS_PER_S = 1_000_000_000

PRIVATE_DIRECTORIES = ("/run", "/tmp", "/var/tmp", "/home", "/root", "/opt", "/srv")
LIBC = ctypes.CDLL(None, use_errno=True)


def unshare(flags):
    if LIBC.unshare(flags) != 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"unshare: {os.strerror(errno)}")


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def set_monotonic_offset(offset_ns):
    """Of the time namespace that the next child enters. The kernel takes (s, ns), ns never
    negative."""
    seconds, nanoseconds = divmod(offset_ns, NS_PER_S)
    with open("/proc/self/timens_offsets", "w", encoding="ascii") as file:
        file.write(f"monotonic {seconds} {nanoseconds}\nboottime {seconds} {nanoseconds}\n")


def private_etc(spec):
    """A copy of /etc in which the host has its own name, users, libraries to preload and sshd."""
    staging = os.path.join(spec["state_dir"], "etc")
    shutil.copytree("/etc", staging, symlinks=True, ignore_dangling_symlinks=True)
    etc = os.path.join(staging, "syncline-testbed")
    os.makedirs(etc)
    for name in ("host_key", "authorized_keys", "sshd_config"):
        shutil.copy2(os.path.join(spec["state_dir"], name), etc)
    os.chmod(os.path.join(etc, "host_key"), 0o600)
    shutil.copy2(spec["wallclock_library"], os.path.join(etc, "wallclock.so"))
    with open(os.path.join(etc, "wallclock"), "wb"):
        pass
    write(staging, "ld.so.preload", "/etc/syncline-testbed/wallclock.so\n")
    if spec["drift"]:
        write(etc, "drift", spec["drift"])
    write(staging, "hostname", spec["name"] + "\n")
    write(staging, "hosts", "127.0.0.1 localhost\n" + spec["etc_hosts"])
    for user in spec["users"]:
        append(
            staging,
            "passwd",
            f"{user['name']}:x:{user['uid']}:{user['uid']}::/home/{user['name']}:/bin/bash\n",
        )
        append(staging, "group", f"{user['name']}:x:{user['uid']}:\n")
        append(staging, "shadow", f"{user['name']}:*:19000:0:99999:7:::\n")
    mount("--bind", staging, "/etc")
    mount("--bind", spec["wallclock_file"], "/etc/syncline-testbed/wallclock")


def write(directory, name, text):
    path = os.path.join(directory, name)
    if os.path.islink(path):
        os.unlink(path)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def append(directory, name, text):
    with open(os.path.join(directory, name), "a", encoding="utf-8") as file:
        file.write(text)


def private_files(spec):
    mount("--make-rprivate", "/")
    mount("-t", "proc", "proc", "/proc")
    mount("--bind", os.path.join(spec["state_dir"], "boot_id"), "/proc/sys/kernel/random/boot_id")
    private_etc(spec)
    # Sources of binds may lie below a directory that is about to be covered: take hold of them
    # first.
    sources = {**spec["binds"], **spec["shared"]}
    held = {target: os.open(source, os.O_PATH) for target, source in sources.items()}
    for directory in PRIVATE_DIRECTORIES:
        if os.path.isdir(directory) and not os.path.islink(directory):
            mode = "1777" if directory.endswith("tmp") else "755"
            mount("-t", "tmpfs", "-o", f"mode={mode}", "tmpfs", directory)
    for directory in spec["hidden"]:
        if os.path.isdir(directory):
            mount("-t", "tmpfs", "-o", "mode=755,ro", "tmpfs", directory)
    size = f",size={spec['shm_bytes']}" if spec["shm_bytes"] else ""
    mount("-t", "tmpfs", "-o", f"mode=1777{size}", "tmpfs", "/dev/shm")
    os.makedirs("/run/sshd", mode=0o755)
    os.makedirs("/run/lock", mode=0o1777, exist_ok=True)
    for target, descriptor in held.items():
        os.set_inheritable(descriptor, True)
        bind_held(descriptor, target, writable=target in spec["shared"])
        os.close(descriptor)
    for user in spec["users"]:
        home = f"/home/{user['name']}"
        os.makedirs(home, mode=0o700, exist_ok=True)
        os.chown(home, user["uid"], user["uid"])


def bind_held(descriptor, target, writable):
    """Shows what the descriptor stands for at `target`. mount(8) would resolve the descriptor's
    name, which is covered by now; mount(2) does not."""
    source = f"/proc/self/fd/{descriptor}"
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "ab"):
            pass
    ms_bind, ms_remount, ms_readonly = 4096, 32, 1
    steps = [(source, ms_bind), ("none", ms_bind | ms_remount | ms_readonly)]
    for from_path, flags in steps[: 1 if writable else 2]:
        if LIBC.mount(from_path.encode(), target.encode(), None, flags, None) != 0:
            errno = ctypes.get_errno()
            raise OSError(errno, f"bind {target}: {os.strerror(errno)}")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        spec = json.load(file)
    die_with_parent()
    if spec["cpu"] is not None:
        os.sched_setaffinity(0, {spec["cpu"]})
    unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWPID | CLONE_NEWTIME)
    set_monotonic_offset(spec["monotonic_offset_ns"])
    child = os.fork()
    if child:
        # The pid of the host's first process, as the outside sees it: the way in for nsenter.
        with open(os.path.join(spec["state_dir"], "pid.new"), "w", encoding="ascii") as file:
            file.write(str(child))
        os.rename(
            os.path.join(spec["state_dir"], "pid.new"), os.path.join(spec["state_dir"], "pid")
        )
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.waitpid(child, 0)
        return
    die_with_parent()
    subprocess.run(["hostname", spec["name"]], check=True)
    private_files(spec)
    os.chdir("/")
    os.setsid()
    os.execv(
        "/usr/sbin/sshd", ["/usr/sbin/sshd", "-D", "-e", "-f", "/etc/syncline-testbed/sshd_config"]
    )


if __name__ == "__main__":
    main()
