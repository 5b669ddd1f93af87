# SPDX-License-Identifier: Apache-2.0
"""What tests of a real agent share: a place of its own for each, programs that make ITT tasks."""

import os
import signal
import subprocess
import tempfile
import unittest

from harness import (
    BUILD, Agent, as_user, children_named, count_events, discarded_events, wait_until,
)


class AgentCase(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="syncline-agent-")
        self.root = self.scratch.name
        os.chmod(self.root, 0o755)
        self.agents = []
        self.jobs = []
        # A pid namespace's number may be used again: no test sees another's leftovers.
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], check=True)
        os.chmod("/dev/shm", 0o1777)

    def tearDown(self):
        for job in self.jobs:
            if job.poll() is None:
                job.send_signal(signal.SIGCONT)
                job.kill()
            job.wait()
            for pipe in filter(None, (job.stdin, job.stdout)):
                pipe.close()
        for agent in self.agents:
            if agent.process.poll() is None:
                agent.end()
        for pid in children_named("lttng-sessiond"):
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not children_named("lttng-sessiond"), what="session daemons gone")
        subprocess.run(["umount", "-l", "/dev/shm"], check=True)
        self.scratch.cleanup()

    def agent(self, **options):
        self.agents.append(Agent(self.root, **options))
        return self.agents[-1]

    def job(self, uid=0, seconds=30, environment=None, work_ns=20000):
        """A program that makes ITT tasks all the time, each of so much work."""
        variables = dict(
            os.environ,
            INTEL_LIBITTNOTIFY64=f"{BUILD}/lib/libsyncline_itt.so",
            **(environment or {}),
        )
        truth = os.path.join(self.root, f"truth.{len(self.jobs)}")
        with open(truth, "wb"):
            os.chown(truth, uid, uid)
        self.jobs.append(
            subprocess.Popen(
                as_user(uid)
                + [f"{BUILD}/bin/syncline-itt-truth", "--tasks", "0", "--work-ns", str(work_ns),
                   "--duration-ms", str(seconds * 1000), "--truth", truth],
                env=variables,
            )
        )
        job = self.jobs[-1]
        directory = f"/dev/shm/syncline-{uid}"
        wait_until(
            lambda: os.path.isdir(directory)
            and any(f"-{job.pid}-" in name for name in os.listdir(directory)),
            what="control block",
        )
        return job

    def leave_shared_memory(self, kib):
        info = os.statvfs("/dev/shm")
        used = (info.f_blocks - info.f_bfree) * info.f_frsize >> 10
        subprocess.run(["mount", "-o", f"remount,size={used + kib}k", "/dev/shm"], check=True)

    def traps(self, scenario):
        """A program that goes on from point to point, when told; it is at the first."""
        job = subprocess.Popen(
            [f"{BUILD}/tests/itt_traps", scenario],
            env=dict(os.environ, INTEL_LIBITTNOTIFY64=f"{BUILD}/lib/libsyncline_itt.so"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        self.jobs.append(job)
        self.assertEqual(job.stdout.readline(), "ready\n")
        return job

    def go_on(self, job, until):
        job.stdin.write("\n")
        job.stdin.flush()
        self.assertEqual(job.stdout.readline(), until + "\n")

    def begin(self, agent, recording_id):
        agent.call("Prepare", recording_id=recording_id, holder="ann@laptop")
        agent.call("Start", recording_id=recording_id)

    def trace_of(self, agent, recording_id):
        return os.path.join(agent.data, "recordings", recording_id, "trace")

    def assert_nothing_is_missing(self, directory, stopped, in_the_midst=0):
        """What the programs counted is in the trace, or the tracer says that it threw it away.

        in_the_midst: threads that were stopped as the recording ended. An event is counted after
        it was written: such a thread may stand between the two.
        """
        counted = sum(int(one["events_count"]) for one in stopped["coverage"])
        discarded = discarded_events(stopped)
        more = count_events(directory) + discarded - counted
        self.assertIn(more, range(in_the_midst + 1), f"{discarded} discarded")
