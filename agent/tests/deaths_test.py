# SPDX-License-Identifier: Apache-2.0
"""What is left when an agent, a daemon of LTTng or a program is killed or stopped (harness.py)."""

import os
import signal
import subprocess
import time

from agent_case import AgentCase
from harness import (
    OTHER_UID, CallError, children_named, count_events, discarded_events, main, wait_until,
)


class DeathsTest(AgentCase):
    def test_an_agent_that_was_killed_adopts(self):
        self.job()
        agent = self.agent()
        agent.call("Prepare", recording_id="r1", holder="ann@laptop")
        agent.call("Start", recording_id="r1")
        time.sleep(0.3)
        agent.end(signal.SIGKILL)
        time.sleep(0.2)
        agent.start()
        stopped = agent.call("Stop", recording_id="r1")
        self.assertIn("adopted", stopped["stop_reason"])
        self.assertTrue(stopped["complete"])
        self.assert_nothing_is_missing(self.trace_of(agent, "r1"), stopped)
        self.assertTrue(agent.record("r2")["complete"], "the next one works")

    def test_a_guard_ends_what_a_killed_agent_left(self):
        self.job()
        agent = self.agent()
        window_ns = 1_500_000_000
        agent.call("Prepare", recording_id="r1", holder="ann@laptop")
        started = agent.call("Start", recording_id="r1", window_ns=window_ns)
        [shown] = agent.call("Status", recording_id="r1")["recordings"]
        self.assertEqual(children_named("syncline-guard"), [shown["guard_pid"]])
        agent.end(signal.SIGKILL)
        wait_until(lambda: not children_named("syncline-guard"), what="the guard has done it")
        sessions = subprocess.run(["lttng", "list"], capture_output=True, text=True, check=False)
        self.assertNotIn("r1", sessions.stdout)
        agent.start()
        stopped = agent.call("Stop", recording_id="r1")
        self.assertIn("the agent was dead at the end of the recording", stopped["stop_reason"])
        self.assertTrue(stopped["complete"], stopped)
        self.assertGreaterEqual(
            int(stopped["gate_begin_monotonic_raw_ns"])
            - int(started["gate_begin_monotonic_raw_ns"]), 0.99 * window_ns)
        self.assert_nothing_is_missing(self.trace_of(agent, "r1"), stopped)
        # Prepared, and nobody is left to start it.
        agent.call("Prepare", recording_id="r2", holder="ann@laptop")
        agent.end(signal.SIGKILL)
        wait_until(lambda: not children_named("syncline-guard"), what="the guard has done it")
        agent.start()
        self.assertTrue(agent.record("r3")["complete"], "the next one works")
        self.assertEqual(children_named("syncline-guard"), [], "it goes with its recording")

    def test_sigterm_stops_and_keeps(self):
        self.job()
        agent = self.agent()
        agent.call("Prepare", recording_id="r1", holder="ann@laptop")
        agent.call("Start", recording_id="r1")
        self.assertEqual(agent.end(), 0)
        agent.start()
        self.assertEqual(agent.call("Stop", recording_id="r1")["stop_reason"], "agent shutdown")

    def test_a_recording_that_never_began_has_no_counts_of_another(self):
        self.job()
        agent = self.agent()
        self.assertGreater(int(agent.record("r1")["coverage"][0]["events_count"]), 100)
        agent.call("Prepare", recording_id="r2", holder="ann@laptop")
        self.assertEqual(agent.end(), 0)
        agent.start()
        stopped = agent.call("Stop", recording_id="r2")
        self.assertEqual(stopped["stop_reason"], "agent shutdown")
        self.assertEqual([c for c in stopped.get("coverage", []) if int(c["events_count"])], [])

    def test_a_program_that_is_stopped_for_a_while_loses_nothing(self):
        job, other = self.job(), self.job()
        agent = self.agent()
        self.begin(agent, "r1")
        for _ in range(10):
            time.sleep(0.02)
            job.send_signal(signal.SIGSTOP)
            time.sleep(0.02)
            job.send_signal(signal.SIGCONT)
        other.send_signal(signal.SIGSTOP)  # as the recording ends, too
        stopped = agent.call("Stop", recording_id="r1")
        other.send_signal(signal.SIGCONT)
        self.assert_nothing_is_missing(self.trace_of(agent, "r1"), stopped, in_the_midst=1)
        self.assertEqual([int(one["lost_count"]) for one in stopped["coverage"]], [0, 0])
        of_other = [one for one in stopped["complaints"] if one.get("pid") == other.pid]
        self.assertEqual([one["severity"] for one in of_other], ["NOTE"], stopped["complaints"])
        self.assertEqual({one["severity"] for one in stopped["complaints"]}, {"NOTE"})

    def test_a_program_that_is_killed_is_known_to_have_ended_and_when(self):
        early, late, other = (self.job() for _ in range(3))
        agent = self.agent()
        self.begin(agent, "r1")
        killed_ns = time.monotonic_ns()
        early.kill()
        early.wait()
        time.sleep(2.5)  # it is looked for once a second
        late_ns = time.monotonic_ns()
        late.kill()
        late.wait()
        stopped = agent.call("Stop", recording_id="r1")
        ended = {one["own_pid"]: int(one["ended_monotonic_ns"]) for one in stopped["coverage"]}
        self.assertLess(killed_ns, ended[early.pid])
        self.assertLess(ended[early.pid], late_ns)
        self.assertLess(late_ns, ended[late.pid])
        self.assertEqual(ended[other.pid], 0)

    def test_a_few_that_are_stopped_as_the_recording_ends_cost_time_and_nothing_else(self):
        """LTTng waits 5 s for each of them. Hardly ever are these in the midst of an event."""
        self.job(seconds=120)
        stopped_jobs = [self.job(uid=OTHER_UID, seconds=120, work_ns=50_000_000) for _ in range(3)]
        agent = self.agent()
        self.begin(agent, "r1")
        wait_until(lambda: int(agent.call("Status", recording_id="r1")["events_count"]) > 1000,
                   seconds=60, what="events")
        for job in stopped_jobs:
            job.send_signal(signal.SIGSTOP)
        stopped = agent.call("Stop", recording_id="r1")
        self.assertTrue(stopped["complete"], stopped["complaints"])
        self.assertTrue(stopped["channels"][0]["discarded_events_valid"])
        self.assertEqual({one["severity"] for one in stopped["complaints"]}, {"NOTE"})
        self.assert_nothing_is_missing(self.trace_of(agent, "r1"), stopped,
                                       in_the_midst=len(stopped_jobs))
        self.assertTrue(agent.record("r2", seconds=0.1)["complete"])

    def test_what_a_slow_consumer_daemon_makes_the_tracer_discard_is_counted(self):
        self.job(seconds=120)
        agent = self.agent()
        agent.record("warm", seconds=0.1)
        self.leave_shared_memory(kib=2600)  # small buffers
        self.begin(agent, "r1")
        consumers = children_named("lttng-consumerd")
        for pid in consumers:
            os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: int(agent.call("Status", recording_id="r1")["events_count"]) > 200_000,
                   seconds=90, what="more events than the buffers hold")
        for pid in consumers:
            os.kill(pid, signal.SIGCONT)
        stopped = agent.call("Stop", recording_id="r1")
        self.assertGreater(discarded_events(stopped), 0)
        self.assert_nothing_is_missing(self.trace_of(agent, "r1"), stopped)

    def test_a_session_daemon_killed_while_recording(self):
        self.job()
        agent = self.agent()
        agent.call("Prepare", recording_id="r1", holder="ann@laptop")
        agent.call("Start", recording_id="r1")
        time.sleep(2.5)  # the tracer writes out what it has every second
        for pid in children_named("lttng-sessiond") + children_named("lttng-consumerd"):
            os.kill(pid, signal.SIGKILL)
        stopped = agent.call("Stop", recording_id="r1")
        self.assertFalse(stopped["complete"])
        self.assertGreater(count_events(self.trace_of(agent, "r1")), 0, "still readable")
        self.assertTrue(agent.record("r2", seconds=0.1)["complete"], "with a new session daemon")

    def test_a_consumer_daemon_killed_while_recording(self):
        """The session daemon lives on and can never record again: another takes its place."""
        self.job()
        agent = self.agent()
        agent.call("Prepare", recording_id="r1", holder="ann@laptop")
        agent.call("Start", recording_id="r1")
        time.sleep(0.3)
        for pid in children_named("lttng-consumerd"):
            os.kill(pid, signal.SIGKILL)
        stopped = agent.call("Stop", recording_id="r1")
        self.assertFalse(stopped["complete"])
        self.assertIn("that it had not written are lost", stopped["complaints"][0]["what"])
        # A program that LTTng does not reach in time is not in a recording; the agent notices, and
        # starts another daemon for the next one.
        for attempt in range(4):
            again = agent.record(f"again-{attempt}", seconds=1)
            self.assertTrue(again["complete"])
            if int(again["coverage"][0]["events_count"]) > 0:
                return
        self.fail(f"the job is in no recording: {again}")

    def test_an_agent_that_nobody_wants_ends(self):
        self.job()
        agent = self.agent(arguments=["--idle-minutes", "0.025"])  # 1.5 s
        agent.call("Prepare", recording_id="r1", holder="test@here")
        agent.call("Start", recording_id="r1")
        time.sleep(2.5)  # nobody calls, but something is recorded
        self.assertIsNone(agent.process.poll())
        agent.call("Stop", recording_id="r1")
        self.assertEqual(agent.process.wait(timeout=15), 0)
        self.assertIn("reason=idle", agent.log_text())
        self.assertEqual(children_named("lttng-sessiond"), [])
        agent.start()  # what it kept is there for whoever asks next
        self.assertEqual(
            [one["recording_id"] for one in agent.call("Describe")["recordings"]], ["r1"]
        )

    def test_sigusr1_hands_the_session_daemon_over(self):
        agent = self.agent()
        daemons = children_named("lttng-sessiond")
        self.assertEqual(len(daemons), 1, "it is there before any job and any recording")
        self.job()
        self.assertEqual(agent.end(signal.SIGUSR1), 0)
        self.assertEqual(children_named("lttng-sessiond"), daemons)
        agent.start()
        again = agent.record("r2", seconds=1.5)
        self.assertGreater(int(again["coverage"][0]["events_count"]), 0, again)
        self.assertEqual(children_named("lttng-sessiond"), daemons)
        self.assertEqual(agent.end(), 0)
        self.assertEqual(children_named("lttng-sessiond"), [], "the next agent ends it")

    def test_a_session_daemon_that_hangs(self):
        agent = self.agent()
        daemons = children_named("lttng-sessiond")
        for pid in daemons:
            os.kill(pid, signal.SIGSTOP)
        begin = time.monotonic()
        with self.assertRaises(CallError) as refused:
            agent.call("Prepare", recording_id="r2", holder="ann@laptop")
        self.assertLess(time.monotonic() - begin, 20)
        self.assertIn("lttng-sessiond", refused.exception.message)
        for pid in daemons:
            os.kill(pid, signal.SIGCONT)
        self.assertTrue(agent.record("r2", seconds=0.1)["complete"])

    def test_a_stopped_program_is_named_and_delays_nobody(self):
        stopped_job, _ = self.job(), self.job()
        agent = self.agent()
        stopped_job.send_signal(signal.SIGSTOP)
        prepared = agent.call("Prepare", recording_id="r1", holder="ann@laptop")
        self.assertEqual([c["pid"] for c in prepared["complaints"]], [stopped_job.pid])
        begin = time.monotonic()
        agent.call("Start", recording_id="r1")
        self.assertLess(time.monotonic() - begin, 0.5)
        time.sleep(0.3)
        stopped = agent.call("Stop", recording_id="r1")
        events = sorted(int(one["events_count"]) for one in stopped["coverage"])
        self.assertEqual(events[0], 0)
        self.assertGreater(events[1], 100)

    def test_a_job_killed_while_recording_keeps_its_names(self):
        job = self.job()
        agent = self.agent()
        agent.call("Prepare", recording_id="r1", holder="ann@laptop", buffer_scheme="PER_PROCESS")
        agent.call("Start", recording_id="r1")
        time.sleep(0.3)
        job.kill()
        job.wait()
        stopped = agent.call("Stop", recording_id="r1")
        self.assertGreater(int(stopped["coverage"][0]["events_count"]), 0)
        processes = os.path.join(agent.data, "recordings", "r1", "processes")
        self.assertEqual(len(os.listdir(processes)), 2)
        agent.record("r2", seconds=0.1)
        blocks = [name for name in os.listdir("/dev/shm/syncline-0") if name.endswith(".block")]
        self.assertEqual(blocks, [], "what a dead program left was cleared away")


if __name__ == "__main__":
    main()
