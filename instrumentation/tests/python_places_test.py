# SPDX-License-Identifier: Apache-2.0
"""What is said of where a thread stands in Python.

Usage: python_places_test.py BUILD_DIRECTORY. Without PyTorch, in this process.
"""

import ctypes
import gc
import os
import sys
import threading
import unittest

HOOK = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "torch")


def look():
    text = ctypes.create_string_buffer(1024)
    assert native.look_text(text)
    return text.value.decode()


def in_file(path, call, name="f"):
    """Calls it from a function that says it is of that name, in line 3 of that file."""
    source = "\n\ndef %s(call): return call()" % name
    scope = {}
    exec(compile(source, path, "exec"), scope)
    return lambda: scope[name](call)


LIBRARY = "/venv/lib/python3.11/site-packages/some/trainer.py"


class PlaceTexts(unittest.TestCase):
    def frames(self, *calls):
        """What is said where each of (file, function) calls the next, and that the text."""
        call = native_text
        for path, name in reversed(calls):
            call = in_file(path, call, name)
        return call()

    def test_the_programs_own_the_innermost_first(self):
        text = self.frames(("/home/ann/jobs/train.py", "main"), ("/home/ann/jobs/cb.py", "step"))
        self.assertEqual(text, "step (jobs/cb.py:3) < main (jobs/train.py:3) > " + INNER)

    def test_libraries_between_them_are_left_out(self):
        text = self.frames(("/a/train.py", "main"), (LIBRARY, "fit"), ("/a/cb.py", "step"))
        self.assertEqual(text, "step (a/cb.py:3) < main (a/train.py:3) > " + INNER)

    def test_four_of_the_programs_own(self):
        text = self.frames(*[("/a/train.py", "f%d" % i) for i in range(6)])
        self.assertEqual(text.count(" < "), 3)
        self.assertTrue(text.startswith("f5 (a/train.py:3) < f4 "), text)

    def test_none_of_the_programs_own(self):
        self.assertEqual(self.frames((LIBRARY, "fit")), "- > " + INNER)

    def test_code_that_libraries_have_made_is_not_the_programs_own(self):
        for path in ("<frozen importlib>", "<eval_with_key>.3", "<__array_function__ internals>"):
            self.assertEqual(self.frames((path, "f")), "- > " + INNER, path)
        for path in ("<string>", "<stdin>", "<ipython-input-3-abc>"):
            self.assertEqual(self.frames((path, "f")), "f (%s:3) > %s" % (path, INNER))
        standard = os.path.join(os.path.dirname(os.__file__), "json", "encoder.py")
        self.assertEqual(self.frames((standard, "f")), "- > " + INNER)

    def test_what_calls_itself_is_there_once(self):
        scope = {"text": native_text}
        source = "def deep(n): return deep(n - 1) if n else text()"
        exec(compile(source, "/a/deep.py", "exec"), scope)
        self.assertEqual(scope["deep"](50), "deep (a/deep.py:1) > " + INNER)
        self.assertEqual(scope["deep"](300), "deep (a/deep.py:1) > " + INNER)

    def test_long_names_are_cut(self):
        names = [("/%s/%s.py" % ("d" * 300, "a" * 300), "f%d%s" % (i, "x" * 500)) for i in range(5)]
        self.assertLess(len(self.frames(*names)), 1000)
        text = self.frames(("/a/" + "\u00e9" * 200 + ".py", "\u00e9" * 200))
        self.assertTrue(text.startswith("\u00e9" * 40 + " ("), text)

    def test_names_that_are_no_text(self):
        self.assertEqual(self.frames(("/a/\udcff.py", "f")), "- > " + INNER)

    def test_nothing_is_collected_meanwhile(self):
        inside = [False]
        during = []
        gc.callbacks.append(lambda *_: during.append(inside[0]))
        self.addCleanup(gc.callbacks.pop)
        buffer = ctypes.create_string_buffer(1024)

        def deep(depth):
            if depth:
                return deep(depth - 1)
            held = []
            # ctypes needs a few of them, the frames more.
            while gc.get_count()[0] < gc.get_threshold()[0] - 20:
                held.append([])
            inside[0] = True
            native.look_text(buffer)
            inside[0] = False
            return held

        for _ in range(50):
            deep(100)
            gc.collect()
        self.assertIn(False, during)
        self.assertNotIn(True, during)

    def test_the_collector_is_as_it_was(self):
        for is_on in (True, False):
            (gc.enable if is_on else gc.disable)()
            look()
            self.assertEqual(gc.isenabled(), is_on)
        gc.enable()

    def test_nothing_is_kept(self):
        class Held:
            pass

        def holds():
            held = Held()
            references.append(weakref.ref(held))
            look()

        references = []
        holds()
        self.assertIsNone(references[0]())
        codes = [sys.getrefcount(look.__code__)]
        for _ in range(100):
            look()
        codes.append(sys.getrefcount(look.__code__))
        self.assertEqual(codes[0], codes[1])


class Registered(unittest.TestCase):
    def test_threads_come_and_go(self):
        def here():
            for on in (1, 1, 0, 0, 1):
                native.look_here(on)

        for _ in range(100):  # more than there is room for
            thread = threading.Thread(target=here)
            thread.start()
            thread.join()
        native.look_here(1)
        native.look_forked()
        native.look_here(0)


if __name__ == "__main__":
    sys.path.insert(0, HOOK)
    import weakref

    import syncline_native
    import syncline_places

    native = syncline_native.load(os.path.join(os.path.abspath(sys.argv.pop(1)), "lib"))
    # This file's frames are a library's here; what the tests say is own is not in this folder.
    syncline_places.__file__ = __file__
    if not syncline_places.start(native):
        print("skipped: this Python is not looked at")
        sys.exit(77)
    BUFFER = ctypes.create_string_buffer(1024)

    def native_text():
        native.look_text(BUFFER)
        return BUFFER.value.decode()

    LINE = native_text.__code__.co_firstlineno + 1
    INNER = "native_text (tests/python_places_test.py:%d)" % LINE
    unittest.main(verbosity=2)
