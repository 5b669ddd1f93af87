#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every C and C++ source is as clang-format writes it, by .clang-format.

Usage: check_format.py [ROOT]. Prints the files that are not, and how to change that; exits 1 if
there are any, 77 (skipped) without clang-format 14: other versions lay code out in another way.
"""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "14"
SUFFIXES = (".cc", ".h", ".c", ".cpp")
SKIPPED = 77
FILES_OF_A_CALL = 20


def find_clang_format():
    """The program, or why there is none."""
    found = []
    for name in (f"clang-format-{VERSION}", "clang-format"):
        program = shutil.which(name)
        if program:
            said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            version = re.search(r"version (\d+)", said)
            if version and version.group(1) == VERSION:
                return program, None
            found.append(said.strip())
    return None, f"no clang-format {VERSION}; there is: {', '.join(found) or 'none'}"


def sources(root):
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [path for path in listed if path.endswith(SUFFIXES) and (root / path).is_file()]


def misformatted(program, root, paths):
    """The first place of each file that clang-format would change, as "path:line"."""
    command = [program, "--dry-run", "--ferror-limit=1", "--style=file", *paths]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"clang-format failed: {result.stderr}")
    place = re.compile(r"^(\S+?):(\d+):\d+: (?:warning|error): code should be", re.MULTILINE)
    first = {}
    for path, line in place.findall(result.stderr):
        first.setdefault(path, line)
    return [f"{path}:{line}" for path, line in first.items()]


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    program, why = find_clang_format()
    if program is None:
        print(f"skipped: {why}")
        return SKIPPED
    paths = sources(root)
    calls = [paths[i : i + FILES_OF_A_CALL] for i in range(0, len(paths), FILES_OF_A_CALL)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        results = threads.map(lambda call: misformatted(program, root, call), calls)
        places = [place for places in results for place in places]
    for place in places:
        print(f"{place}: format: not as clang-format {VERSION} writes it")
    if places:
        names = " ".join(place.rpartition(":")[0] for place in places)
        print(f"to change that: {program} -i {names}")
    print(f"format: {len(places)} of {len(paths)} files")
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main())
