# SPDX-License-Identifier: Apache-2.0
"""PyTorch's wheel, as it is, with Syncline's collector and another one: the training's result is
the same to the bit, and both see every operator.

Usage: torch_tee_test.py BUILD_DIRECTORY. Skipped without .venv-torch (scripts/setup --torch).
"""

import collections
import os
import re
import sys

import lttng_fixture
from itt_tee_test import LIMIT_S, Machine, differences
from torch_program import TORCH_PYTHON

PROGRAM = """
import hashlib, sys
import torch
torch.manual_seed(1)
torch.set_num_threads(2)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 14 * 14, 10)
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
torch.profiler.itt.range_push("before")
torch.profiler.itt.range_pop()
sys.stdin.readline()
with torch.autograd.profiler.emit_itt():
    for step in range(10):
        torch.profiler.itt.range_push(f"step {step}")
        loss = model(torch.randn(4, 3, 16, 16)).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.profiler.itt.range_pop()
weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
print(hashlib.sha256(weights).hexdigest())
"""
ARGUMENTS = ("-c", PROGRAM)


def counted(calls):
    """Of all calls; oneDNN makes ids of the time."""
    return collections.Counter(re.sub(r"\d{9,}", "TIME", line) for line in calls)


def begins(calls):
    """Tasks of the other collector's log, by name."""
    words = (line.split(" ", 4) for line in calls if line.startswith("task_begin "))
    return collections.Counter(line[4] for line in words)


def recorded_begins(events):
    names = {event.id: event.text for event in events if event.name == "syncline:name"}
    tasks = (event for event in events if event.name.startswith("syncline_itt:task_begin"))
    return collections.Counter(names[task.fields["name"]] for task in tasks)


def main():
    if not os.path.exists(TORCH_PYTHON):
        print("skipped: no .venv-torch: scripts/setup --torch makes it")
        return lttng_fixture.SKIPPED
    lttng_fixture.enter_namespaces()
    machine = Machine(sys.argv[1])
    try:
        machine.fixture.start_daemon()
        said_alone, alone = machine.alone(TORCH_PYTHON, ARGUMENTS, "")
        said, events, calls = machine.recorded(
            TORCH_PYTHON, ARGUMENTS, machine.environment(both=True, option="")
        )
        process = machine.fixture.start(*ARGUMENTS, program=TORCH_PYTHON, INTEL_LIBITTNOTIFY64="")
        plain, _ = process.communicate("go\n", timeout=LIMIT_S)
    finally:
        machine.fixture.close()
    assert len(plain) == 65 and said == said_alone == plain, (plain, said_alone, said)
    wrong = list(differences("the other's", counted(alone), counted(calls)))
    theirs = begins(calls)
    assert theirs.pop("before") == 1 and theirs["aten::convolution"] == 10, theirs
    wrong += differences("ours", theirs, recorded_begins(events))
    print("\n".join(wrong) or f"{sum(theirs.values())} tasks, the same of both")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
