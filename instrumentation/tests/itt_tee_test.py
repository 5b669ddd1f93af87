# SPDX-License-Identifier: Apache-2.0
"""Syncline's collector and another one on the same program: each must get what it gets alone.

Usage: itt_tee_test.py BUILD_DIRECTORY
"""

import collections
import os
import sys

import lttng_fixture
from itt_every_function_test import contradictions, rows_by_function

PROGRAM, EVERY = "tests/itt_tee_program", "tests/itt_every_function"
LIMIT_S = 100  # PyTorch needs seconds to load, on a busy machine more
# What another collector may do, and the program goes on with ours all the same.
OTHERS = ["", "off=unwanted", "without=task_end,without=marker", "leaves", "forgets"]


class Machine:
    """Runs programs with one collector or both."""

    def __init__(self, build):
        self.fixture = lttng_fixture.Fixture(build)
        self.other = os.path.join(self.fixture.build, "tests/itt_second_collector.so")
        self.log = os.path.join(self.fixture.directory, "log")
        self.recordings = 0

    def calls(self):
        """What the other collector wrote since the last time."""
        if not os.path.exists(self.log):
            return []
        with open(self.log) as file:
            lines = file.read().splitlines()
        os.remove(self.log)
        return lines

    def environment(self, both, option):
        chosen = {"SECOND_COLLECTOR_LOG": self.log, "SECOND_COLLECTOR": option}
        chosen["SYNCLINE_ALSO_COLLECTOR" if both else "INTEL_LIBITTNOTIFY64"] = self.other
        return chosen

    def alone(self, program, arguments, option):
        """(what the program says, the other's calls), without us."""
        process = self.fixture.start(
            *arguments, program=program, **self.environment(both=False, option=option)
        )
        said, errors = process.communicate("go\n", timeout=LIMIT_S)
        assert process.returncode == 0 and not errors, f"{process.returncode}: {errors}"
        return said, self.calls()

    def recorded(self, program, arguments, chosen):
        """(what the program says, our events, the other's calls)."""
        process = self.fixture.start(*arguments, program=program, registered=True, **chosen)
        self.fixture.wait_for_blocks(limit_s=LIMIT_S)
        session = self.fixture.begin_session()
        self.recordings += 1
        self.fixture.set_gates(self.recordings)
        said, errors = process.communicate("go\n", timeout=LIMIT_S)
        assert process.returncode == 0 and not errors, f"{process.returncode}: {errors}"
        events, discarded = self.fixture.end_session(session)
        assert discarded == 0
        return said, events, self.calls()


def counts(events):
    """Events by what does not change from run to run."""
    return collections.Counter(
        (event.name, event.fields.get("text", "")) for event in events
    )


def differences(what, expected, found):
    for line, times in (expected - found).items():
        yield f"{what}: {times} x missing: {line}"
    for line, times in (found - expected).items():
        yield f"{what}: {times} x too many: {line}"


def check_program(machine, own, option):
    alone = collections.Counter(machine.alone(PROGRAM, (), option)[1])
    assert sum(alone.values()) > 100, alone
    said, events, calls = machine.recorded(PROGRAM, (), machine.environment(True, option))
    assert said == "done\n", said
    what = f"with {option or 'a plain one'}"
    yield from differences(f"{what}, the other's", alone, collections.Counter(calls))
    yield from differences(f"{what}, ours", own, counts(events))


def check_preloaded(machine):
    """Its functions have the names of ours, and come first."""
    preload = {"LD_PRELOAD": machine.other}
    _, _, alone = machine.recorded(PROGRAM, (), machine.environment(True, ""))
    _, _, calls = machine.recorded(PROGRAM, (), machine.environment(True, "") | preload)
    yield from differences(
        "preloaded, the other's", collections.Counter(alone), collections.Counter(calls)
    )


def check_groups(machine):
    """What INTEL_ITTNOTIFY_GROUPS leaves out the other one may take all the same."""
    chosen = machine.environment(True, "") | {"INTEL_ITTNOTIFY_GROUPS": "sync"}
    _, events, calls = machine.recorded(PROGRAM, (), chosen)
    names = {event.name for event in events}
    if "syncline_itt:sync" not in names or "syncline_itt:task_begin" in names:
        yield f"with the group `sync` ours has {sorted(names)}"
    if not any(line.startswith("task_begin ") for line in calls):
        yield "with the group `sync` the other one, which has all, got no task"


def check_every_function(machine, rows):
    names = sorted(rows)
    _, alone = machine.alone(EVERY, names, "")
    assert len(alone) > 90, alone
    said, events, calls = machine.recorded(EVERY, names, machine.environment(True, ""))
    yield from differences(
        "every function, the other's", collections.Counter(alone), collections.Counter(calls)
    )
    if alone != calls and sorted(alone) == sorted(calls):
        yield "every function: the other's calls come in another order"
    yield from contradictions(rows, said, events, both=True)


def main():
    lttng_fixture.enter_namespaces()
    rows = rows_by_function()
    machine = Machine(sys.argv[1])
    wrong = []
    try:
        machine.fixture.start_daemon()
        _, events, _ = machine.recorded(PROGRAM, (), {})
        own = counts(events)
        assert own["syncline_itt:task_begin", ""] > 1000, own
        for option in OTHERS:
            wrong += check_program(machine, own, option)
        wrong += check_preloaded(machine)
        wrong += check_groups(machine)
        wrong += check_every_function(machine, rows)
    finally:
        machine.fixture.close()
    print("\n".join(wrong) or "each collector gets what it gets alone")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
