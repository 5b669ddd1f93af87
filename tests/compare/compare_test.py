# SPDX-License-Identifier: Apache-2.0
"""compare_test.py SYNCLINE: scripts/compare-outputs finds what differs, and nothing else.

The other build is SYNCLINE behind a script that spoils one thing at a time.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)

from scripts import compare_outputs, random_traces  # noqa: E402  (after the path is set)

# One bit of one byte of a timeline, in one of the commands; a line and the exit status of another.
SPOILS_TWO = """#!/bin/sh
"{syncline}" "$@"
status=$?
case "$*" in
  merge*--refit*) "{python}" -c 'if True:
    with open("out/timeline.perfetto-trace", "r+b") as file:
      file.seek(1000)
      byte = file.read(1)[0]
      file.seek(1000)
      file.write(bytes([byte ^ 1]))' ;;
  report*) echo more; exit 5 ;;
esac
exit $status
"""
SPOILS_THREADS = """#!/bin/sh
"{syncline}" "$@"
status=$?
case "$*" in events*--threads\\ 2*) echo more ;; esac
exit $status
"""
SYNCLINE = ""


def build(directory, script):
    """A build directory with a program that is SYNCLINE, if there is no script."""
    os.makedirs(f"{directory}/bin")
    program = f"{directory}/bin/syncline"
    if script is None:
        os.symlink(SYNCLINE, program)
        return directory
    with open(program, "w", encoding="utf-8") as file:
        file.write(script.format(syncline=SYNCLINE, python=sys.executable))
    os.chmod(program, 0o755)
    return directory


class CompareOutputs(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name

    def run_script(self, old, new):
        """Exit status, and what it printed."""
        keep = ["--keep", f"{self.scratch}/keep"]
        done = subprocess.run(
            [f"{ROOT}/scripts/compare-outputs", old, new, "--quick", *keep],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def test_planted_differences_are_found_and_nothing_else(self):
        old = build(f"{self.scratch}/old", None)
        status, text = self.run_script(old, build(f"{self.scratch}/new", SPOILS_TWO))
        found = re.findall(r"^differs: (.*?): ", text, re.MULTILINE)
        self.assertEqual(
            found,
            [
                "tensorflow_profile/report json/exit status",
                "tensorflow_profile/report json/standard output",
                "tensorflow_profile/merge refit@1/out/timeline.perfetto-trace",
            ],
            text,
        )
        self.assertIn("timeline.perfetto-trace: byte 1000 of ", text)
        self.assertEqual(status, 1, text)
        kept = f"{self.scratch}/keep/new/tensorflow_profile/merge refit@1/out"
        self.assertEqual(os.listdir(kept), ["timeline.perfetto-trace"])

    def compare(self, old, new, commands, recording):
        """What compare() counts and prints of some commands."""
        one = compare_outputs.Input("input", [recording], ("501ms", "502ms"), True)
        chosen = {k: v for k, v in one.commands(False, False).items() if k in commands}
        self.assertEqual(len(chosen), len(commands))
        comparison = compare_outputs.Comparison(None)
        builds = [compare_outputs.Build(path, f"{self.scratch}/work {i}", "")
                  for i, path in enumerate((old, new))]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            compare_outputs.compare(one, *builds, chosen, comparison)
        return comparison, printed.getvalue()

    def recording(self):
        run = f"{self.scratch}/run"
        random_traces.recording(os.path.join(ROOT, compare_outputs.GOLDEN[0]), run, seed=1)
        return run

    def test_a_build_is_equal_to_itself(self):
        one = build(f"{self.scratch}/one", None)
        commands = ("merge@1", "merge cut@2", "events@1", "report picture")
        comparison, text = self.compare(one, one, commands, self.recording())
        self.assertEqual((comparison.differ, comparison.allowed, text), (0, 0, ""))
        # Of each command three, and files of the merges and of the picture.
        self.assertGreater(comparison.compared, 20)

    def test_one_and_two_threads_must_write_the_same(self):
        one = build(f"{self.scratch}/one", SPOILS_THREADS)
        comparison, text = self.compare(one, one, ("events@1", "events@2"), self.recording())
        self.assertEqual(comparison.differ, 1, text)
        self.assertIn("input/events: by the number of threads: standard output", text)

    def test_what_differs_on_purpose_is_no_difference(self):
        comparison = compare_outputs.Comparison(None)
        self.addCleanup(setattr, compare_outputs, "ALLOWED", compare_outputs.ALLOWED)
        compare_outputs.ALLOWED = (("*/merge*/out/a", "the reason"),)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            comparison.take("input/merge@1", {"out/a": b"1", "out/b": b"1"},
                            {"out/a": b"2", "out/b": b"2"})
        self.assertEqual((comparison.differ, comparison.allowed), (1, 1))
        self.assertIn("on purpose: input/merge@1/out/a: the reason", printed.getvalue())
        self.assertIn("differs: input/merge@1/out/b: byte 0", printed.getvalue())


if __name__ == "__main__":
    SYNCLINE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
