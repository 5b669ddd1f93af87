# SPDX-License-Identifier: Apache-2.0
"""report_comparison_schema.py SYNCLINE SCHEMA RUN OTHER...: what `syncline report --against --json`
prints is what its schema says, neither less nor more; a recording compared with itself has not
changed; and with another one of other ranks it is refused.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

from jsonschema import Draft202012Validator
from schemas import closed, errors


def compare(syncline, validator, now, before):
    printed = subprocess.run([syncline, "report", now, "--against", before, "--json"],
                             capture_output=True, text=True, check=False)
    assert printed.returncode in (0, 3), printed.stderr
    comparison = json.loads(printed.stdout)
    wrong = errors(validator, comparison)
    assert not wrong, "\n".join(wrong[:20])
    assert (printed.returncode == 0) == (comparison["status"] == "compared")
    return comparison


def main():
    syncline, schema, run, other, *same = sys.argv[1:]
    with open(schema, encoding="utf-8") as file:
        schema = json.load(file)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(closed(schema))
    for one in [run, *same]:
        with tempfile.TemporaryDirectory() as folder:  # itself is refused
            copy = shutil.copytree(one, os.path.join(folder, "copy"))
            comparison = compare(syncline, validator, one, copy)
        assert comparison["status"] != "refused", comparison["message"]
        assert comparison["rows"], one
        assert all(row["state"] == "not_changed" for row in comparison["rows"]), one
        assert all(row["before_ns"] == row["now_ns"] for row in comparison["rows"]), one
        assert not any(step["changed"] for step in comparison["steps"]), one
        print(f"{one}: {len(comparison['rows'])} rows, per {comparison['per']}, none changed")
        # A key that is gone is noticed.
        for key in comparison:
            spoilt = {name: value for name, value in comparison.items() if name != key}
            assert list(validator.iter_errors(spoilt)), f"not noticed: {key}"
    refused = compare(syncline, validator, run, other)
    assert refused["status"] == "refused" and refused["reason"] == "other_ranks", refused["message"]
    assert refused["period"] is None and not refused["rows"]


main()
