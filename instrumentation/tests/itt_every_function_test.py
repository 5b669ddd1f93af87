# SPDX-License-Identifier: Apache-2.0
"""Calls every ITT function while it is recorded, and compares the events that each call leaves with
what instrumentation/itt/functions.txt (and with it docs/itt.md) says that it does.

Usage: itt_every_function_test.py BUILD_DIRECTORY
"""

import os
import sys

import lttng_fixture

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "..", "itt"))

import table  # noqa: E402  (after the path is set)

# Written when a name is used, not when it is made.
ANNOUNCED = {"syncline:name", "syncline:thread"}


def record(fixture, names):
    """(what the program says, events in order)."""
    fixture.start_daemon()
    process = fixture.start(*names, program="tests/itt_every_function", registered=True)
    fixture.wait_for_blocks()
    session = fixture.begin_session()
    fixture.set_gates(1)
    said, errors = process.communicate("go\n", timeout=60)
    assert process.returncode == 0 and not errors, f"{process.returncode}: {errors}"
    events, discarded = fixture.end_session(session)
    assert discarded == 0
    return said, events


def compare(row, function, said, events, both):
    """What contradicts the row; `said` is the program's word of the call. `both`: another collector
    binds functions, too."""
    if said[0] in ("unbound", "unknown"):
        expected = row.events == [table.UNBOUND]
        if said[0] == "unknown":
            yield f"{function}: is bound, and not called here"
        elif not expected:
            yield f"{function}: is not bound"
        return
    if row.events == [table.UNBOUND] and not both:
        yield f"{function}: is bound"
        return
    before, after = map(int, said)
    inside = {event.name for event in events if before <= event.time_ns <= after}
    found = {name.removeprefix("syncline_itt:") for name in inside} - {"syncline:on"}
    listed = set(row.events) - {table.SILENT, table.UNBOUND}
    if not found - ANNOUNCED <= listed:
        yield f"{function}: leaves {sorted(found - ANNOUNCED)}, the table says {row.events}"
    if listed - ANNOUNCED and not found & listed:
        yield f"{function}: leaves nothing, the table says {row.events}"


def rows_by_function():
    """The table's rows, by the names that collectors know."""
    return {binding: row for row in table.rows() for binding in row.bindings}


def contradictions(rows, said, events, both=False):
    """Of the table with what the program said, and what was recorded."""
    words = {line.split()[0]: line.split()[1:] for line in said.splitlines()}
    assert set(words) == set(rows), set(words) ^ set(rows)
    for function, row in rows.items():
        yield from compare(row, function, words[function], events, both)


def main():
    lttng_fixture.enter_namespaces()
    rows = rows_by_function()
    fixture = lttng_fixture.Fixture(sys.argv[1])
    try:
        said, events = record(fixture, sorted(rows))
    finally:
        fixture.close()
    wrong = list(contradictions(rows, said, events))
    print("\n".join(wrong) or f"{len(rows)} functions leave what the table says")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
