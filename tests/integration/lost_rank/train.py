# SPDX-License-Identifier: Apache-2.0
"""Ranks that meet in a collective again and again, until one of them comes no more.

Rank 1 ends before its next collective, with exit code 4, when there is a file `leave` in the
working directory. The others catch what Gloo says of that, and wait for ever, as a program does
that tries to save its state first.
"""

import os
import threading
import time

import torch
import torch.distributed as dist


def wait_for_ever():
    threading.Event().wait()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    tensor = torch.ones(8)
    step = 0
    while True:
        step += 1
        if dist.get_rank() == 1 and os.path.exists("leave"):
            raise SystemExit(4)
        try:
            dist.all_reduce(tensor)
        except RuntimeError as error:
            print(f"left alone: {error}", flush=True)
            wait_for_ever()
        if step % 20 == 0:
            print(f"step {step}:", flush=True)
        time.sleep(0.02)


if __name__ == "__main__":
    main()
