#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small traces as text, with the events or the error they must give: golden.py CTF_DUMP FILE...

A file has a comment that says what it shows, then sections that begin with "--- NAME": "metadata",
"stream NAME" (hex bytes, # comments), "events" (stdout of ctf_dump), "messages" (its stderr; DIR
stands for the trace's directory). Without a metadata section there is no such file.
"""
import os
import subprocess
import sys
import tempfile


def sections(path):
    found, name = {}, None
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("--- "):
                name = line[4:].strip()
                found[name] = ""
            elif name is not None:
                found[name] += line
    return found


def check(dump, path):
    case = sections(path)
    with tempfile.TemporaryDirectory() as directory:
        for name, text in case.items():
            if name == "metadata":
                with open(os.path.join(directory, name), "w", encoding="utf-8") as out:
                    out.write(text)
            elif name.startswith("stream "):
                data = "".join(line.split("#")[0] for line in text.split("\n"))
                with open(os.path.join(directory, name[len("stream "):]), "wb") as out:
                    out.write(bytes.fromhex(data))
        result = subprocess.run([dump, directory], capture_output=True, text=True, check=False)
        messages = result.stderr.replace(directory, "DIR")
    for what, expected, got in (("events", case["events"], result.stdout),
                                ("messages", case["messages"], messages)):
        if expected != got:
            print(f"{path}: {what} differ\nexpected:\n{expected}got:\n{got}")
            return False
    return True


def main():
    results = [check(sys.argv[1], path) for path in sys.argv[2:]]
    print(f"{sum(results)} of {len(results)} cases pass")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
