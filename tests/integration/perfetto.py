# SPDX-License-Identifier: Apache-2.0
"""Asks Perfetto's own engine what it makes of a timeline: SQL over the trace, through node.

The engine is not part of this repository: SYNCLINE_TRACE_PROCESSOR names its query.mjs. Where it is
missing the tests that need it are skipped, and say so.
"""

import os
import shutil
import subprocess

import pytest

from tests.testbed.machine import REPOSITORY

DEFAULT = os.path.join(
    os.path.dirname(REPOSITORY), "shared", "tools", "trace_processor", "query.mjs"
)


def query(trace, sql):
    """Rows of one query as lists of strings."""
    script = os.environ.get("SYNCLINE_TRACE_PROCESSOR", DEFAULT)
    if not shutil.which("node") or not os.path.exists(script):
        pytest.skip(
            "no Perfetto engine: name its query.mjs in SYNCLINE_TRACE_PROCESSOR, and install node"
        )
    result = subprocess.run(
        ["node", script, trace, sql], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return [line.split("\t") for line in result.stdout.splitlines()[1:] if line]
