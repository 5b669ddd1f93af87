#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of ITT's functions in docs/itt.md: made of functions.txt, held against the collector's
sources and against Intel's headers.

table.py --write          writes the table into docs/itt.md
table.py                  fails where docs/itt.md, functions.txt and the collector's bindings and
                          tracepoints contradict each other
table.py --headers [DIR]  fails where functions.txt and the public headers in DIR (ittnotify.h,
                          legacy/ittnotify.h) name different functions. Without DIR: of
                          $SYNCLINE_ITT_HEADERS, /usr/include, or PyTorch (.venv-torch), whose
                          headers are current; exits 77 (skipped) where none are
"""

import glob
import os
import re
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(FOLDER))
DOCUMENT = os.path.join(ROOT, "docs", "itt.md")
BEGIN, END = "<!-- made by instrumentation/itt/table.py -->\n", "<!-- end -->\n"
SKIPPED = 77
UNBOUND, SILENT = "-", "none"


def read(*path):
    with open(os.path.join(*path), encoding="utf-8", errors="replace") as file:
        return file.read()


class Row:
    """A line of functions.txt."""

    def __init__(self, line, chapter):
        names, events, self.text = (part.strip() for part in line.split("|"))
        pairs = [name.partition("=") for name in names.split()]
        self.functions = [name for name, _, _ in pairs]
        # By which collectors know them.
        self.bindings = [bound or name for name, _, bound in pairs]
        self.events, self.chapter = events.split(), chapter


def rows():
    found, chapter = [], ""
    for line in read(FOLDER, "functions.txt").splitlines():
        if line.startswith("["):
            chapter = line.strip("[]")
        elif line and not line.startswith("#"):
            found.append(Row(line, chapter))
    return found


def table(found):
    out, chapter = [BEGIN], None
    for row in found:
        if row.chapter != chapter:
            out.append(f"\n## {row.chapter}\n\n| function | recorded | shown, or why not |\n")
            out.append("|---|---|---|\n")
            chapter = row.chapter
        functions = ", ".join(f"`{name}`" for name in row.functions)
        events = ", ".join(f"`{name}`" for name in row.events if name not in (UNBOUND, SILENT))
        recorded = events or ("nothing" if row.events == [SILENT] else "not bound")
        out.append(f"| {functions} | {recorded} | {row.text} |\n")
    return "".join([*out, "\n", END])


def with_table(document, found):
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + table(found) + after


def duplicates(names):
    return sorted({name for name in names if names.count(name) > 1})


def contradictions(found, sources, teed, tracepoints, document):
    """Of the table with the collector: its bindings, what it hands to another collector, and the
    events that its provider has."""
    bound = set(re.findall(r'\{"__itt_(\w+)",', sources))
    own = set(re.findall(r"TRACEPOINT_EVENT\(syncline_itt, (\w+),", tracepoints))
    common = re.findall(r"TRACEPOINT_EVENT\(syncline, (\w+),", tracepoints)
    events = own | {f"syncline:{name}" for name in common} | {UNBOUND, SILENT}
    for name in duplicates([name for row in found for name in row.functions]):
        yield f"{name}: two lines"
    for row in found:
        is_unbound = row.events == [UNBOUND]
        for function, binding in zip(row.functions, row.bindings, strict=True):
            if is_unbound and binding in bound:
                yield f"{function}: the collector binds it, the table says that it does not"
            if not is_unbound and binding not in bound:
                yield f"{function}: the table says what it records, and it is not bound"
        if not row.text:
            yield f"{row.functions[0]}: nothing is said of it"
        for event in row.events:
            if event not in events:
                yield f"{row.functions[0]}: there is no event {event}"
        if len(row.events) > 1 and {UNBOUND, SILENT} & set(row.events):
            yield f"{row.functions[0]}: events and none"
    for name in sorted(bound - {name for row in found for name in row.bindings}):
        yield f"{name}: the collector binds it, and it has no line"
    for name in sorted(own - {name for row in found for name in row.events}):
        yield f"event {name}: no function is said to record it"
    for row in found:
        for binding in row.bindings:
            if binding not in teed and "no collector" not in row.text:
                yield f"{binding}: a collector beside ours does not get it (tee.h, tee_calls.c)"
    if with_table(document, found) != document:
        yield "docs/itt.md: is not of these functions: instrumentation/itt/table.py --write"


# What is for Windows alone has no line: wide strings, and forms by the name of either.
CONDITION = re.compile(r"\s*#\s*(if|else|endif)(.*)")
WINDOWS = re.compile(r"\s*ITT_PLATFORM\s*==\s*ITT_PLATFORM_WIN\b(?!.*\|\|)")
FUNCTION = re.compile(
    r"\s*(?:ITT_STUBV?\(\s*\w+,\s*[^,]+,\s*"
    r"|[A-Za-z_][\w ]*[\s*]+(?:\w*ITTAPI\w* +)?__itt_)(\w+)[,(]"
)


def functions_of(header):
    """The functions that a public header declares on Linux."""
    found, windows = set(), []
    for line in header.splitlines():
        condition = CONDITION.match(line)
        if condition and condition[1] == "if":
            windows.append(bool(WINDOWS.match(condition[2])))
        elif condition and condition[1] == "else":
            windows[-1] = False
        elif condition:
            windows.pop()
        elif not any(windows):
            function = FUNCTION.match(line)
            found |= {function[1]} if function else set()
    return found


def differences(found, declared):
    known = {name for row in found for name in row.functions}
    for name in sorted(declared - known):
        yield f"{name}: a function of the headers, and has no line in functions.txt"
    for name in sorted(known - declared):
        yield f"{name}: has a line in functions.txt, and is in no header"


def folders():
    yield os.environ.get("SYNCLINE_ITT_HEADERS", "")
    yield "/usr/include"
    yield from glob.glob(os.path.join(ROOT, ".venv-torch/lib/python*/site-packages/torch/include"))


def check_headers(given):
    for folder in given or folders():
        paths = [os.path.join(folder, path) for path in ("ittnotify.h", "legacy/ittnotify.h")]
        if all(map(os.path.exists, paths)):
            print(f"functions of {folder}")
            return differences(rows(), set().union(*(functions_of(read(path)) for path in paths)))
    if given:
        return [f"{given[0]}: no ittnotify.h and legacy/ittnotify.h there"]
    print("skipped: no headers of ITT here; scripts/setup --torch installs PyTorch, which has them")
    sys.exit(SKIPPED)


def check_collector():
    sources = "".join(read(path) for path in sorted(glob.glob(os.path.join(FOLDER, "*.c"))))
    tracepoints = read(FOLDER, "tracepoints.h") + read(FOLDER, "..", "block", "tracepoints.h")
    calls = read(FOLDER, "tee.h").split("ITT_TEE_CALLS(X)")[1].split("enum")[0]
    teed = set(re.findall(r"X\((\w+)\)", calls) + re.findall(r"DIRECT\((\w+)\)", sources))
    teed.add("api_version")  # ours is the one that answers
    return contradictions(rows(), sources, teed, tracepoints, read(DOCUMENT))


def main(arguments):
    if arguments == ["--write"]:
        document = with_table(read(DOCUMENT), rows())
        with open(DOCUMENT, "w", encoding="utf-8") as file:
            file.write(document)
        return 0
    wrong = check_headers(arguments[1:]) if arguments[:1] == ["--headers"] else check_collector()
    wrong = list(wrong)
    print("\n".join(wrong) or "all of them have a line, and it is true to the code")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
