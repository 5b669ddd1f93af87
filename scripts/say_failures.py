# SPDX-License-Identifier: Apache-2.0
"""say_failures.py RESULTS: the failed tests of a ctest run, each with the end of what it printed.

RESULTS is a file that ctest wrote with --output-junit. Who sees only the end of a long log finds
here which test failed, and why; their names alone stand last.
"""

import sys
import xml.etree.ElementTree as ElementTree

LINES_OF_EACH = 60


def main():
    try:
        root = ElementTree.parse(sys.argv[1]).getroot()
    except (OSError, ElementTree.ParseError) as error:
        print(f"test: no results of ctest: {error}")
        return
    failed = [case for case in root.iter("testcase") if case.get("status") == "fail"]
    for case in failed:
        seconds = float(case.get("time", 0))
        print(f"test: {case.get('name')} failed after {seconds:.1f} s; its last lines:")
        printed = (case.findtext("system-out") or "").splitlines()
        for line in printed[-LINES_OF_EACH:]:
            print(f"  {line}")
    print(f"test: failed: {', '.join(case.get('name') for case in failed) or 'no test'}")


if __name__ == "__main__":
    main()
