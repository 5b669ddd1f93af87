# SPDX-License-Identifier: Apache-2.0
"""slow_rank.py RANK MS SCRIPT: runs the script; on that rank each step first sleeps.

For as many ms as the file slow_ms says, once there is one.
"""

import os
import runpy
import sys
import time

import torch


def main():
    rank, milliseconds, script = sys.argv[1:4]
    if os.environ.get("RANK") == rank:
        forward = torch.nn.parallel.DistributedDataParallel.forward

        def slow(self, *inputs, **named):
            try:
                with open("slow_ms", encoding="utf-8") as file:
                    time.sleep(int(file.read()) / 1000)
            except FileNotFoundError:
                time.sleep(int(milliseconds) / 1000)
            return forward(self, *inputs, **named)

        torch.nn.parallel.DistributedDataParallel.forward = slow
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    sys.argv = sys.argv[3:]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
