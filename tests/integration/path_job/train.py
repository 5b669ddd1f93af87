# SPDX-License-Identifier: Apache-2.0
"""Two ranks that wait for each other twice in each step, for as long as they are told to.

A step: each rank's data loader sleeps and all reduce a small tensor; each rank sleeps and all
reduce again; then they step an optimizer. How long they sleep, and whether a large tensor is
reduced behind that, the file `phases` says, which is read again now and then:

  FIRST_OF_RANK_0 SECOND_OF_RANK_0 FIRST_OF_RANK_1 SECOND_OF_RANK_1 MEGABYTES HOW

The first four are milliseconds. With HOW 1 they are the stages of a pipeline instead: behind its
loader rank 0 sends to rank 1, which sleeps and sends back. With 2 the first collective is a
broadcast. With 3 it is no operator that takes a rank's second time: the program is blocked in the
kernel meanwhile (block.c). With 4 they also reduce 18 small tensors, one after the other; with 5
the same as one. With 6 rank 0 is silent for 20 ms behind the last collective. With 7 both are
silent for 10 ms beside the second one, before they wait for it. A line on standard
output is the ranks' own count: the mode and how long its steps took, by their own clock.
"""

import ctypes
import os
import time

import torch
import torch.distributed as dist

EVERY = 20  # steps to a line
PIPELINE, BROADCAST, BLOCKED, EACH, JOINED, SILENT, BESIDE = 1, 2, 3, 4, 5, 6, 7
HERE = os.path.dirname(os.path.abspath(__file__))


def told():
    with open(os.path.join(HERE, "phases"), encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


class Batches(torch.utils.data.IterableDataset):
    """Batches that come from slow storage."""

    def __init__(self):
        self.seconds = 0.0

    def __iter__(self):
        while True:
            time.sleep(self.seconds)
            yield torch.ones(256)


class Sleep(torch.autograd.Function):
    """An operator that takes its time."""

    @staticmethod
    def forward(ctx, values, seconds):
        time.sleep(seconds)
        return values.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def block(milliseconds):
    library = ctypes.CDLL(os.path.join(HERE, "block.so"))
    assert library.block(milliseconds) == 0


def pass_on(rank, batch, seconds):
    if rank == 0:
        dist.send(batch, 1)
        dist.recv(batch, 1)
    else:
        dist.recv(batch, 0)
        dist.send(Sleep.apply(batch, seconds), 0)


def reduce_small(gradients, joined):
    if joined:
        gradients = [torch.cat(gradients)]
    for gradient in gradients:
        dist.all_reduce(gradient)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    batches = Batches()
    loader = iter(torch.utils.data.DataLoader(batches, batch_size=None))
    weights = torch.nn.Parameter(torch.zeros(256))
    gradients = [torch.ones(64 << (i % 6)) for i in range(18)]
    optimizer = torch.optim.SGD([weights], lr=0.1)
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
        batches.seconds = int(phases[2 * rank]) / 1e3
        small = next(loader)
        seconds = int(phases[2 * rank + 1]) / 1e3
        if phases[5] == PIPELINE:
            pass_on(rank, small, seconds)
        else:
            if phases[5] == BROADCAST:
                dist.broadcast(small, 0)
            else:
                dist.all_reduce(small)
            if phases[5] == BLOCKED:
                block(int(phases[2 * rank + 1]))
            else:
                Sleep.apply(small, seconds)
            second = dist.all_reduce(small, async_op=True)
            if phases[5] == BESIDE:
                time.sleep(0.01)
            second.wait()
        if phases[4] > 0:
            dist.all_reduce(large)
        if phases[5] in (EACH, JOINED):
            reduce_small(gradients, phases[5] == JOINED)
        if phases[5] == SILENT and rank == 0:
            time.sleep(0.02)
        weights.grad = torch.zeros(256)
        optimizer.step()
        step += 1


if __name__ == "__main__":
    main()
