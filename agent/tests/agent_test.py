# SPDX-License-Identifier: Apache-2.0
"""A real agent with real LTTng and real ITT programs, over its Unix socket (see harness.py)."""

import os
import re
import shutil
import subprocess
import time

from agent_case import AgentCase
from harness import BUILD, OTHER_UID, CallError, children_named, main, wait_until


class AgentTest(AgentCase):
    def test_life_of_a_recording(self):
        job = self.job()
        agent = self.agent()
        described = agent.call("Describe")
        self.assertEqual([p["pid"] for p in described["processes"]], [job.pid])
        self.assertTrue(described["session_daemon_running"])
        prepared = agent.call("Prepare", recording_id="r1", holder="ann@laptop", lease_ms=60000)
        self.assertGreater(int(prepared["canary_round_trip_ns"]), 0)
        with self.assertRaises(CallError) as refused:
            agent.call("Prepare", recording_id="r2", holder="bob@laptop")
        self.assertIn("ann@laptop", refused.exception.message)
        at_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) + 300_000_000
        started = agent.call("Start", recording_id="r1", at_monotonic_raw_ns=at_ns)
        late_ns = int(started["gate_begin_monotonic_raw_ns"]) - at_ns
        self.assertTrue(0 <= late_ns < 50_000_000, late_ns)
        time.sleep(0.5)
        status = agent.call("Status", recording_id="r1", renew_lease_ms=60000)
        self.assertGreater(int(status["events_count"]), 100)
        stopped = agent.call("Stop", recording_id="r1")
        self.assertTrue(stopped["complete"])
        self.assertTrue(all(stream["closed"] for stream in stopped["streams"]))
        (coverage,) = stopped["coverage"]
        self.assertGreaterEqual(
            int(coverage["on_monotonic_ns"]), int(started["gate_begin_monotonic_ns"])
        )
        self.assertGreater(int(coverage["off_monotonic_ns"]), int(coverage["on_monotonic_ns"]))
        fetched = os.path.join(self.root, "fetched")
        os.mkdir(fetched)
        agent.call("Fetch", cwd=fetched, recording_id="r1")
        self.assert_nothing_is_missing(os.path.join(fetched, "trace"), stopped)
        self.assertEqual(len(os.listdir(os.path.join(fetched, "processes"))), 2)
        self.assertTrue(agent.call("Release", recording_id="r1")["existed"])
        self.assertEqual(os.listdir(os.path.join(agent.data, "recordings")), [])
        self.assertEqual(agent.end(), 0)
        self.assertEqual(children_named("lttng-sessiond"), [])

    def test_an_interrupted_fetch_goes_on(self):
        self.job()
        agent = self.agent()
        agent.record("r1")
        whole, resumed = os.path.join(self.root, "whole"), os.path.join(self.root, "resumed")
        for directory in (whole, resumed):
            os.mkdir(directory)
            agent.call("Fetch", cwd=directory, recording_id="r1")
        resume = []
        for directory, _, names in os.walk(resumed):
            for name in names:
                path = os.path.join(directory, name)
                os.truncate(path, os.path.getsize(path) // 3)
                resume.append({"path": os.path.relpath(path, resumed),
                               "offset_bytes": os.path.getsize(path)})
        agent.call("Fetch", cwd=resumed, recording_id="r1", resume=resume)
        different = subprocess.run(["diff", "-r", whole, resumed], check=False).returncode
        self.assertEqual(different, 0)
        for bad in ({"path": "../journal", "offset_bytes": 0},
                    {"path": "node.json", "offset_bytes": 10**9}):
            with self.assertRaises(CallError) as refused:
                agent.call("Fetch", cwd=resumed, recording_id="r1", resume=[bad])
            self.assertEqual(refused.exception.code, 3)

    def test_amds_devices_of_a_node(self):
        drm = os.path.join(self.root, "class", "drm")
        device = os.path.join(drm, "card0", "device")
        driver = os.path.join(self.root, "amdgpu")
        files = {
            "vendor": "0x1002",
            "product_name": "AMD Instinct MI300X OAM",
            "gpu_busy_percent": "97",
            "hwmon/hwmon3/name": "amdgpu",
            "hwmon/hwmon3/power1_input": "739000000",
        }
        os.mkdir(driver)
        for name, text in files.items():
            path = os.path.join(device, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text + "\n")
        os.symlink(driver, os.path.join(device, "driver"))
        self.job()
        agent = self.agent(environment=dict(os.environ, SYNCLINE_NVML_LIBRARY=drm))
        (tool,) = agent.call("Describe")["tools"]
        self.assertEqual(
            (tool["name"], tool["path"], tool["detail"], tool["problem"]),
            ("amdgpu", drm, "1 device: AMD Instinct MI300X OAM", ""),
        )
        agent.record("r1", seconds=1)
        fetched = os.path.join(self.root, "fetched")
        os.mkdir(fetched)
        agent.call("Fetch", cwd=fetched, recording_id="r1")
        with open(os.path.join(fetched, "evidence", "devices.txt"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual(lines[-1], "E")
        self.assertGreater(sum("power_mw 739000" in line for line in lines), 2, lines)

    def test_the_devices_of_a_node(self):
        self.job()
        # Root loads no library that others can change; who built this one may have allowed it.
        library = shutil.copy(f"{BUILD}/lib/libfake_nvml.so", self.root)
        os.chmod(library, 0o755)
        agent = self.agent(environment=dict(os.environ, SYNCLINE_NVML_LIBRARY=library))
        (tool,) = agent.call("Describe")["tools"]
        self.assertEqual(
            (tool["name"], tool["version"], tool["path"], tool["detail"], tool["problem"]),
            ("nvml", "580.65.06", library, "2 devices: NVIDIA H100 80GB HBM3", ""),
        )
        for recording, wanted in (("r1", {}), ("r2", {"skip_evidence": True})):
            agent.record(recording, seconds=1, **wanted)
            fetched = os.path.join(self.root, recording)
            os.mkdir(fetched)
            agent.call("Fetch", cwd=fetched, recording_id=recording)
            path = os.path.join(fetched, "evidence", "devices.txt")
            self.assertEqual(os.path.exists(path), not wanted)
            if wanted:
                continue
            with open(path, encoding="utf-8") as file:
                lines = file.read().splitlines()
            self.assertEqual(lines[0], "syncline-devices 1")
            self.assertEqual(lines[-1], "E")
            self.assertGreater(sum("thermal_ns" in line for line in lines), 4)
        # A killed agent leaves no process behind that samples.
        agent.call("Prepare", recording_id="r3", holder="test@here")
        agent.call("Start", recording_id="r3")
        wait_until(lambda: self.sampling(), what="devices are sampled")
        agent.process.kill()
        agent.process.wait()
        wait_until(lambda: not self.sampling(), what="the child has ended")

    def sampling(self):
        command = ["pgrep", "-f", "syncline-agent --sample-devices"]
        return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0

    def test_a_program_that_becomes_another_one_while_recorded(self):
        job = self.traps("exec")
        agent = self.agent()
        self.begin(agent, "r1")
        self.go_on(job, "executed")
        self.go_on(job, "done")  # it has made calls, which nobody recorded
        stopped = agent.call("Stop", recording_id="r1")
        (coverage,) = stopped["coverage"]
        self.assertTrue(coverage["became_another_program"])
        self.assert_nothing_is_missing(self.trace_of(agent, "r1"), stopped)
        self.assertIn("became another program", stopped["complaints"][0]["what"])

    def test_a_program_that_pauses_its_recording(self):
        job = self.traps("pause")
        agent = self.agent()
        self.begin(agent, "r1")
        self.go_on(job, "done")
        # The one from before the recording, and the detach.
        (coverage,) = agent.call("Stop", recording_id="r1")["coverage"]
        self.assertEqual(coverage["pauses_count"], 2)

    def test_a_program_that_begins_during_the_recording(self):
        agent = self.agent()
        agent.call("Prepare", recording_id="r1", holder="ann@laptop")
        agent.call("Start", recording_id="r1")
        job = self.job()
        time.sleep(1.0)
        stopped = agent.call("Stop", recording_id="r1")
        (coverage,) = stopped["coverage"]
        self.assertEqual(coverage["own_pid"], job.pid)
        self.assert_nothing_is_missing(self.trace_of(agent, "r1"), stopped)

    def test_shared_memory_that_is_too_small(self):
        subprocess.run(["mount", "-o", "remount,size=256k", "/dev/shm"], check=True)
        agent = self.agent()
        with self.assertRaises(CallError) as refused:
            agent.call("Prepare", recording_id="r1", holder="ann@laptop")
        self.assertIn("/dev/shm", refused.exception.message)
        subprocess.run(["mount", "-o", "remount,size=64m", "/dev/shm"], check=True)
        self.assertTrue(agent.record("r1", seconds=0.1)["complete"])

    def test_little_shared_memory_is_refused_or_gives_a_trace_that_can_be_read(self):
        """The buffers of the metadata need room, too: without them nothing can ever be read."""
        self.job()
        agent = self.agent()
        agent.record("warm", seconds=0.1)
        outcomes = set()
        for kib in (500, 900, 1400, 2600):
            self.leave_shared_memory(kib)
            try:
                stopped = agent.record(f"with-{kib}")
            except CallError as refused:
                self.assertIn("buffers do not fit", refused.message)
                outcomes.add("refused")
                continue
            self.assertTrue(stopped["complete"], stopped)
            outcomes.add("recorded")
            self.assert_nothing_is_missing(self.trace_of(agent, f"with-{kib}"), stopped)
        self.assertEqual(outcomes, {"refused", "recorded"})

    def test_a_trace_without_its_metadata_is_not_complete(self):
        """Nor is one whose metadata goes while it runs: what is on the disk is read back."""
        self.job()
        agent = self.agent()
        agent.call("Prepare", recording_id="r1", holder="ann@laptop")
        agent.call("Start", recording_id="r1")
        time.sleep(0.3)
        for directory, _, files in os.walk(self.trace_of(agent, "r1")):
            if "metadata" in files:
                os.unlink(os.path.join(directory, "metadata"))
        stopped = agent.call("Stop", recording_id="r1")
        self.assertFalse(stopped["complete"])
        self.assertIn("their metadata is missing", str(stopped["complaints"]))

    def test_shared_memory_that_fills_up_unseen(self):
        """Sizes say that it fits; LTTng says that it records; only the canary knows better."""
        agent = self.agent()
        agent.record("warm", seconds=0.1)

        def named():
            return 1 + sum(len(folders) + len(files)
                           for _, folders, files in os.walk("/dev/shm"))

        def used():
            return os.statvfs("/dev/shm").f_files - os.statvfs("/dev/shm").f_ffree

        # Buffers have no names; LTTng frees them a little after the recording.
        wait_until(lambda: used() == named(), what="the buffers are freed")
        subprocess.run(["mount", "-o", f"remount,nr_inodes={used() + 1}", "/dev/shm"], check=True)
        with self.assertRaises(CallError) as refused:
            agent.call("Prepare", recording_id="r1", holder="ann@laptop")
        self.assertEqual(refused.exception.code, 9)
        self.assertIn("/dev/shm is full", refused.exception.message)

    def test_another_user_is_traced_by_root(self):
        self.job(uid=OTHER_UID)
        agent = self.agent()
        stopped = agent.record("r1")
        (coverage,) = stopped["coverage"]
        self.assertGreater(int(coverage["events_count"]), 100)
        self.assertIn(f"ust/uid/{OTHER_UID}", " ".join(s["path"] for s in stopped["streams"]))

    def test_an_ordinary_user(self):
        home = f"/dev/shm/syncline-{OTHER_UID}/lttng"
        os.mkdir(os.path.join(self.root, "own"))
        os.chown(os.path.join(self.root, "own"), OTHER_UID, OTHER_UID)
        environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "LTTNG_HOME")}
        agent = self.agent(uid=OTHER_UID, name="own/data", environment=environment)
        self.job(uid=OTHER_UID, environment={"LTTNG_HOME": home})
        wait_until(lambda: len(agent.call("Describe")["processes"]) == 1)
        stopped = agent.record("r1")
        self.assert_nothing_is_missing(self.trace_of(agent, "r1"), stopped)
        self.assertGreater(int(stopped["coverage"][0]["events_count"]), 100)

    def test_an_existing_session_daemon_is_left_alone(self):
        subprocess.run(["lttng-sessiond", "--background", "--no-kernel"], check=True,
                       stderr=subprocess.DEVNULL)
        before = children_named("lttng-sessiond")
        subprocess.run(["lttng", "create", "mine", "-o", f"{self.root}/mine"], check=True,
                       stdout=subprocess.DEVNULL)
        agent = self.agent()
        agent.record("r1", seconds=0.1)
        agent.end()
        self.assertEqual(children_named("lttng-sessiond"), before)
        listed = subprocess.run(
            ["lttng", "list"], capture_output=True, text=True, check=True
        ).stdout
        self.assertIn("mine", listed)
        self.assertIsNone(re.search(r"syncline-[0-9a-f]{8}-", listed), listed)

    def test_two_agents_do_not_share_processes(self):
        first, second = self.agent(name="first"), self.agent(name="second")
        first.call("Prepare", recording_id="r1", holder="ann@laptop")
        with self.assertRaises(CallError) as refused:
            second.call("Prepare", recording_id="r1", holder="bob@laptop")
        self.assertIn("ann@laptop", refused.exception.message)
        first.call("Release", recording_id="r1", even_if_not_fetched=True)
        self.assertTrue(second.record("r1", seconds=0.1)["complete"])

    def test_only_the_agent_itself_may_open_more_files_than_usual(self):
        agent = self.agent(limits=(300, 3000))
        agent.record("r1", seconds=0.1)

        def soft_limit(pid):
            with open(f"/proc/{pid}/limits", encoding="ascii") as limits:
                return int(re.search(r"Max open files +(\d+)", limits.read())[1])

        self.assertEqual(soft_limit(agent.process.pid), 3000)
        (child,) = subprocess.run(["pgrep", "-f", "--", "--session-child$"], capture_output=True,
                                  text=True, check=True).stdout.split()
        self.assertEqual(soft_limit(child), 300)

    def test_many_short_processes_need_few_descriptors(self):
        """What has ended is copied and closed: 300 descriptors would not do for these."""
        agent = self.agent(limits=(250, 250))
        agent.call("Prepare", recording_id="r1", holder="ann@laptop")
        agent.call("Start", recording_id="r1")
        variables = dict(os.environ, INTEL_LIBITTNOTIFY64=f"{BUILD}/lib/libsyncline_itt.so")
        command = [f"{BUILD}/bin/syncline-itt-truth", "--tasks", "0", "--work-ns", "20000",
                   "--duration-ms", "300"]  # long enough to be switched on
        for _ in range(6):
            workers = [subprocess.Popen(command + ["--truth", f"{self.root}/truth.{number}"],
                                        env=variables) for number in range(25)]
            for worker in workers:
                worker.wait()
        stopped = agent.call("Stop", recording_id="r1")
        self.assertTrue(stopped["complete"], stopped.get("complaints"))
        self.assertGreater(int(stopped["bytes"]), 0)
        # On a busy machine some are not, and take their blocks away as they end.
        self.assertGreater(len(stopped["coverage"]), 130)
        kept = os.listdir(os.path.join(agent.data, "recordings", "r1", "processes"))
        self.assertEqual(len(kept), 2 * len(stopped["coverage"]))

    def test_fifty_recordings_leak_nothing(self):
        self.job(seconds=200)
        agent = self.agent()

        def held():
            proc = f"/proc/{agent.process.pid}"
            return {
                "descriptors": len(os.listdir(f"{proc}/fd")),
                "threads": len(os.listdir(f"{proc}/task")),
                "shared memory": len(os.listdir("/dev/shm")),
                "sessions": subprocess.run(["lttng", "list"], capture_output=True, text=True,
                                           check=True).stdout.count(") syncline-"),
            }

        for number in range(50):
            stopped = agent.record(f"r{number}", seconds=0.02)
            self.assertTrue(stopped["complete"], number)
            agent.call("Release", recording_id=f"r{number}", even_if_not_fetched=True)
            if number == 4:
                before = held()
        after = held()
        self.assertEqual(after["sessions"], 0)
        for what in ("descriptors", "shared memory"):
            self.assertLessEqual(after[what], before[what] + 2, (before, after))
        self.assertLessEqual(after["threads"], before["threads"] + 4, (before, after))


if __name__ == "__main__":
    main()
