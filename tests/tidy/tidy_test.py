#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tidy.py must find what it is there to find: each rule is broken once in a small tree."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TIDY = Path(__file__).with_name("tidy.py")


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


if __name__ == "__main__":
    unittest.main()
