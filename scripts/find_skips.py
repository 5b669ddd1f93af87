# SPDX-License-Identifier: Apache-2.0
"""find_skips.py RESULTS ALLOWED: fails when a test was skipped that ALLOWED does not name.

RESULTS is a directory of XML written by GoogleTest, pytest and ctest. A line of ALLOWED is a
test's name as this script prints it, or a pattern with *, and after a # the reason. A skip that
nobody sees is a test that nobody runs.
"""

import fnmatch
import glob
import os
import sys
import xml.etree.ElementTree as ElementTree


def skipped_in(path):
    """(name, reason) of the tests that did not run. The three writers speak three dialects."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        yield os.path.basename(path), f"unreadable results (did the test crash?): {error}"
        return
    for case in root.iter("testcase"):
        name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
        mark = case.find("skipped")
        if (
            mark is not None
            or case.get("result") == "skipped"
            or case.get("status") in ("notrun", "disabled")
        ):
            yield name, (
                mark.get("message", "") if mark is not None else case.get("status", "")
            ).strip()


def read_allowed(path):
    with open(path, encoding="utf-8") as file:
        return [line for line in (line.split("#")[0].strip() for line in file) if line]


def main():
    results, allowed = sys.argv[1], read_allowed(sys.argv[2])
    bad = 0
    for path in sorted(glob.glob(os.path.join(results, "*.xml"))):
        for name, reason in skipped_in(path):
            fine = any(fnmatch.fnmatchcase(name, pattern) for pattern in allowed)
            print(f"{'skipped, allowed' if fine else 'SKIPPED'}: {name}: {reason}")
            bad += not fine
    if bad:
        print(
            f"{bad} tests were skipped that {sys.argv[2]} does not name: make them run, "
            "or name them with the reason."
        )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
