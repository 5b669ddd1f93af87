# SPDX-License-Identifier: Apache-2.0
"""Two or more ranks train one network on images of digits, and one of them can be given a fault.

DistributedDataParallel over Gloo, batches from a DataLoader. Knows nothing of Syncline. It wants
what every launcher sets: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT (and GLOO_SOCKET_IFNAME on
machines with several networks), and trains until it is ended.

Faults that hold a rank up (--dose is milliseconds a step):
  loader      its data loader is slow: it waits for storage (or computes, with --loader-computes)
  gc          it collects garbage every --gc-every steps, and has many objects alive
  storage     it reads --data, a large file on a disk, past what memory holds of it (or has it
              mapped, with --mapped)
  callback    its own code between two steps takes longer: it waits (or computes in Python, with
              --callback-computes)
  checkpoint  it saves its network every --stall-every steps, as long as that takes
  evaluation  it evaluates every --stall-every steps
  sleep       one of its operators sleeps
  denormal    one of its operators takes square roots of numbers so small that processors are slow
SIGUSR1 takes the fault away, a second one gives it back, and so on.
What looks like one of them, and is not:
  prefetched  its data loader is as slow, but a worker loads ahead: nobody waits for it
  batch       its batches are larger (--dose is a factor, e.g. 1.25)
"""

import argparse
import contextlib
import gc
import mmap
import os
import signal
import tempfile
import time

import numpy as np
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, RandomSampler

BATCH_SIZE = 160
FAULTS = (
    *("none", "loader", "gc", "storage", "callback", "checkpoint", "evaluation"),
    *("prefetched", "batch", "sleep", "denormal"),
)
ENDLESS = 10**9  # samples: as good as no end, so that no step has the work of a new epoch


class Switch:
    """Whether the fault is there."""

    def __init__(self):
        self.on = True
        signal.signal(signal.SIGUSR1, self._turn)

    def _turn(self, *_):
        self.on = not self.on


class Digits(Dataset):
    """scikit-learn's bundled digits. A batch may take its time, as it would from slow storage."""

    def __init__(self, slow_s=0.0, computes=False, switch=None):
        digits = load_digits()
        images = np.kron(digits.images / 16.0, np.ones((1, 2, 2)))[:, np.newaxis]
        self._pixels = images.astype(np.float32)
        self._images = torch.from_numpy(self._pixels)
        self._labels = torch.from_numpy(digits.target)
        self._slow_s, self._computes, self._switch = slow_s, computes, switch

    def __len__(self):
        return len(self._labels)

    def __getitems__(self, indices):
        slow_s = self._slow_s if self._switch is None or self._switch.on else 0.0
        if self._computes:
            end = time.thread_time() + slow_s
            while time.thread_time() < end:
                np.sort(self._pixels[indices[0]], axis=None)  # decoding, augmentation, ...
        elif slow_s:
            time.sleep(slow_s)
        return [(self._images[index], self._labels[index]) for index in indices]


class Pass(torch.autograd.Function):
    """An operator of the network that changes nothing, and may sleep."""

    @staticmethod
    def forward(ctx, values, sleep_s):
        if sleep_s:
            time.sleep(sleep_s)
        return values.view_as(values)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Roots:
    """Square roots on every rank, of as many numbers; on one rank these may be denormal."""

    USUAL, SMALL = 1.0, 1e-39

    def __init__(self, slow_s, source):
        count = torch.tensor([self._count_for(slow_s) if slow_s else 0])
        dist.broadcast(count, source)
        self._usual = torch.full((int(count),), self.USUAL)
        self._given = torch.full((int(count),), self.SMALL if slow_s else self.USUAL)

    def _count_for(self, slow_s):
        """How many take so much longer if they are small."""
        count = 1 << 14
        small, usual = (torch.full((count,), value) for value in (self.SMALL, self.USUAL))

        def once(values):
            begin = time.thread_time()
            torch.sqrt(values)
            return time.thread_time() - begin

        longer_s = min(once(small) for _ in range(20)) - min(once(usual) for _ in range(20))
        return max(1, round(count * slow_s / max(longer_s, 1e-6)))

    def run(self, faulty):
        torch.sqrt(self._given if faulty else self._usual)


class Network(nn.Module):
    def __init__(self, sleep_s, switch):
        super().__init__()
        self.sleep_s, self.switch = sleep_s, switch
        self.first = nn.Sequential(nn.Conv2d(1, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.second = nn.Sequential(nn.Conv2d(48, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(nn.Linear(64 * 4 * 4, 256), nn.ReLU(), nn.Linear(256, 10))

    def forward(self, images):
        features = Pass.apply(self.first(images), self.sleep_s if self.switch.on else 0.0)
        return self.classifier(torch.flatten(self.second(features), 1))


class Garbage:
    """Objects that stay alive, so many that a full collection takes `collection_s`."""

    def __init__(self, collection_s):
        gc.collect()
        gc.freeze()  # only what comes now is looked through: the dose is ours
        self._kept = [[None] for _ in range(20_000)]
        while (took_s := self._collection_s()) < 0.97 * collection_s:
            count = len(self._kept)
            more = round(count * (collection_s - took_s) / took_s) + 1000
            # Few objects lie in the cache and say little of many: at most twice as many at a time.
            self._kept.extend([None] for _ in range(min(more, count)))

    def _collection_s(self):
        def once():
            begin = time.thread_time()
            gc.collect()
            return time.thread_time() - begin

        return min(once() for _ in range(3))


class Storage:
    """Reads a large file past what memory holds of it: whoever does that waits for the disk."""

    PIECE = 2**18

    def __init__(self, path, mapped):
        self._mapped = mapped
        self._file = os.open(path, os.O_RDONLY if mapped else os.O_RDONLY | os.O_DIRECT)
        self._pieces = os.fstat(self._file).st_size // self.PIECE
        self._buffer = mmap.mmap(-1, self.PIECE)  # O_DIRECT wants it at a page's begin
        if mapped:
            self._map = mmap.mmap(self._file, 0, prot=mmap.PROT_READ)
            self._map.madvise(mmap.MADV_RANDOM)  # one page at a time
            os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_DONTNEED)
        self._next = 0

    def _read(self):
        begin = self._next % self._pieces * self.PIECE
        self._next += 1
        if not self._mapped:
            return os.preadv(self._file, [self._buffer], begin)
        self._map.madvise(mmap.MADV_DONTNEED, begin, self.PIECE)
        os.posix_fadvise(self._file, begin, self.PIECE, os.POSIX_FADV_DONTNEED)
        return sum(self._map[at] for at in range(begin, begin + self.PIECE, mmap.PAGESIZE))

    def read_for(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._read()


class Callback:
    """What a program does between two steps: logging, metrics, a checkpoint."""

    def __init__(self, slow_s, computes):
        self._slow_s, self._computes = slow_s, computes

    def after_step(self):
        if self._computes:
            end, numbers = time.thread_time() + self._slow_s, 0
            while time.thread_time() < end:
                numbers += 1
        elif self._slow_s:
            time.sleep(self._slow_s)


class Checkpoint:
    """Saves a network now and then, `slow_s` long."""

    def __init__(self, network, slow_s):
        self._network, self._slow_s = network, slow_s

    def run(self):
        end = time.monotonic() + self._slow_s
        with tempfile.TemporaryFile() as file:
            while time.monotonic() < end:
                file.seek(0)
                torch.save(self._network.state_dict(), file)
                file.flush()
                os.fsync(file.fileno())


class Evaluation:
    """Looks now and then how good a network is, `slow_s` long."""

    def __init__(self, network, slow_s):
        self._network, self._slow_s = network, slow_s
        self._loader = DataLoader(Digits(), batch_size=BATCH_SIZE)

    def run(self):
        end = time.monotonic() + self._slow_s
        while True:
            with torch.no_grad():
                for images, _ in self._loader:
                    getattr(self._network, "module", self._network)(images)
                    if time.monotonic() >= end:
                        return


def sharded(network):
    """Each rank holds a part of the parameters, and gets the others where it needs them (FSDP)."""
    for layer in (network.first, network.second, network.classifier):
        fully_shard(layer)
    return fully_shard(network)


def learn(network, loss_of, images, labels, pieces):
    """The gradient of a batch, which is computed in so many pieces; the ranks meet in the last."""
    parts = list(zip(images.chunk(pieces), labels.chunk(pieces)))
    for number, (some, their_labels) in enumerate(parts, 1):
        last = number == len(parts)
        with contextlib.nullcontext() if last else network.no_sync():
            loss = loss_of(network(some), their_labels) / len(parts)
            loss.backward()
    return loss * len(parts)


def train(network, options, dose_s, switch):
    """Trains for ever; dose_s: {fault: seconds a step}, of this rank."""
    dataset = Digits(dose_s["loader"] or dose_s["prefetched"], options.loader_computes, switch)
    batch_size = round(BATCH_SIZE * options.dose) if dose_s["batch"] else BATCH_SIZE
    ahead = options.fault == "prefetched"  # on every rank: they differ in how slow it is
    torch.manual_seed(dist.get_rank())
    loader = DataLoader(
        dataset,
        batch_size=batch_size,
        sampler=RandomSampler(dataset, replacement=True, num_samples=ENDLESS),
        num_workers=int(ahead),
        persistent_workers=ahead,
    )
    optimizer = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    garbage = Garbage(dose_s["gc"] * options.gc_every) if dose_s["gc"] else None
    storage = Storage(options.data, options.mapped) if dose_s["storage"] else None
    callback = Callback(dose_s["callback"], options.callback_computes)
    roots = Roots(dose_s["denormal"], options.fault_rank) if options.fault == "denormal" else None
    stall_s = dose_s["checkpoint"] or dose_s["evaluation"]
    kind = Checkpoint if dose_s["checkpoint"] else Evaluation
    stall = kind(network, stall_s * options.stall_every) if stall_s else None
    dist.barrier()
    begin = time.monotonic()
    for step, (images, labels) in enumerate(loader, 1):
        if storage and switch.on:
            storage.read_for(dose_s["storage"])
        if roots:
            roots.run(switch.on)
        optimizer.zero_grad()
        loss = learn(network, loss_of, images, labels, options.pieces)
        optimizer.step()
        if switch.on:
            callback.after_step()
        if garbage and switch.on and step % options.gc_every == 0:
            gc.collect()
        if stall and switch.on and step % options.stall_every == 0:
            stall.run()
        if step % options.report_every == 0:
            now = time.monotonic()
            took_ms = (now - begin) * 1000 / options.report_every
            begin = now
            print(
                f"rank {dist.get_rank()}, step {step}: loss {loss.item():.4f}, "
                f"{took_ms:.1f} ms a step",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fault", choices=FAULTS, default="none")
    parser.add_argument("--fault-rank", type=int, default=1, help="who has it (default 1)")
    parser.add_argument("--dose", type=float, default=0, help="how much of it, see above")
    parser.add_argument("--loader-computes", action="store_true", help="it does not wait, it works")
    parser.add_argument("--callback-computes", action="store_true", help="likewise")
    parser.add_argument("--gc-every", type=int, default=2, metavar="STEPS")
    parser.add_argument("--stall-every", type=int, default=40, metavar="STEPS")
    parser.add_argument("--data", metavar="FILE", help="storage: what it reads, 256 KiB or more")
    parser.add_argument("--mapped", action="store_true", help="storage: by a map, not by reading")
    parser.add_argument("--sharded", action="store_true", help="by FSDP, not by DDP")
    parser.add_argument(
        "--pieces", type=int, default=1, help="of a batch, whose gradients add up (default 1)"
    )
    parser.add_argument("--threads", type=int, default=1, help="that compute (default 1)")
    parser.add_argument("--report-every", type=int, default=100, metavar="STEPS")
    options = parser.parse_args()
    if options.fault != "none" and options.dose <= 0:
        parser.error("--fault needs a --dose above 0")
    if options.fault == "storage" and not options.data:
        parser.error("--fault storage needs --data")
    if options.sharded and (options.pieces > 1 or options.fault in ("checkpoint", "evaluation")):
        parser.error("--sharded: no --pieces, no checkpoint or evaluation of one rank")
    mine = int(os.environ["RANK"]) == options.fault_rank
    dose_s = {
        fault: options.dose / 1000 if mine and fault == options.fault else 0.0 for fault in FAULTS
    }
    torch.set_num_threads(options.threads)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    switch = Switch()
    network = Network(dose_s["sleep"] / options.pieces, switch)
    network = sharded(network) if options.sharded else DistributedDataParallel(network)
    train(network, options, dose_s, switch)


if __name__ == "__main__":
    main()
