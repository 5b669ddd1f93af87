#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tidy.py and check_format.py must find what they are there to find: each rule is broken once in a
small tree."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import check_format

TIDY = Path(__file__).with_name("tidy.py")
CHECK_FORMAT = Path(__file__).with_name("check_format.py")


LICENCE = "SPDX-License-Identifier: Apache-2.0\n"


def findings(files, licensed=True, subject=""):
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        subprocess.run(["git", "init", "-q", name], check=True)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            comment = "// " if path.endswith((".cc", ".h", ".proto")) else "# "
            (root / path).write_text((comment + LICENCE if licensed else "") + text)
        if subject:
            identity = ["-c", "user.name=test", "-c", "user.email=test"]
            commit = ["commit", "-q", "--allow-empty", "-m", subject]
            subprocess.run(["git", "-C", name, *identity, *commit], check=True)
        result = subprocess.run([sys.executable, TIDY, name], capture_output=True, text=True)
        lines = result.stdout.splitlines()
        assert (result.returncode == 1) == (len(lines) > 1), result.stdout + result.stderr
        return [line.split(": ")[1] for line in lines[:-1]]


LISTED = {"common/CMakeLists.txt": "a.cc"}


class TidyTest(unittest.TestCase):
    def test_clean_tree_has_no_findings(self):
        self.assertEqual(findings({**LISTED, "common/a.cc": "int x;\n"}), [])

    def test_include_against_the_layers(self):
        self.assertEqual(
            findings({**LISTED, "common/a.cc": '#include "timeline/sink.h"\n'}), ["include"]
        )

    def test_grpc_outside_its_rooms(self):
        self.assertEqual(
            findings({**LISTED, "common/a.cc": "#include <grpcpp/grpcpp.h>\n"}), ["include"]
        )

    def test_circle_between_folders_of_one_folder(self):
        there = {"common/a/a.h": '#include "common/b/b.h"\n'}
        back = {"common/b/b.h": '#include "common/a/a.h"\n'}
        self.assertEqual(findings(there), [])
        self.assertEqual(findings({**there, **back}), ["circle"])
        back_by_c = {
            "common/b/b.h": '#include "common/c/c.h"\n',
            "common/c/c.h": '#include "common/a/a.h"\n',
        }
        self.assertEqual(findings({**there, **back_by_c}), ["circle"])
        a_test = {"common/CMakeLists.txt": "b_test.cc"}
        self.assertEqual(
            findings({**there, **a_test, "common/b/b_test.cc": back["common/b/b.h"]}), []
        )

    def test_circle_that_only_the_folders_above_make(self):
        tree = {
            "common/a/x/a.h": '#include "common/b/x/b.h"\n',
            "common/b/y/b.h": '#include "common/a/y/a.h"\n',
        }
        self.assertEqual(findings(tree), ["circle"])

    def test_circle_with_the_folder_above(self):
        tree = {
            "common/a.h": '#include "common/a/a.h"\n',
            "common/a/a.h": '#include "common/b.h"\n',
        }
        self.assertEqual(findings(tree), ["circle"])

    def test_permission_that_nobody_needs(self):
        self.assertEqual(findings({"clocksync/a.h": '#include "common/a.h"\n'}), [])
        self.assertEqual(findings({"clocksync/a.h": ""}), ["permission"])
        # A test needs it, the rest does not.
        tree = {"clocksync/CMakeLists.txt": "a_test.cc", "clocksync/a.h": ""}
        self.assertEqual(
            findings({**tree, "clocksync/a_test.cc": '#include "common/a.h"\n'}), ["permission"]
        )

    def test_long_line_file_and_function(self):
        body = "void F() {\n" + "  x;\n" * 80 + "}\n"
        self.assertEqual(findings({**LISTED, "common/a.cc": "// " + "x" * 100 + "\n"}), ["columns"])
        self.assertEqual(findings({**LISTED, "common/a.cc": body}), ["function-length"])
        self.assertEqual(findings({**LISTED, "common/a.cc": "int x;\n" * 501}), ["file-length"])

    def test_long_function_with_a_long_signature(self):
        body = "int F(int a,\n      int b) {\n" + "  x;\n" * 80 + "}\n"
        self.assertEqual(findings({**LISTED, "common/a.cc": body}), ["function-length"])

    def test_dead_file(self):
        self.assertEqual(findings({"common/CMakeLists.txt": "", "common/b.cc": ""}), ["dead-file"])

    def test_banned_calls(self):
        self.assertEqual(findings({**LISTED, "common/a.cc": "int n = std::stoi(s);\n"}), ["stoi"])
        self.assertEqual(
            findings({**LISTED, "common/a.cc": "using namespace std;\n"}), ["using-namespace"]
        )
        self.assertEqual(findings({**LISTED, "common/a.cc": '  system("ls");\n'}), ["system"])

    def test_waiver(self):
        text = "using namespace std;  // tidy: allow using-namespace: shown in a test\n"
        self.assertEqual(findings({**LISTED, "common/a.cc": text}), [])
        text = "int x;  // tidy: allow using-namespace: there was one\n"
        self.assertEqual(findings({**LISTED, "common/a.cc": text}), ["waiver"])

    def test_proto_without_unit(self):
        self.assertEqual(findings({"proto/a.proto": "  int64 delay = 1;\n"}), ["proto-unit"])

    def test_doc_names_a_missing_path(self):
        self.assertEqual(
            findings({**LISTED, "common/a.cc": "", "docs/x.md": "See `common/gone.h`.\n"}),
            ["doc-path"],
        )

    def test_source_without_licence(self):
        for path in ("common/a.h", "scripts/a.py", "proto/a.proto"):
            self.assertEqual(findings({path: ""}, licensed=False), ["licence"])
        self.assertEqual(findings({"scripts/run": "#!/bin/sh\n"}, licensed=False), ["licence"])
        self.assertEqual(findings({"docs/a.md": "", "data": "no script\n"}, licensed=False), [])

    def test_subject_of_a_commit(self):
        self.assertEqual(findings({}, subject="tests: " + "x" * 65), [])
        self.assertEqual(findings({}, subject="tests: " + "x" * 66), ["subject"])


def checked(text, **environment):
    """What check_format.py says of a tree with one source: exit code and lines."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        subprocess.run(["git", "init", "-q", name], check=True)
        style = Path(__file__).parents[2] / ".clang-format"
        (root / ".clang-format").write_text(style.read_text())
        (root / "a.cc").write_text(text)
        result = subprocess.run(
            [sys.executable, CHECK_FORMAT, name],
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
        )
        return result.returncode, result.stdout.splitlines()


class CheckFormatTest(unittest.TestCase):
    @unittest.skipUnless(check_format.find_clang_format()[0], "no clang-format")
    def test_names_the_first_place_of_a_file(self):
        self.assertEqual(checked("int x;\n")[0], 0)
        code, lines = checked("int x;\nint  y;\nint  z;\n")
        self.assertEqual((code, len(lines)), (1, 3))
        self.assertTrue(lines[0].startswith("a.cc:2: format: "), lines)

    @unittest.skipUnless(check_format.find_clang_format()[0], "no clang-format")
    def test_drawings_in_comments_are_left_alone(self):
        wide = "words " * 20
        drawing = f"// A drawing:\n//   a  |  {wide.strip()}\n//   b\n"
        self.assertEqual(checked(drawing + "int x;\n")[0], 0)
        self.assertEqual(checked(f"// No drawing: {wide.strip()}\nint x;\n")[0], 1)

    def test_is_skipped_without_the_program(self):
        with tempfile.TemporaryDirectory() as name:
            git = subprocess.run(["which", "git"], capture_output=True, text=True).stdout.strip()
            os.symlink(git, os.path.join(name, "git"))
            code, lines = checked("int  x;\n", PATH=name)
        self.assertEqual(code, 77)
        self.assertIn("no clang-format 14", lines[0])


if __name__ == "__main__":
    unittest.main()
