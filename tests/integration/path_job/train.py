# SPDX-License-Identifier: Apache-2.0
"""Two ranks that wait for each other twice in each step, for as long as they are told to.

A step: each rank sleeps and all reduce a small tensor; each sleeps again and all reduce again; then
they step an optimizer. How long they sleep, and whether a large tensor is reduced behind that, the
file `phases` says, which is read again before each step:

  FIRST_OF_RANK_0 SECOND_OF_RANK_0 FIRST_OF_RANK_1 SECOND_OF_RANK_1 MEGABYTES

The first four are milliseconds. A line on standard output is the ranks' own count: the mode and how
long its steps took, by their own clock.
"""

import os
import time

import torch
import torch.distributed as dist

EVERY = 20  # steps to a line
HERE = os.path.dirname(os.path.abspath(__file__))


def told():
    with open(os.path.join(HERE, "phases"), encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


class Sleep(torch.autograd.Function):
    """An operator that takes its time."""

    @staticmethod
    def forward(ctx, values, seconds):
        time.sleep(seconds)
        return values.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    weights = torch.nn.Parameter(torch.zeros(256))
    optimizer = torch.optim.SGD([weights], lr=0.1)
    small = torch.ones(256)
    phases = torch.tensor(told())
    begin = time.monotonic()
    step = 0
    while True:
        # Both of one mind, and not between the ends of two steps that are compared.
        if step % EVERY == 0:
            now = torch.tensor(told())
            dist.broadcast(now, 0)
            lasted_ms = (time.monotonic() - begin) / EVERY * 1e3
            if rank == 0 and step > 0 and torch.equal(now, phases):
                print(f"step {step}: {lasted_ms:.3f} ms", flush=True)
            phases, begin = now, time.monotonic()
            large = torch.ones(max(1, int(phases[4]) * 250_000))
        for phase in range(2):
            Sleep.apply(small, int(phases[2 * rank + phase]) / 1e3)
            dist.all_reduce(small)
        if phases[4] > 0:
            dist.all_reduce(large)
        weights.grad = torch.zeros(256)
        optimizer.step()
        step += 1


if __name__ == "__main__":
    main()
