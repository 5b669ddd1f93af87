# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel of next to nothing, whose rank 1 stands still when it is told to.

It is told by files in the working directory: while `stand` is there it waits for a lock before its
step; while `slow` is there it works on and on before its step; when `hold` is there it stays in a
call of C's that keeps Python's interpreter locked.
"""

import ctypes
import os
import threading
import time

import torch
import torch.distributed as dist

HOLD_S = 20


def read_batch(lock):
    while os.path.exists("stand"):
        lock.acquire(timeout=0.2)
    while os.path.exists("slow"):
        torch.ones(4, 8).sum()
        lock.acquire(timeout=0.05)
    return torch.ones(4, 8)


def hold():
    with open("held", "w", encoding="ascii"):
        pass
    ctypes.PyDLL(None).sleep(HOLD_S)


def idle(event):
    event.wait()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    # A transfer counts in Gloo's own numbers, not in those of its collectives.
    if dist.get_rank() == 0:
        dist.send(torch.ones(1), 1)
    else:
        dist.recv(torch.ones(1), 0)
    for number in range(3):
        name = f"idle-{number}"
        threading.Thread(target=idle, args=(threading.Event(),), name=name, daemon=True).start()
    network = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(network.parameters(), 0.01)
    lock = threading.Lock()
    lock.acquire()
    step = 0
    while True:
        step += 1
        batch = read_batch(lock)
        network(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 20 == 0:
            print(f"step {step}:", flush=True)
        if os.path.exists("hold"):
            hold()
        with open("steps", "w", encoding="ascii") as file:
            file.write(str(step))
        time.sleep(0.01)


if __name__ == "__main__":
    main()
