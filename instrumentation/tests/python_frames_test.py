# SPDX-License-Identifier: Apache-2.0
"""Looking at all Python threads while finalizers run and threads come and go.

Usage: python_frames_test.py BUILD_DIRECTORY. sys._current_frames itself stops such a program for
good in Python 3.11.
"""

import _thread
import gc
import os
import sys
import threading
import time
import unittest

HOOK = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "torch")
LOOKS = 50
LIMIT_S = 60


class Finalized:
    """Garbage that only the collector finds, and whose finalizer lets other threads run."""

    count = 0

    def __init__(self):
        self.itself = self

    def __del__(self):
        Finalized.count += 1
        time.sleep(0.01)


class CurrentFrames(unittest.TestCase):
    def setUp(self):
        self.ended = threading.Event()

    def nap(self):  # each call has a new frame
        time.sleep(0.002)

    def naps(self):
        while not self.ended.is_set():
            self.nap()

    def begins_threads(self):
        while not self.ended.is_set():
            _thread.start_new_thread(int, ())
            time.sleep(0.002)

    def test_beside_finalizers_and_threads_that_come_and_go(self):
        for body in [self.naps] * 20 + [self.begins_threads] * 2:
            threading.Thread(target=body, daemon=True).start()
        thresholds = gc.get_threshold()
        gc.set_threshold(1000, 1000, 1000)
        for _ in range(LOOKS):
            Finalized()
            held = []
            while gc.get_count()[0] < 995:  # the frames of so many threads are more than 5 objects
                held.append([])
            frames = native.current_frames()
            self.assertIn(threading.get_ident(), frames)
            frames.clear()
        gc.set_threshold(*thresholds)
        self.ended.set()
        self.assertGreater(Finalized.count, LOOKS / 2)

    def test_the_collector_is_as_it_was(self):
        for is_on in (True, False):
            (gc.enable if is_on else gc.disable)()
            native.current_frames()
            self.assertEqual(gc.isenabled(), is_on)
        gc.enable()


if __name__ == "__main__":
    sys.path.insert(0, HOOK)
    import faulthandler

    import syncline_native

    faulthandler.dump_traceback_later(LIMIT_S, exit=True)  # needs no lock of Python's
    native = syncline_native.load(os.path.join(os.path.abspath(sys.argv.pop(1)), "lib"))
    unittest.main(verbosity=2)
