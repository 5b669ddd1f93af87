# SPDX-License-Identifier: Apache-2.0
"""Two or more ranks train one small network on images of digits: DistributedDataParallel over Gloo.

An ordinary PyTorch script that knows nothing of Syncline. It wants what every launcher sets: RANK,
WORLD_SIZE, MASTER_ADDR, MASTER_PORT (and GLOO_SOCKET_IFNAME on machines with several networks).
"""

import argparse
import time

import numpy as np
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH_SIZE = 64
SYNC_EVERY = 50  # steps between looks at whether all ranks are done


def load_images():
    """scikit-learn's bundled digits: (train images, train labels, test images, test labels)."""
    digits = load_digits()
    images = np.kron(digits.images / 16.0, np.ones((1, 2, 2)))[:, np.newaxis].astype(np.float32)
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = torch.from_numpy(images[order]), torch.from_numpy(digits.target[order])
    return images[:1500], labels[:1500], images[1500:], labels[1500:]


def make_network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 4 * 4, 10),
    )


def out_of_time(begin, seconds):
    """The same answer on every rank: one that stopped alone would leave the others waiting."""
    over = torch.tensor(float(bool(seconds) and time.monotonic() - begin >= seconds))
    dist.all_reduce(over, op=dist.ReduceOp.MAX)
    return bool(over)


def train(network, options):
    train_images, train_labels, test_images, test_labels = load_images()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    generator = torch.Generator().manual_seed(dist.get_rank())
    begin, step, done = time.monotonic(), 0, False
    while not done:
        chosen = torch.randint(len(train_labels), (BATCH_SIZE,), generator=generator)
        optimizer.zero_grad()
        loss = loss_of(network(train_images[chosen]), train_labels[chosen])
        loss.backward()
        optimizer.step()
        step += 1
        if step % SYNC_EVERY == 0:
            done = out_of_time(begin, options.seconds)
        done = done or step == options.steps
        if step % options.report_every == 0 or done:
            with torch.no_grad():
                right = (network.module(test_images).argmax(1) == test_labels).float().mean().item()
            print(
                f"rank {dist.get_rank()}, step {step}: loss {loss.item():.4f}, "
                f"accuracy {100 * right:.1f} % of "
                f"{len(test_labels)} unseen digits, "
                f"{step / (time.monotonic() - begin):.1f} steps/s",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=0, help="end after this many steps")
    parser.add_argument(
        "--seconds", type=float, default=0, help="end after about this time; default: never"
    )
    parser.add_argument("--report-every", type=int, default=100, metavar="STEPS")
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    train(DistributedDataParallel(make_network()), options)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
