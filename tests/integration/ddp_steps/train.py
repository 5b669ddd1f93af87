# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel of next to nothing: one all-reduce a step, and a diary of the steps.

A line for each step: its number, and CLOCK_MONOTONIC_RAW before backward (which asks for the
all-reduce) and behind it (which waits for it).
"""

import sys
import time

import torch
import torch.distributed as dist


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    network = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(network.parameters(), 0.01)
    batch = torch.ones(4, 8)
    step = 0
    with open(sys.argv[1], "w", buffering=1, encoding="ascii") as diary:
        while True:
            step += 1
            loss = network(batch).sum()
            begin_ns = now_ns()
            loss.backward()
            diary.write(f"{step} {begin_ns} {now_ns()}\n")
            optimizer.step()
            optimizer.zero_grad()
            if step % 100 == 0:
                print(f"step {step}:", flush=True)
            # Trainings have larger steps: without a pause this is a test of buffers.
            time.sleep(0.001)


if __name__ == "__main__":
    main()
