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

# From slices to the thread and process that they are of (export/perfetto/track_tree.h).
OF_THREADS = (
    "join track on track.id = slice.track_id "
    "join thread on thread.tid = extract_arg(track.source_arg_set_id, 'trace_id') "
    "join process using (upid)"
)
# Timeline time 0, in the file's time.
ZERO = "(select min(ts) from slice where name = 'T' and category = 'timeline')"


def of_node(node):
    """Condition: the process is this node's. It is called "rank 0 · NODE · ..." or "NODE · ..."."""
    return f"'· ' || process.name like '%· {node} · %'"


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
