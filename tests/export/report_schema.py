# SPDX-License-Identifier: Apache-2.0
"""report_schema.py SYNCLINE SCHEMA RUN...: what `syncline report --json` prints is what its schema
says, neither less nor more; and the schema notices a key that is gone and a type that is another.

Readers must ignore keys that they do not know. Here unknown keys are errors: a key that is added
has to be described.
"""

import copy
import json
import subprocess
import sys

from jsonschema import Draft202012Validator
from schemas import closed, errors


def spoilt(report):
    """Reports that are wrong in one place each."""
    of_whom = "processes" if report["nodes"][0]["processes"] else "profiles"
    for path, wrong in [
        (["format_version"], 2),
        (["nodes", 0, "events"], "12"),
        (["nodes", 0, of_whom, 0, "pid"], None),
        (["window", "begin_ns"], 0.5),
        (["messages", "matched"], []),
        (["a_key_that_nobody_described"], 1),
    ]:
        copied = copy.deepcopy(report)
        place = copied
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = wrong
        yield path, copied
    for key in report:
        if key != "only_events":
            yield [key], {name: value for name, value in report.items() if name != key}


def main():
    syncline, schema, *runs = sys.argv[1:]
    with open(schema, encoding="utf-8") as file:
        schema = json.load(file)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(closed(schema))
    for run in runs:
        printed = subprocess.run([syncline, "report", run, "--json"], capture_output=True,
                                 text=True, check=False)
        assert printed.returncode in (0, 3), printed.stderr
        report = json.loads(printed.stdout)
        assert not errors(validator, report), "\n".join(errors(validator, report)[:20])
        for path, wrong in spoilt(report):
            assert errors(validator, wrong), f"not noticed: {path}"
        print(f"{run}: {len(printed.stdout)} bytes, as the schema says")


main()
