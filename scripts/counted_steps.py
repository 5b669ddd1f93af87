# SPDX-License-Identifier: Apache-2.0
"""Runs a training script unchanged and counts its steps: counted_steps.py FILE SCRIPT...

The count is a little-endian u64 at the beginning of FILE, for whoever maps it too. A step is a call
of PyTorch's SGD.step, or of TensorFlow's Session.run.
"""

import importlib.abc
import importlib.util
import mmap
import runpy
import struct
import sys

STEPS = {"torch.optim.sgd": ("SGD", "step"), "tensorflow.python.client.session": ("Session", "run")}


def counted(function, memory):
    number = 0

    def call(*arguments, **named):
        nonlocal number
        number += 1
        struct.pack_into("<Q", memory, 0, number)
        return function(*arguments, **named)

    return call


class Finder(importlib.abc.MetaPathFinder):
    """Wraps the step when its module has been imported."""

    def __init__(self, memory):
        self.memory = memory

    def find_spec(self, name, path, target=None):
        if name not in STEPS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        sys.meta_path.insert(0, self)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            class_name, method = STEPS[name]
            # The class that has the method: Session inherits it.
            for owner in getattr(module, class_name).__mro__:
                if method in vars(owner):
                    setattr(owner, method, counted(vars(owner)[method], self.memory))
                    break

        spec.loader.exec_module = exec_module
        return spec


def main():
    path, script = sys.argv[1:3]
    with open(path, "r+b") as file:
        memory = mmap.mmap(file.fileno(), 8)
    sys.meta_path.insert(0, Finder(memory))
    sys.argv = sys.argv[2:]
    sys.path[0] = script.rpartition("/")[0] or "."
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
