# SPDX-License-Identifier: Apache-2.0
"""Two ranks train one network in two stages: a pipeline of sends and receives over Gloo.

An ordinary PyTorch script that knows nothing of Syncline. Each step passes a few micro-batches
forward, all in flight at once, and their gradients back, accumulated before the optimizer's step;
a second process group carries the stages' losses. It wants what every launcher sets: RANK,
WORLD_SIZE (2), MASTER_ADDR, MASTER_PORT (and GLOO_SOCKET_IFNAME on machines with several networks).
"""

import argparse
import json
import time

import torch
import torch.distributed as dist
from torch import nn

MICRO_BATCHES = 4
ROWS = 16
WIDTH = 64
GRADIENT_TAG = 1  # of the activations: 0


class Diary:
    """What was sent and received when, by the clock of this host; each transfer has a number of its
    own in its payload, so that a reader can tell what belongs together."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8") if path else None
        self.sent = 0

    def write(self, **fact):
        if self.file:
            self.file.write(json.dumps(fact) + "\n")
            self.file.flush()

    def isend(self, tensor, peer, tag, group, name):
        """The last number of `tensor` becomes the transfer's."""
        self.sent += 1
        tensor.view(-1)[-1] = self.sent
        self.write(kind="send", group=name, tag=tag, number=self.sent, ns=time.monotonic_ns())
        return dist.isend(tensor, peer, group=group, tag=tag)

    def received(self, tensor, tag, name):
        number = int(tensor.view(-1)[-1])
        tensor.view(-1)[-1] = 0
        self.write(kind="receive", group=name, tag=tag, number=number, ns=time.monotonic_ns())


class Stage:
    def __init__(self, diary, groups, options):
        self.diary, self.options = diary, options
        self.stages, self.losses = groups
        self.rank = dist.get_rank()
        self.peer = 1 - self.rank
        torch.manual_seed(self.rank)
        self.network = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=1e-3)

    def receive_all(self, tag):
        """All of a step's transfers are asked for before the first is waited for."""
        tensors = [torch.empty(ROWS, WIDTH) for _ in range(MICRO_BATCHES)]
        works = [dist.irecv(t, self.peer, group=self.stages, tag=tag) for t in tensors]
        for tensor, work in zip(tensors, works):
            work.wait()
            self.diary.received(tensor, tag, "stages")
            yield tensor

    def send_all(self, tensors, tag):
        return [self.diary.isend(t, self.peer, tag, self.stages, "stages") for t in tensors]

    def first(self):
        outputs = [self.network(torch.randn(ROWS, WIDTH)) for _ in range(MICRO_BATCHES)]
        sends = self.send_all([output.detach().clone() for output in outputs], 0)
        for output, gradient in zip(outputs, self.receive_all(GRADIENT_TAG)):
            output.backward(gradient / MICRO_BATCHES)
        for work in sends:
            work.wait()
        return torch.zeros(1)

    def second(self):
        total = torch.zeros(1)
        gradients = []
        for tensor in self.receive_all(0):
            tensor.requires_grad_()
            loss = self.network(tensor).square().mean()
            loss.backward()
            total += loss.detach()
            gradients.append(tensor.grad.clone())
        for work in self.send_all(gradients, GRADIENT_TAG):
            work.wait()
        return total

    def share_losses(self, mine):
        """Both send, and then receive from whomever."""
        sent = self.diary.isend(
            torch.cat([mine, torch.zeros(1)]), self.peer, 0, self.losses, "losses"
        )
        theirs = torch.empty(2)
        dist.recv(theirs, group=self.losses)
        self.diary.received(theirs, 0, "losses")
        sent.wait()
        return float(theirs[0] + mine)

    def train(self):
        step = 0
        while not self.options.steps or step < self.options.steps:
            self.optimizer.zero_grad()
            mine = self.first() if self.rank == 0 else self.second()
            self.optimizer.step()
            loss = self.share_losses(mine)
            step += 1
            if step % self.options.report_every == 0:
                print(f"rank {self.rank}, step {step}: loss {loss:.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=0, help="end after this many steps")
    parser.add_argument("--report-every", type=int, default=100, metavar="STEPS")
    parser.add_argument("--diary", default="", help="write down each send and receive there")
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    groups = [dist.new_group([0, 1], group_desc=name) for name in ("stages", "losses")]
    Stage(Diary(options.diary), groups, options).train()


if __name__ == "__main__":
    main()
