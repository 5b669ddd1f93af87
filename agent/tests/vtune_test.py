# SPDX-License-Identifier: Apache-2.0
"""`syncline vtune` with a real agent, real LTTng and real ITT programs; VTune is the stand-in of
tests/vtune. Whatever becomes of VTune, the recording is complete."""

import glob
import json
import os
import shutil
import signal
import subprocess
import time

from agent_case import AgentCase
from harness import BUILD, OTHER_UID, main, wait_until

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STAND_IN = os.path.join(SOURCE, "tests", "vtune", "vtune")
# A place that root alone can write to: the agent of root's takes no other.
PLACE = "/mnt/vtune"
PROGRAM = f"{PLACE}/bin64/vtune"
WINDOW_S = 2
# From an instant until the agent has told VTune: scheduling on a machine that does other things.
LATE_NS = 500_000_000


class VtuneTest(AgentCase):
    def setUp(self):
        super().setUp()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/mnt"], check=True)
        os.makedirs(os.path.dirname(PROGRAM))
        self.before = set(glob.glob("/var/tmp/syncline-vtune-*"))

    def tearDown(self):
        super().tearDown()
        subprocess.run(["umount", "-l", "/mnt"], check=True)

    def install(self, mode=""):
        shutil.copy(STAND_IN, PROGRAM)
        with open(os.path.join(os.path.dirname(PROGRAM), "vtune.mode"), "w",
                  encoding="utf-8") as file:
            file.write(mode)

    def vtune_agent(self, **variables):
        return self.agent(environment={**os.environ, "VTUNE_PROFILER_DIR": PLACE, **variables})

    def rank(self, rank, uid=0):
        return self.job(uid=uid, seconds=120, environment={"RANK": str(rank), "WORLD_SIZE": "2"})

    def syncline(self, *arguments, fine=(0,)):
        hosts = os.path.join(self.root, "hosts")
        with open(hosts, "w", encoding="utf-8") as file:
            file.write(f"here unix:{self.agents[-1].socket}\n")
        result = subprocess.run(
            [f"{BUILD}/bin/syncline", *arguments, "--hosts", hosts], cwd=self.root, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False,
        )
        self.assertIn(result.returncode, fine, result.stdout)
        return result.stdout

    def record(self, *arguments, name="run"):
        """(the node's part of recording.json, what was printed)"""
        said = self.syncline("vtune", "hotspots", "--for", f"{WINDOW_S}s", "--out", name,
                             *arguments)
        with open(os.path.join(self.root, name, "recording.json"), encoding="utf-8") as file:
            (node,) = json.load(file)["nodes"]
        self.assertEqual(node["state"], "complete", said)
        return node, said

    def try_vtune(self):
        return subprocess.run(
            [os.path.join(SOURCE, "scripts", "try-vtune"), "--syncline", f"{BUILD}/bin/syncline",
             "--hosts", os.path.join(self.root, "hosts")],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False,
        )

    def result_of(self, job, name="run"):
        """(the record of its result, the result's folder)"""
        folder = os.path.join(self.root, name, "nodes", "here", "vtune", str(job.pid))
        with open(os.path.join(folder, "syncline-vtune.json"), encoding="utf-8") as file:
            return json.load(file), os.path.join(folder, "result")

    def states(self, result):
        with open(os.path.join(result, "stand-in.log"), encoding="utf-8") as file:
            return [(state, int(ns)) for state, ns in map(str.split, file)]

    def assert_nothing_is_left(self):
        self.assertEqual(set(glob.glob("/var/tmp/syncline-vtune-*")), self.before)

    def test_it_collects_in_the_window_on_every_rank(self):
        self.install()
        jobs = [self.rank(0), self.rank(1, uid=OTHER_UID)]
        self.vtune_agent(A_SECRET="of root's")
        self.assertIn(f"here: vtune in {PROGRAM}: Intel(R) VTune(TM)", self.syncline("nodes"))
        node, said = self.record()
        self.assertEqual([c for c in node["complaints"] if "VTune" in c["what"]], [], said)
        begin_ns = node["start"]["requested_monotonic_raw_ns"]
        end_ns = node["stop"]["requested_monotonic_raw_ns"]
        self.assertAlmostEqual((end_ns - begin_ns) / 1e9, WINDOW_S, delta=0.01)
        for job, uid, rank in zip(jobs, (0, OTHER_UID), (0, 1)):
            record, result = self.result_of(job)
            self.assertEqual((record["problem"], record["rank"], record["uid"]), ("", rank, uid))
            states = self.states(result)
            self.assertEqual([state for state, _ in states], ["paused", "resumed", "stopped"])
            self.assertLess(states[0][1], begin_ns)
            for command, instant_ns, (_, noted_ns) in (
                (record["resume"], begin_ns, states[1]), (record["stop"], end_ns, states[2]),
            ):
                print(f"rank {rank}: told {command['begin_raw_ns'] - instant_ns} ns behind the "
                      f"instant, done {noted_ns - instant_ns} ns behind it")
                self.assertEqual(command["exit_code"], 0)
                self.assertGreaterEqual(command["begin_raw_ns"], instant_ns)
                self.assertLess(command["begin_raw_ns"], instant_ns + LATE_NS)
                self.assertTrue(command["begin_raw_ns"] <= noted_ns <= command["end_raw_ns"])
            with open(os.path.join(result, "stand-in.who"), encoding="utf-8") as file:
                who = file.read().split()
            self.assertEqual(who[:2], [str(uid), str(uid)])
            self.assertNotIn("A_SECRET", who[2])
            self.assertIsNone(job.poll())
        self.assert_nothing_is_left()

    def test_every_command_that_is_printed_works(self):
        self.install()
        self.vtune_agent()
        self.syncline("nodes")
        tried = self.try_vtune()
        print(tried.stdout)
        self.assertEqual(tried.returncode, 0, tried.stdout)
        os.unlink(PROGRAM)
        self.assertEqual(self.try_vtune().returncode, 77)

    def test_what_becomes_of_vtune_leaves_the_recording_alone(self):
        job = self.rank(0)
        self.install()
        self.vtune_agent()
        for mode, says in (
            ("fail", "scope of ptrace system call is limited"),
            ("no-driver", "install the sampling driver"),
            ("busy", "Another collection is already running"),
            ("hang", "did not end in time and was killed"),
        ):
            self.install(mode)
            node, said = self.record(name=mode)
            (complaint,) = [c for c in node["complaints"] if "VTune" in c["what"]]
            self.assertIn(says, complaint["what"], said)
            self.assertIn(f"rank 0 (process {job.pid})", complaint["what"])
            self.assertIn(says, self.result_of(job, mode)[0]["problem"])
            self.assertIsNone(job.poll())
        self.assert_nothing_is_left()

    def test_without_it_nothing_is_recorded(self):
        self.rank(0)
        self.vtune_agent(PATH="/usr/bin:/bin")
        said = self.syncline("vtune", "hotspots", "--for", "1s", "--out", "run", fine=(1,))
        self.assertIn("VTune is usable on no node, so nothing was recorded", said)
        self.assertFalse(os.path.exists(os.path.join(self.root, "run")))

    def test_root_runs_no_program_that_others_could_have_put_there(self):
        self.rank(0)
        self.install()
        os.chmod(PLACE, 0o777)
        self.vtune_agent()
        self.assertIn("writable by root alone", self.syncline("nodes"))
        self.assertIn("writable by root alone", self.syncline(
            "vtune", "io", "--for", "1s", "--out", "run", fine=(1,)))

    def test_it_lets_go_when_the_agent_is_killed(self):
        job = self.rank(0)
        self.install()
        agent = self.vtune_agent()
        agent.call("Prepare", recording_id="r1", holder="ann@laptop",
                   vtune={"analysis": "hotspots"})
        agent.call("Start", recording_id="r1")

        def collecting():
            found = subprocess.run(["pgrep", "-f", f"{PROGRAM} -collect"], capture_output=True,
                                   text=True, check=False)
            return found.stdout.split()

        wait_until(collecting, what="the collection")
        os.kill(agent.process.pid, signal.SIGKILL)
        agent.process.wait()
        wait_until(lambda: not collecting(), what="its end")
        time.sleep(0.2)
        self.assertIsNone(job.poll())
        for left in set(glob.glob("/var/tmp/syncline-vtune-*")) - self.before:
            self.assertEqual(self.states(os.path.join(left, "result"))[-1][0], "interrupted")
            shutil.rmtree(left)

    def test_a_request_that_is_none_is_refused(self):
        agent = self.vtune_agent()
        for vtune in ({"analysis": "no-such"}, {"analysis": "io", "knobs": ["a=$(id)"]}):
            with self.assertRaisesRegex(Exception, "VTune"):
                agent.call("Prepare", recording_id="r1", holder="ann@laptop", vtune=vtune)


if __name__ == "__main__":
    main()
