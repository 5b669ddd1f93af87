# SPDX-License-Identifier: Apache-2.0
"""The stand-in for VTune against the table of docs/vtune.md: a test per line of the contract, and
what a line forbids must be refused."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


class StandIn(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="syncline-vtune-")
        self.addCleanup(shutil.rmtree, self.root)
        self.program = shutil.copy(os.path.join(HERE, "vtune"), self.root)
        self.result = os.path.join(self.root, "result")
        self.target = subprocess.Popen(["sleep", "60"])
        self.addCleanup(self.end_target)

    def end_target(self):
        self.target.kill()
        self.target.wait()

    def run_it(self, *arguments):
        return subprocess.run([self.program, *arguments], capture_output=True, text=True,
                              timeout=30, check=False)

    def done(self, *arguments):
        run = self.run_it(*arguments)
        self.assertEqual(run.returncode, 0, run.stdout)
        return run.stdout

    def refused(self, *arguments, says=""):
        run = self.run_it(*arguments)
        self.assertNotEqual(run.returncode, 0, (arguments, run.stdout))
        self.assertIn("vtune: Error: ", run.stdout)
        self.assertIn(says, run.stdout)

    def attach(self, *options, analysis="hotspots", pid=None):
        return [self.program, "-collect", analysis, *options,
                f"-target-pid={pid or self.target.pid}", "-result-dir", self.result]

    def collection(self, *options):
        """One that has begun."""
        process = subprocess.Popen(self.attach(*options), stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertIn("Collection started", process.stdout.readline())
        return process

    def states(self):
        with open(os.path.join(self.result, "stand-in.log"), encoding="utf-8") as file:
            return [line.split()[0] for line in file]

    def test_collect(self):
        process = self.collection()
        self.done("-command", "stop", "-r", self.result)
        self.assertEqual(process.wait(timeout=10), 0)
        self.assertEqual(self.states(), ["running", "stopped"])
        self.refused("-collect", "no-such-analysis", "-target-pid=1", "-r", "x",
                     says="Cannot find analysis type")
        self.refused("-collect", "hotspots", "-no-such-option", "1", says="cannot be used")
        self.refused("collect", says="Unexpected argument")
        self.refused(says="No action")

    def test_start_paused(self):
        self.collection("-start-paused")
        self.assertIn("paused", self.done("-command", "status", "-r", self.result))
        self.done("-command", "resume", "-r", self.result)
        self.done("-command", "stop", "-r", self.result)
        self.assertEqual(self.states(), ["paused", "resumed", "stopped"])

    def test_command(self):
        process = self.collection("-start-paused")
        self.done("-command=resume", "-result-dir", self.result)
        self.done("-command", "pause", "-r", self.result)
        self.done("-command", "mark", "-r", self.result)
        self.refused("-command", "detach", "-r", self.result, says="Invalid value")
        self.refused("-command", "pause", "-r", self.result, says="paused already")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=10), 0)
        self.assertEqual(self.states(), ["paused", "resumed", "paused", "interrupted"])
        self.refused("-command", "stop", "-r", self.result, says="no running collection")

    def test_target_pid(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        self.refused(*self.attach(pid=ended.pid)[1:], says="no such process")
        self.refused("-collect", "hotspots", "-r", self.result, says="No target")
        self.refused("-collect", "hotspots", "-target-pid=me", "-r", self.result,
                     says="Invalid value")
        if os.geteuid() == 0:
            other = subprocess.Popen(["setpriv", "--reuid=61234", "sleep", "30"])
            self.addCleanup(other.wait)
            self.addCleanup(other.kill)
            deadline = time.monotonic() + 10
            while os.stat(f"/proc/{other.pid}").st_uid == 0:
                self.assertLess(time.monotonic(), deadline)
            self.refused(*self.attach(pid=other.pid)[1:], says="another user")
        # One that ends takes its collection with it.
        process = self.collection()
        self.end_target()
        self.assertEqual(process.wait(timeout=10), 0)

    def test_result_dir(self):
        os.mkdir(self.result)
        self.refused(*self.attach()[1:], says="exists already")

    def test_data_limit_and_ring_buffer(self):
        self.collection("-data-limit=200", "-ring-buffer=10")
        self.done("-command", "stop", "-r", self.result)
        for option in ("-data-limit=1G", "-ring-buffer=-1", "-ring-buffer="):
            self.refused(*self.attach(option)[1:], says="Invalid value")

    def test_knob(self):
        self.collection("-knob", "sampling-mode=hw", "-k", "sampling-interval=0.1")
        self.done("-command", "stop", "-r", self.result)
        for knob in ("sampling-mode", "sampling-mode=", "no-such-knob=1"):
            self.refused(*self.attach("-knob", knob)[1:], says="Invalid knob")
        self.refused(*self.attach("-knob", "sampling-interval=0.001")[1:], says="Invalid value")
        user = self.attach("-knob", "sampling-mode=sw", "-knob", "sampling-interval=0.1")
        self.refused(*user[1:], says="Invalid value")
        wrong = self.attach("-knob", "sampling-interval=1", analysis="memory-consumption")
        self.refused(*wrong[1:], says="Invalid knob")

    def test_finalization(self):
        self.collection("-finalization-mode=deferred")
        self.done("-command", "stop", "-r", self.result)
        self.refused("-report", "hotspots", "-r", self.result, says="not finalized")
        self.done("-finalize", "-result-dir", self.result)
        self.done("-report", "hotspots", "-r", self.result)
        self.refused(*self.attach("-finalization-mode=later")[1:], says="Invalid value")
        self.refused("-finalize", "-r", self.root, says="Cannot open the result")

    def finished(self):
        self.collection()
        self.done("-command", "stop", "-r", self.result)

    def test_report(self):
        self.finished()
        self.done("-report", "hotspots", "-result-dir", self.result, "-group-by", "thread,function")
        self.done("-report", "timeline", "-result-dir", self.result,
                  "-report-knob", "column-by=CPUTime", "-report-knob", "start=1.5",
                  "-report-knob", "end=2.25")
        self.refused("-report", "hotspots", "-r", self.result, "-time-filter", "1:2",
                     says="cannot be used")
        self.refused("-report", "hotspots", "-r", self.result, "-report-knob", "start=1",
                     says="Invalid report knob")
        self.refused("-report", "timeline", "-r", self.result, "-report-knob", "start=1",
                     says="column-by")
        self.refused("-report", "timeline", "-r", self.result, "-report-knob", "column-by=CPUTime",
                     "-report-knob", "start=2", "-report-knob", "end=1", says="greater")
        self.refused("-report", "no-such", "-r", self.result, says="report type")
        self.refused("-report", "hotspots", "-r", self.root, says="Cannot open the result")

    def test_import(self):
        self.finished()

        def write(name, text):
            path = os.path.join(self.root, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return path

        head = "name,start_tsc.CLOCK_MONOTONIC_RAW,end_tsc,pid,tid\n"
        self.done("-import", write("a-hostname-b.csv", head + "x,1,2,3,4\nframe,1,2,,\n"), "-r",
                  self.result)
        for name, text, says in (
            ("a.csv", head, "-hostname-"),
            ("a-hostname-b.csv", head.replace("RAW", "COARSE"), "Unknown clock"),
            ("a-hostname-b.csv", "start_tsc.UTC,name,end_tsc,pid,tid\n", "columns"),
            ("a-hostname-b.csv", head + "a,b,1,2,3,4\n", "five columns"),
            ("a-hostname-b.csv", head + "x,2,1,3,4\n", "ends before"),
        ):
            self.refused("-import", write(name, text), "-r", self.result, says=says)

    def test_version(self):
        self.assertIn("VTune", self.done("-version").splitlines()[0])
        self.refused("-version=1")

    def test_modes(self):
        for how, says in (("fail", "ptrace"), ("busy", "already running"), ("no-driver", "driver")):
            with open(os.path.join(self.root, "vtune.mode"), "w", encoding="utf-8") as file:
                file.write(how)
            self.refused(*self.attach("-knob", "sampling-mode=hw")[1:], says=says)


if __name__ == "__main__":
    unittest.main(verbosity=2)
