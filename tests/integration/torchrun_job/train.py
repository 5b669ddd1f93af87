# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel with a data loader of two workers; nothing about how it was started."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset


class Batches(IterableDataset):
    """For ever: the workers stay."""

    def __iter__(self):
        while True:
            yield torch.ones(64)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    network = DistributedDataParallel(torch.nn.Linear(64, 8))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001)
    for step, batch in enumerate(DataLoader(Batches(), batch_size=16, num_workers=2)):
        optimizer.zero_grad()
        network(batch).square().mean().backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"rank {dist.get_rank()}, step {step}:", flush=True)


if __name__ == "__main__":
    main()
