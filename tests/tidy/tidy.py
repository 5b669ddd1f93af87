#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks how the code reads: layers, circles, sizes, dead files, banned calls, units, paths named
in docs, licence lines, subjects of commits. Permissions and waivers that nobody needs are findings.

Usage: tidy.py [ROOT]. Prints one line per finding, `path:line: rule: text`; exits 1 if any.
A waiver is a comment on the line or the line above: `tidy: allow RULE: reason`; for the size of
a file it stands in the first ten lines. The rules are docs/ARCHITECTURE.md's, made checkable.
"""

import re
import subprocess
import sys
from pathlib import Path

COLUMNS_MAX = 100
FILE_LINES_MAX = 500
HEADER_LINES_MAX = 300
FUNCTION_LINES_MAX = 70

# A folder may include itself and what is listed. Longest prefix wins.
MAY_INCLUDE = {
    "common": [],
    "clocksync": ["common"],
    "ctf": ["common"],
    "xspace": ["common"],
    "kineto": ["common"],
    "spans": ["common"],
    "control_block": ["common", "instrumentation/abi"],
    "timeline": ["common", "clocksync", "instrumentation/abi"],
    "evidence": [],
    "vtune": ["common"],
    "analysis": ["common", "clocksync", "timeline", "evidence"],
    "export": ["common", "clocksync", "ctf", "timeline", "analysis", "vtune"],
    "proto": [],
    "agent": [
        "common",
        "clocksync",
        "ctf",
        "xspace",
        "control_block",
        "evidence",
        "vtune",
        "proto",
        "instrumentation/abi",
    ],
    "coordinator": [
        "common",
        "clocksync",
        "ctf",
        "xspace",
        "kineto",
        "spans",
        "control_block",
        "evidence",
        "vtune",
        "timeline",
        "analysis",
        "export",
        "proto",
        "instrumentation/abi",
    ],
    "instrumentation": [],
    "tests": [
        "common",
        "clocksync",
        "ctf",
        "xspace",
        "control_block",
        "evidence",
        "vtune",
        "timeline",
        "analysis",
        "export",
        "proto",
        "coordinator",
        "instrumentation",
    ],
}
GRPC_FOLDERS = ("agent/service/", "agent/tfprofiler/", "agent/tests/", "coordinator/fleet/")

BANNED = [
    (
        re.compile(r"\bsleep_for\b|\bsleep_until\b"),
        "sleep",
        "wait on a condition or an injected Clock",
        lambda p: p.name == "main.cc" or p.parts[0] == "tests" or "tests" in p.parts,
    ),
    (re.compile(r"(?<![\w.:>])system\("), "system", "posix_spawn through a ProcessRunner", None),
    (re.compile(r"\busing namespace\b"), "using-namespace", "name what you use", None),
    (
        re.compile(r"system_clock::now"),
        "wall-clock",
        "an injected Clock",
        lambda p: "clock" in p.name,
    ),
    (re.compile(r"std::sto[iul]"), "stoi", "absl::SimpleAtoi", None),
    (
        re.compile(r"absl::(optional|Span|make_optional)\b"),
        "absl-type",
        "std::optional, std::span",
        None,
    ),
]

UNIT_SUFFIXES = (
    "_ns",
    "_s",
    "_ms",
    "_us",
    "_s",
    "_mb",
    "_ppb",
    "_ppm",
    "_bytes",
    "_mb",
    "_count",
    "_ticks",
    "_inode",
    "_bits",
    "_number",
    "_size",
    "_scaled_ppm",
)
LICENCE = "SPDX-License-Identifier: Apache-2.0"
SUBJECT_COLUMNS_MAX = 72
SUBJECTS_SINCE = "2026-11-24T13:30:00Z"  # older ones stay as they are

PROTO_UNITLESS = {  # identifiers and ordinals, which have no unit
    "exit_code",
    "pid",
    "guard_pid",
    "own_pid",
    "tid",
    "uid",
    "agent_uid",
    "other_uids",
    "rank",
    "world_size",
    "generation",
    "crc32c",
    "bytes",  # its own unit
    "count",
    "tf_profiler_device_level",
    "tf_profiler_level",
    "host_tracer_level",  # TensorFlow's names
    "device_tracer_level",
    "python_tracer_level",
    "version",
}


def tracked(root):
    out = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [Path(line) for line in out.stdout.splitlines() if (root / line).is_file()]


INCLUDE = re.compile(r'\s*#\s*include\s+([<"])([^>"]+)[>"]')
WAIVER = re.compile(r"tidy: allow ([\w-]+)")


def is_test(path):
    """A test looks at what it tests from both sides of the wall."""
    return "tests" in path.parts or "_test" in path.stem


def is_leaf(path):
    """Programs beside the code that nothing else is built of: they may look into any room."""
    return is_test(path) or path.stem.endswith(("_benchmark", "_bench", "_fuzz"))


def circles(arrows):
    """One shortest circle of each knot of the graph {from: {to, ...}}."""

    def way(begin, end):
        """The shortest one of at least one arrow, with both ends; None: there is none."""
        seen, ways = set(), [[begin]]
        for nodes in ways:
            for node in sorted(arrows.get(nodes[-1], ())):
                if node == end:
                    return [*nodes, node]
                if node not in seen:
                    seen.add(node)
                    ways.append([*nodes, node])
        return None

    knotted = set()
    for node in sorted(arrows):
        circle = None if node in knotted else way(node, node)
        if circle:
            yield circle
            knotted |= {other for other in arrows if way(node, other) and way(other, node)}


class Tidy:
    def __init__(self, root):
        self.root = root
        self.files = tracked(root)
        self.findings = []
        self.arrows = {}  # between folders: {(from, to): (path, line) of an include}
        self.needed = set()  # permissions: (folder, what), and folders that include gRPC
        self.waivers = set()  # that were needed: (path, line index)

    def waived(self, path, lines, index, rule):
        """To be asked only of what is a finding without a waiver."""
        for at in (index, index - 1):
            if 0 <= at < len(lines) and f"tidy: allow {rule}" in lines[at]:
                self.waivers.add((path, at))
                return True
        return False

    def report(self, path, line, rule, text):
        self.findings.append(f"{path}:{line}: {rule}: {text}")

    def run(self):
        code = [p for p in self.files if p.suffix in (".cc", ".h", ".c", ".cpp")]
        for path in code:
            lines = (self.root / path).read_text(errors="replace").split("\n")
            self.check_includes(path, lines)
            self.check_sizes(path, lines)
            self.check_functions(path, lines)
            self.check_banned(path, lines)
            self.check_waivers(path, lines)
        for path in self.files:
            if path.suffix == ".proto":
                self.check_proto(path)
            if path.suffix == ".md":
                self.check_doc(path)
            if path.suffix == ".py":
                lines = (self.root / path).read_text(errors="replace").split("\n")
                self.check_sizes(path, lines)
            self.check_licence(path)
        self.check_circles()
        self.check_permissions()
        self.check_dead_files(code)
        self.check_subjects()
        return self.findings

    def check_includes(self, path, lines):
        top = path.parts[0]
        if top not in MAY_INCLUDE:
            return
        rules = "tests" if is_test(path) else top
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if match:
                text = self.include_finding(path, number, match.group(1), match.group(2), rules)
                if text and not self.waived(path, lines, number - 1, "include"):
                    self.report(path, number, "include", text)

    def include_finding(self, path, number, bracket, target, rules):
        top, folder = path.parts[0], target.split("/")[0]
        if target.startswith(("grpcpp/", "grpc/")) or target.endswith(".grpc.pb.h"):
            room = next((room for room in GRPC_FOLDERS if str(path).startswith(room)), None)
            self.needed.add(room)
            return None if room else f"{target}: gRPC only in {', '.join(GRPC_FOLDERS)}"
        if bracket == "<" or folder not in MAY_INCLUDE:
            return None
        if not is_leaf(path):
            self.arrows.setdefault((path.parent, Path(target).parent), (path, number))
        allowed = next((a for a in MAY_INCLUDE[rules] if target.startswith(a + "/")), None)
        if allowed and folder != top:
            self.needed.add((rules, allowed))
        return None if folder == top or allowed else f"{top} may not include {target}"

    def check_circles(self):
        """Folders include each other in one direction, however deep one looks into them."""
        told = set()
        for depth in range(1, 1 + max((len(p.parts) for p in self.files), default=0)):
            arrows, places = {}, {}
            for (begin, end), place in self.arrows.items():
                rooms = Path(*begin.parts[:depth]), Path(*end.parts[:depth])
                if rooms[0] != rooms[1]:
                    arrows.setdefault(rooms[0], set()).add(rooms[1])
                    places.setdefault(rooms, place)
            for circle in circles(arrows):
                steps = [places[pair] for pair in zip(circle, circle[1:])]
                if frozenset(steps) in told:
                    continue
                told.add(frozenset(steps))
                named = " -> ".join(str(room) for room in circle)
                why = ", ".join(f"{path}:{line}" for path, line in steps)
                self.report(*steps[0], "circle", f"{named}: {why}")

    def check_permissions(self):
        """What nobody needs is not allowed: it would hide the first who should not do it."""
        here = Path(__file__).name
        tops = {p.parts[0] for p in self.files if p.suffix in (".cc", ".h", ".c", ".cpp")}
        for top, allowed in MAY_INCLUDE.items():
            for room in allowed if top in tops else ():
                if (top, room) not in self.needed:
                    self.report(here, 1, "permission", f"{top} never includes {room}")
        for room in GRPC_FOLDERS:
            if room not in self.needed and room.split("/")[0] in tops:
                self.report(here, 1, "permission", f"{room} never includes gRPC")

    def check_waivers(self, path, lines):
        for index, line in enumerate(lines):
            waiver = WAIVER.search(line)
            if waiver and (path, index) not in self.waivers:
                self.report(path, index + 1, "waiver", f"nothing here needs it: {waiver.group(1)}")

    def check_sizes(self, path, lines):
        limit = HEADER_LINES_MAX if path.suffix == ".h" else FILE_LINES_MAX
        head = "\n".join(lines[:10])
        length = len(lines) - 1 - head.count(LICENCE)
        waiver = next((i for i, h in enumerate(lines[:10]) if "tidy: allow file-length" in h), None)
        if length > limit and waiver is not None:
            self.waivers.add((path, waiver))
        elif length > limit:
            self.report(path, 1, "file-length", f"{length} lines, at most {limit}")
        for number, line in enumerate(lines, 1):
            if (
                len(line) > COLUMNS_MAX
                and "http" not in line
                and not self.waived(path, lines, number - 1, "columns")
            ):
                self.report(path, number, "columns", f"{len(line)} columns, at most {COLUMNS_MAX}")

    def check_licence(self, path):
        """Sources, build files and scripts say their licence in one of the first two lines."""
        source = path.suffix in (".cc", ".h", ".c", ".py", ".sh", ".proto", ".cmake")
        if not source and path.name != "CMakeLists.txt":
            if path.suffix:
                return
            with open(self.root / path, "rb") as file:
                if file.read(2) != b"#!":
                    return
        if LICENCE not in "\n".join((self.root / path).read_text().split("\n")[:2]):
            self.report(path, 1, "licence", f"one of the first two lines must be: {LICENCE}")

    def check_subjects(self):
        """Of the commits that there are: none where the sources are not a git checkout."""
        log = subprocess.run(
            ["git", "-C", str(self.root), "log", f"--since={SUBJECTS_SINCE}", "--format=%h %s"],
            capture_output=True,
            text=True,
        )
        for line in log.stdout.splitlines():
            commit, _, subject = line.partition(" ")
            if len(subject) > SUBJECT_COLUMNS_MAX:
                text = f"{len(subject)} columns, at most {SUBJECT_COLUMNS_MAX}: {subject}"
                self.report(commit, 1, "subject", text)

    def check_functions(self, path, lines):
        """In clang-format's layout a function ends with a lone '}' at the indent where it began."""
        control = r"\s*(if|for|while|switch|else|do|catch|try|case|default|extern)\b"
        for end, line in enumerate(lines):
            if not re.fullmatch(r"( {0,2})\}", line):
                continue
            indent = len(line) - 1
            start = end - 1
            while start > 0 and not re.match(rf" {{{indent}}}[^\s}}):#]", lines[start]):
                start -= 1
            length = end - start + 1
            if re.match(control, lines[start]) or length <= FUNCTION_LINES_MAX:
                continue
            if not self.waived(path, lines, start, "function-length"):
                text = f"{length} lines, at most {FUNCTION_LINES_MAX}"
                self.report(path, start + 1, "function-length", text)

    def check_banned(self, path, lines):
        for number, line in enumerate(lines, 1):
            text = re.sub(r'"(\\.|[^"\\])*"', '""', line.split("//")[0])
            for pattern, rule, instead, excused in BANNED:
                if (
                    pattern.search(text)
                    and not (excused and excused(path))
                    and not self.waived(path, lines, number - 1, rule)
                ):
                    self.report(path, number, rule, f"use {instead}")

    def check_proto(self, path):
        lines = (self.root / path).read_text().split("\n")
        for number, line in enumerate(lines, 1):
            match = re.match(
                r"\s*(?:repeated\s+)?(?:u?int(?:32|64)|s?fixed(?:32|64)|sint(?:32|64))\s+(\w+)\s*=",
                line,
            )
            if (
                match
                and not match.group(1).endswith(UNIT_SUFFIXES)
                and match.group(1) not in PROTO_UNITLESS
            ):
                self.report(
                    path, number, "proto-unit", f"{match.group(1)} carries no unit in its name"
                )

    def check_doc(self, path):
        lines = (self.root / path).read_text(errors="replace").split("\n")
        tops = {p.parts[0] for p in self.files if len(p.parts) > 1}
        names = {str(p) for p in self.files} | {str(q) for p in self.files for q in p.parents}
        fenced = False
        for number, line in enumerate(lines, 1):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            if fenced:
                continue
            for word in re.findall(r"`([\w./-]+)`", line) + re.findall(r"\]\(([\w./-]+)\)", line):
                clean = word.rstrip("/").removeprefix("./")
                beside = str((path.parent / word)) if not word.startswith("/") else word
                if clean.split("/")[0] not in tops or "/" not in word:
                    continue
                if clean not in names and not any(str(Path(beside)) == n for n in names):
                    self.report(path, number, "doc-path", f"{word} does not exist")

    def check_dead_files(self, code):
        lists = "\n".join(
            (self.root / p).read_text()
            for p in self.files
            if p.name == "CMakeLists.txt" or p.suffix == ".cmake"
        )
        for path in code:
            if path.suffix == ".h":
                continue
            if path.name not in lists and path.stem not in lists:
                self.report(path, 1, "dead-file", "named in no CMakeLists.txt")


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    findings = Tidy(root).run()
    for finding in findings:
        print(finding)
    print(f"tidy: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
