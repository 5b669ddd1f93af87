# SPDX-License-Identifier: Apache-2.0
"""Records ITT programs that are not ours: oneTBB, oneDNN and LLVM's OpenMP, as Debian ships them.

Usage: itt_foreign_test.py BUILD_DIRECTORY [unittest arguments]
"""

import glob
import os
import sys
import time
import unittest

import lttng_fixture
from itt_capture_test import Names
from lttng_fixture import Fixture

BUILD = None


class Foreign(unittest.TestCase):
    def record(self, program, **environment):
        if not os.path.exists(os.path.join(BUILD, program)):
            self.skipTest(f"{program} was not built: its library is not installed")
        f = Fixture(BUILD)
        self.addCleanup(f.close)
        f.start_daemon()
        process = f.start(program=program, registered=True, **environment)
        f.wait_for_blocks()
        name = f.begin_session(subbuffer="8M")
        f.set_gates(1)
        time.sleep(0.3)
        f.set_gates(0)
        f.finish(process)
        events, discarded = f.end_session(name)
        self.assertEqual(discarded, 0)
        return events, Names(events)

    def texts(self, events, names, key, *kinds):
        return {
            names.text(e, key) for e in events if e.name in ["syncline_itt:" + k for k in kinds]
        }

    def test_onednn_primitives_have_their_kinds_as_names(self):
        events, names = self.record("tests/foreign_dnnl")
        self.assertEqual(
            self.texts(events, names, "domain", "task_begin"), {"dnnl::primitive::execute"}
        )
        self.assertEqual(
            self.texts(events, names, "name", "task_begin", "task_end"), {"reorder", "matmul"}
        )
        begins = sum(e.name == "syncline_itt:task_begin" for e in events)
        ends = sum(e.name == "syncline_itt:task_end" for e in events)
        self.assertGreater(begins, 10)
        self.assertLessEqual(abs(begins - ends), len(names.threads))

    def test_onetbb(self):
        events, names = self.record("tests/foreign_tbb")
        kinds = {e.name for e in events}
        self.assertTrue(
            kinds
            & {
                "syncline_itt:task_begin_id",
                "syncline_itt:sync",
                "syncline_itt:relation",
                "syncline_itt:task_begin",
            },
            kinds,
        )
        for text in self.texts(events, names, "name", "task_begin", "task_begin_id"):
            self.assertNotEqual(text, "")

    def test_llvm_openmp(self):
        libraries = glob.glob("/usr/lib/llvm-*/lib/libomp.so.5") + glob.glob(
            "/usr/lib/x86_64-linux-gnu/libomp.so.5"
        )
        if not libraries:
            self.skipTest("libomp is not installed")
        events, names = self.record("tests/foreign_omp", LD_PRELOAD=libraries[0])
        threads = {name for _, _, name in names.threads.values()}
        self.assertTrue(any(name.startswith("OMP ") for name in threads), threads)
        frames = [e for e in events if e.name == "syncline_itt:frame_submit"]
        for frame in frames:
            self.assertLessEqual(frame.begin, frame.end)
            self.assertLess(abs(frame.end - frame.time_ns), 1_000_000_000)  # our clock came back
            self.assertIn("$omp$", names.text(frame, "domain"))
        self.assertTrue(frames or any(e.name == "syncline_itt:sync" for e in events))


if __name__ == "__main__":
    lttng_fixture.enter_namespaces()
    BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
