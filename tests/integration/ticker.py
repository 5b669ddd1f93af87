# SPDX-License-Identifier: Apache-2.0
"""A small job to record on a simulated host: nested ITT marks, 200 a second, until it is ended."""

import sys
import time

import ittapi

print("ticking", flush=True)
while True:
    with ittapi.task("tick", domain="ticker"):
        with ittapi.task("inner", domain="ticker"):
            time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0.005)
