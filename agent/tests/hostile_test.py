# SPDX-License-Identifier: Apache-2.0
"""Users of one node who mean harm, beside an agent that runs as root (see harness.py).

Beside each attack another user is recorded with all that he counted, and a canary tree, which the
attacks aim at, stays as it is by checksum, owner and mode.
"""

import hashlib
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

from harness import (
    BUILD, Agent, CallError, as_user, children_named, count_events, discarded_events, main,
    wait_until,
)

HOSTILE, HONEST, VICTIM = 61234, 61240, 61241
RUNTIME = f"/dev/shm/syncline-{HOSTILE}"
# Stops the first canary that runs as its user, and writes down what that one was given.
STOP_CANARY = """
import os, signal, sys
while True:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as comm:
                if not comm.read().startswith("syncline-canary"):
                    continue
            os.kill(int(pid), signal.SIGSTOP)
            with open(f"/proc/{pid}/environ") as environ, open(sys.argv[1], "w") as seen:
                seen.write(environ.read().replace(chr(0), chr(10)))
            sys.exit(0)
        except OSError:
            pass
"""
NAMES_BYTES_AT = 1816  # in a block: instrumentation/abi/control_block.h


def checksum(tree):
    """Of everything below: names, kinds, owners, modes and contents."""
    digest = hashlib.sha256()
    for folder, folders, files in sorted(os.walk(tree)):
        folders.sort()
        for name in sorted(folders + files) + ["."]:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            digest.update(f"{path} {info.st_mode} {info.st_uid} {info.st_gid} ".encode())
            if name in files and not os.path.islink(path):
                with open(path, "rb") as file:
                    digest.update(file.read())
    return digest.hexdigest()


class HostileTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="syncline-hostile-")
        self.root = self.scratch.name
        os.chmod(self.root, 0o755)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], check=True)
        os.chmod("/dev/shm", 0o1777)
        self.canary = os.path.join(self.root, "canary")
        os.mkdir(self.canary)
        with open(os.path.join(self.canary, "secret"), "w", encoding="ascii") as file:
            file.write("of root's")
        os.chmod(file.name, 0o644)
        self.before = checksum(self.canary)
        self.jobs = []
        self.said = ""  # the complaints of the last Prepare
        self.agent = Agent(self.root)
        self.honest = self.job(HONEST)

    def tearDown(self):
        for job in self.jobs:
            job.kill()
            job.wait()
        if self.agent.process.poll() is None:
            self.agent.end()
        for pid in children_named("lttng-sessiond"):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not children_named("lttng-sessiond"), what="session daemons gone")
        subprocess.run(["umount", "-l", "/dev/shm"], check=True)
        self.scratch.cleanup()

    def job(self, uid, arguments=(), environment=None):
        truth = os.path.join(self.root, f"truth.{len(self.jobs)}")
        with open(truth, "wb"):
            os.chown(truth, uid, uid)
        self.jobs.append(subprocess.Popen(
            as_user(uid)
            + [f"{BUILD}/bin/syncline-itt-truth", "--tasks", "0", "--work-ns", "20000",
               "--duration-ms", "60000", "--truth", truth, *arguments],
            env=dict(os.environ, INTEL_LIBITTNOTIFY64=f"{BUILD}/lib/libsyncline_itt.so",
                     **(environment or {})),
        ))
        pid = self.jobs[-1].pid
        place = f"/dev/shm/syncline-{uid}"
        wait_until(lambda: os.path.isdir(place)
                   and any(f"-{pid}-" in name for name in os.listdir(place)), what="block")
        return self.jobs[-1]

    def hostile(self, script):
        """What the hostile user does, in a shell of his."""
        subprocess.run(as_user(HOSTILE) + ["sh", "-ec", script], check=True, cwd="/",
                       env={"PATH": os.environ["PATH"], "CANARY": self.canary, "R": RUNTIME,
                            "HONEST": str(HONEST)})

    def expect_the_honest_one_is_recorded(self, recording_id, about=f"ser {HOSTILE}", **prepare):
        """What Stop answered, and where the fetched files are."""
        prepared = self.agent.call("Prepare", recording_id=recording_id, holder="ann@laptop",
                                   **prepare)
        self.said = "\n".join(one["what"] for one in prepared.get("complaints", []))
        self.assertIn(about, self.said)
        self.agent.call("Start", recording_id=recording_id)
        wait_until(lambda: int(self.agent.call("Status", recording_id=recording_id)
                               .get("events_count", 0)) > 100, what="events")
        stopped = self.agent.call("Stop", recording_id=recording_id)
        coverage = {int(one["own_pid"]): one for one in stopped["coverage"]}[self.honest.pid]
        self.assertGreater(int(coverage["events_count"]), 100)
        self.assertTrue(stopped["complete"], stopped)
        fetched = os.path.join(self.root, f"fetched-{recording_id}")
        os.mkdir(fetched)
        self.agent.call("Fetch", cwd=fetched, recording_id=recording_id)
        found = count_events(os.path.join(fetched, "trace"))
        self.assertGreaterEqual(found + discarded_events(stopped), int(coverage["events_count"]))
        self.agent.call("Release", recording_id=recording_id)
        self.assertEqual(checksum(self.canary), self.before)
        return stopped, fetched

    def test_what_is_planted_in_place_of_a_directory_or_its_lock(self):
        plants = {
            "link": 'ln -s "$CANARY" $R',
            "fifo": "mkfifo -m 600 $R",
            "lock": 'mkdir -m 700 $R; ln -s "$CANARY/secret" $R/agent.lock',
        }
        for name, script in plants.items():
            with self.subTest(name):
                self.hostile(script)
                self.expect_the_honest_one_is_recorded(name)
                self.hostile("rm -rf $R")

    def test_directories_and_blocks_in_the_name_of_others(self):
        self.hostile("i=70000; while [ $i -lt 70300 ]; do mkdir -m 700 /dev/shm/syncline-$i;"
                     " i=$((i + 1)); done; mkdir -m 700 $R")
        for name in os.listdir(f"/dev/shm/syncline-{HONEST}"):  # whatever he may have got hold of
            if f"-{self.honest.pid}-" in name:
                copy = shutil.copy(f"/dev/shm/syncline-{HONEST}/{name}", RUNTIME)
                os.chmod(copy, 0o600)
                os.chown(copy, HOSTILE, HOSTILE)
        stopped, _ = self.expect_the_honest_one_is_recorded("others", "has put 300 entries")
        self.assertEqual([int(one["uid"]) for one in stopped["processes"]], [HONEST])

    def test_a_lock_that_a_user_holds(self):
        self.hostile("mkdir -m 700 $R; umask 077; printf 'M\\374ller' >$R/agent.lock")
        self.jobs.append(subprocess.Popen(
            as_user(HOSTILE) + ["flock", f"{RUNTIME}/agent.lock", "sleep", "60"]))
        wait_until(lambda: subprocess.run(
            ["flock", "-n", f"{RUNTIME}/agent.lock", "true"], check=False).returncode != 0)
        self.expect_the_honest_one_is_recorded("lock", "by another agent for M\ufffdller")

    def test_an_exchanged_directory_keeps_what_is_elsewhere(self):
        """A block of a process that has ended is removed: not where a link leads meanwhile."""
        job = self.job(HOSTILE)
        self.agent.call("Prepare", recording_id="first", holder="ann@laptop")
        self.agent.call("Start", recording_id="first")
        job.kill()
        job.wait()
        self.agent.call("Stop", recording_id="first")
        names = [name for name in os.listdir(RUNTIME) if f"-{job.pid}-" in name]
        self.assertEqual(len(names), 2)
        for name in names:
            shutil.copy(os.path.join(RUNTIME, name), self.canary)
        self.before = checksum(self.canary)
        self.hostile('mv $R $R.moved; ln -s "$CANARY" $R')
        self.expect_the_honest_one_is_recorded("second")

    def test_texts_that_are_not_utf8(self):
        """An argument, and a name of the process, as LTTng makes a folder of it."""
        program = os.path.join(self.root, b"M\xfcller".decode("utf-8", "surrogateescape"))
        shutil.copy(f"{BUILD}/bin/syncline-itt-truth", program)
        truth = os.path.join(self.root, "truth")
        with open(truth, "wb"):
            os.chown(truth, HOSTILE, HOSTILE)
        self.jobs.append(subprocess.Popen(
            as_user(HOSTILE)
            + [program, "--tasks", "0", "--work-ns", "20000", "--duration-ms", "60000",
               "--truth", truth],
            env=dict(os.environ, INTEL_LIBITTNOTIFY64=f"{BUILD}/lib/libsyncline_itt.so",
                     SYNCLINE_JOB=b"cut \xe2\x82".decode("utf-8", "surrogateescape"))))
        wait_until(lambda: os.path.isdir(RUNTIME) and len(os.listdir(RUNTIME)) >= 3)
        described = self.agent.call("Describe")
        self.assertIn("M\ufffdller", str(described))
        stopped, fetched = self.expect_the_honest_one_is_recorded(
            "texts", about="", buffer_scheme="PER_PROCESS")
        self.assertEqual(len(stopped["processes"]), 2)
        self.assertIn("cut \ufffd\ufffd", str(stopped["processes"]))
        paths = [path for path, _, _ in os.walk(fetched)]
        self.assertTrue(any("M\ufffdller" in path for path in paths), paths)

    def test_sparse_names(self):
        """Of some kilobytes in shared memory, gigabytes on the agent's disk."""
        job = self.job(HOSTILE)
        self.agent.call("Prepare", recording_id="sparse", holder="ann@laptop")
        self.agent.call("Start", recording_id="sparse")
        (names,) = [name for name in os.listdir(RUNTIME)
                    if f"-{job.pid}-" in name and name.endswith(".names")]
        os.truncate(os.path.join(RUNTIME, names), 64 << 20)
        with open(os.path.join(RUNTIME, names.replace(".names", ".block")), "r+b") as block:
            block.seek(NAMES_BYTES_AT)
            (claimed,) = struct.unpack("<Q", block.read(8))
            self.assertTrue(0 < claimed < 1 << 16, claimed)
            block.seek(NAMES_BYTES_AT)
            block.write(struct.pack("<Q", 64 << 20))
        stopped = self.agent.call("Stop", recording_id="sparse")
        kept = os.path.join(self.agent.data, "recordings", "sparse", "processes", names)
        self.assertLess(os.path.getsize(kept), 1 << 20)
        self.assertTrue(stopped["complete"])

    def test_the_place_of_an_ordinary_users_daemon_is_taken(self):
        """Without root: LTTng's daemon would follow a link into its own user's files."""
        files = os.path.join(self.root, "files")
        own = os.path.join(self.root, "own")
        for folder in (files, own):
            os.mkdir(folder, 0o700)
            os.chown(folder, VICTIM, VICTIM)
        places = {
            "link": (f'ln -s {files} /dev/shm/theirs', "/dev/shm/theirs"),
            "below": (f'mkdir -m 777 /dev/shm/open; ln -s {files} /dev/shm/open/lttng',
                      "/dev/shm/open/lttng"),
        }
        for name, (script, home) in places.items():
            with self.subTest(name):
                self.hostile(script)
                agent = Agent(self.root, uid=VICTIM, name=f"own/{name}",
                              environment=dict(os.environ, LTTNG_HOME=home))
                try:
                    with self.assertRaises(CallError) as refused:
                        agent.call("Prepare", recording_id="r1", holder="ann@laptop")
                finally:
                    agent.end()
                self.assertIn("Cannot trust", refused.exception.message)
                self.assertEqual(os.listdir(files), [])

    def test_the_canary_has_none_of_roots_environment(self):
        """Its user can read it; he also stops it, which costs nobody else the recording."""
        self.agent.end()
        self.agent.environment = dict(os.environ, ROOTS_TOKEN="secret")
        self.agent.start()
        self.job(HOSTILE)
        seen = os.path.join(self.root, "seen")
        with open(seen, "wb"):
            os.chown(seen, HOSTILE, HOSTILE)
        for attempt in range(5):  # a canary lives for some tens of ms: it may be missed
            watch = subprocess.Popen(as_user(HOSTILE) + [sys.executable, "-c", STOP_CANARY, seen])
            self.jobs.append(watch)
            self.expect_the_honest_one_is_recorded(f"canary-{attempt}", about="")
            if os.path.getsize(seen):
                break
            watch.kill()
        self.assertIn(f"Programs of user {HOSTILE} may not be recorded", self.said)
        with open(seen, encoding="ascii") as file:
            environment = file.read()
        self.assertIn("PATH=", environment)
        self.assertNotIn("secret", environment)


if __name__ == "__main__":
    main()
