# SPDX-License-Identifier: Apache-2.0
"""The job of `syncline selftest`: every rank does the same work, until one of them is told not to.

DistributedDataParallel over Gloo trains a small network on random images, on CPUs. Knows nothing of
Syncline. Wants what every launcher sets: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT (and
GLOO_SOCKET_IFNAME on machines with several networks).

Once a step each rank reads the file SWITCH. Where it holds "RANK MILLISECONDS", the data loader of
that rank takes so much longer for a batch, by the rank's own clock, as slow storage would.
"""

import argparse
import ctypes
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, SequentialSampler

BATCH_SIZE = 32
BATCHES = 10**6  # as good as no end, so that no step has the work of a new epoch
PR_SET_PDEATHSIG = 1
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
SPIN_NS = 1_000_000  # a sleep ends late: the last of it is waited for


def delay_ns(switch, rank):
    """What `switch` asks of this rank; 0 where there is no such file, or it is being written."""
    try:
        with open(switch, encoding="ascii") as file:
            who, milliseconds = file.read().split()
        return round(float(milliseconds) * 1e6) if int(who) == rank else 0
    except (OSError, ValueError):
        return 0


def wait_ns(duration_ns):
    """So long by the monotonic clock, to some microseconds."""
    end = time.monotonic_ns() + duration_ns
    if duration_ns > SPIN_NS:
        time.sleep((duration_ns - SPIN_NS) / 1e9)
    while time.monotonic_ns() < end:
        pass


class Images(Dataset):
    """The same random images on every rank, and storage that can be slow."""

    def __init__(self, switch, rank):
        self._switch, self._rank = switch, rank
        generator = torch.Generator().manual_seed(0)
        self._images = torch.rand(BATCH_SIZE, 1, 32, 32, generator=generator)
        self._labels = torch.randint(10, (BATCH_SIZE,), generator=generator)

    def __len__(self):
        return BATCH_SIZE * BATCHES

    def __getitems__(self, indices):
        delay = delay_ns(self._switch, self._rank)
        if delay:
            wait_ns(delay)
        return [(self._images[at % BATCH_SIZE], self._labels[at % BATCH_SIZE]) for at in indices]


def ends_with(parent):
    """The kernel ends this process when its parent ends; False: that has happened already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    return os.getppid() == parent


def keep_memory():
    """What is freed stays: else it is chance how much of it each rank gets anew from the kernel."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
        mallopt(M_MMAP_THRESHOLD, 2**25)


def network():
    return nn.Sequential(
        *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(4)),
        *(nn.Flatten(), nn.Linear(48 * 16, 128), nn.ReLU(), nn.Linear(128, 10)),
    )


def train(options):
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = nn.CrossEntropyLoss()
    dataset = Images(options.switch, rank)
    loader = DataLoader(dataset, batch_size=BATCH_SIZE, sampler=SequentialSampler(dataset))
    end = time.monotonic() + 60 * options.minutes
    begin = time.monotonic()
    for step, (images, labels) in enumerate(loader, 1):
        optimizer.zero_grad()
        loss = loss_of(model(images), labels)
        loss.backward()
        optimizer.step()
        if step % options.report_every == 0:
            now = time.monotonic()
            took_ms = (now - begin) * 1000 / options.report_every
            print(f"rank {rank}, step {step}: {took_ms:.1f} ms a step", flush=True)
            begin = now
            if now > end:
                return  # whoever started it is gone


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--switch", default="switch", help="the file (default: switch)")
    parser.add_argument("--minutes", type=float, default=15, help="it ends then (default 15)")
    parser.add_argument("--parent", type=int, metavar="PID", help="it ends with this parent, too")
    parser.add_argument("--report-every", type=int, default=20, metavar="STEPS")
    options = parser.parse_args()
    if options.parent and not ends_with(options.parent):
        sys.exit(f"{options.parent} is not the parent: it ended, or --python names a wrapper")
    keep_memory()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    train(options)


if __name__ == "__main__":
    main()
