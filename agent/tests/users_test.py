# SPDX-License-Identifier: Apache-2.0
"""An agent of root and an ordinary user's own agent on one node (see harness.py). Programs of that
user are registered with both session daemons: with LTTng's for the machine, and with his own."""

import json
import os
import signal
import subprocess

from agent_case import AgentCase
from harness import BUILD, OTHER_UID, count_events, main, wait_until

SYNCLINE = f"{BUILD}/bin/syncline"
LATE, LATER = OTHER_UID + 1, OTHER_UID + 2
HOME = f"/dev/shm/syncline-{OTHER_UID}/lttng"


class UsersTest(AgentCase):
    def agent_of_the_other_user(self):
        own = os.path.join(self.root, "own")
        os.mkdir(own)
        os.chown(own, OTHER_UID, OTHER_UID)
        environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "LTTNG_HOME")}
        return self.agent(uid=OTHER_UID, name="own/data", environment=environment)

    def syncline(self, *arguments):
        return subprocess.run([SYNCLINE, *arguments], capture_output=True, text=True, check=False)

    def record(self, agent, name, *arguments):
        """What `syncline record` printed, recording.json, and the directory."""
        hosts, run = os.path.join(self.root, "hosts"), os.path.join(self.root, name)
        with open(hosts, "w", encoding="ascii") as file:
            file.write(f"here unix:{agent.socket}\n")
        done = self.syncline("record", "--hosts", hosts, "--for", "1s", "--out", run, *arguments)
        with open(os.path.join(run, "recording.json"), encoding="utf-8") as file:
            return done, json.load(file), run

    def report(self, run):
        merged = self.syncline("merge", run)
        self.assertIn(merged.returncode, (0, 3), merged.stderr)
        text = self.syncline("report", run, "--full").stdout
        return json.loads(self.syncline("report", run, "--json").stdout), text

    def test_who_records_himself_is_in_no_other_recording(self):
        mine, theirs = self.job(), self.job(uid=OTHER_UID, environment={"LTTNG_HOME": HOME})
        root, own = self.agent(), self.agent_of_the_other_user()
        wait_until(lambda: len(own.call("Describe")["processes"]) == 1)
        for scheme in ("user", "process"):
            with self.subTest(scheme):
                self.begin(own, f"own-{scheme}")
                done, recording, run = self.record(root, f"run-{scheme}", "--buffers", scheme)
                stopped = own.call("Stop", recording_id=f"own-{scheme}")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"Processes of user {OTHER_UID} are skipped", done.stderr)
                (node,) = recording["nodes"]
                self.assertEqual([one["own_pid"] for one in node["processes"]], [mine.pid])
                (coverage,) = stopped["coverage"]
                self.assertEqual(int(coverage["own_pid"]), theirs.pid)
                self.assert_nothing_is_missing(self.trace_of(own, f"own-{scheme}"), stopped)
                folders = "\n".join(path for path, _, _ in os.walk(os.path.join(run, "nodes")))
                self.assertNotIn(f"/uid/{OTHER_UID}", folders)
                self.assertNotIn(f"-{theirs.pid}-", folders)
                report, text = self.report(run)
                self.assertIn("complete", text)
                self.assertNotIn("INCOMPLETE", text)
                (node,) = report["nodes"]
                self.assertEqual(len(node["processes"]), 1, node["processes"])

    def test_a_user_who_holds_lttng_up_is_left_out_and_that_is_the_loss(self):
        """Five stopped programs would hold LTTng up: nothing else is said to be lost."""
        mine = self.job()
        theirs = self.job(uid=OTHER_UID)
        held = [self.job(uid=OTHER_UID) for _ in range(5)]
        root = self.agent()
        root.record("warm", seconds=0.1)
        for job in held:
            job.send_signal(signal.SIGSTOP)
        done, recording, run = self.record(root, "run")
        self.assertEqual(done.returncode, 3, done.stderr)
        said = f"no program of user {OTHER_UID} is recorded"
        self.assertIn(said, done.stderr)
        (node,) = recording["nodes"]
        processes = {one["own_pid"]: one for one in node["processes"]}
        self.assertGreater(processes[mine.pid]["events"], 100)
        self.assertEqual([processes[theirs.pid][key] for key in ("events", "lost")], [0, 0])
        report, text = self.report(run)
        self.assertIn("INCOMPLETE", text)
        losses = report["nodes"][0]["losses"]
        self.assertEqual({loss["reason"] for loss in losses}, {"not covered"}, text)
        self.assertEqual(sum(loss["intervals"] for loss in losses), 6)
        self.assertIn(said, json.dumps(losses))

    def test_a_user_whose_first_program_begins_in_the_window(self):
        """He is recorded; where another is left out LTTng cannot know him, and that is said."""
        root, own = self.agent(), self.agent_of_the_other_user()
        self.begin(root, "all")
        late = self.job(uid=LATE)
        wait_until(lambda: int(root.call("Status", recording_id="all")["events_count"]) > 100,
                   seconds=30)
        stopped = root.call("Stop", recording_id="all")
        self.assertTrue(stopped["complete"], stopped["complaints"])
        self.assertEqual([int(one["own_pid"]) for one in stopped["coverage"]], [late.pid])
        self.assertGreater(count_events(self.trace_of(root, "all")), 100)

        self.begin(own, "own")
        self.begin(root, "some")
        later = self.job(uid=LATER)
        said = f"Processes of user {LATER} are skipped: the first of them began after"
        wait_until(lambda: said in json.dumps(root.call("Describe")), seconds=30, what="it is said")
        stopped = root.call("Stop", recording_id="some")
        self.assertFalse(stopped["complete"])
        self.assertIn(said, json.dumps(stopped["complaints"]))
        self.assertEqual([int(one["own_pid"]) for one in stopped["coverage"]], [late.pid])
        self.assertNotIn(later.pid, [int(one["own_pid"]) for one in stopped["processes"]])
        self.assert_nothing_is_missing(self.trace_of(root, "some"), stopped)
        own.call("Stop", recording_id="own")


if __name__ == "__main__":
    main()
