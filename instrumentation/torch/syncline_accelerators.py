# SPDX-License-Identifier: Apache-2.0
"""Whether PyTorch has initialised an accelerator in this process: not whether there is one, or a
library for it. Nothing is imported, and nothing initialised, in order to know."""

import sys

# Modules of torch; what ROCm has is called cuda there, and others add themselves.
MODULES = ("cuda", "xpu", "mtia", "hpu", "npu", "mlu", "musa")
XLA = "torch_xla._XLAC", "_xla_runtime_is_initialized"
# What PyTorch's profiler is asked for to trace their devices. Those that add themselves share one
# activity; torch_xla's devices have a profiler of their own.
ACTIVITIES = {"cuda": "CUDA", "xpu": "XPU", "mtia": "MTIA", "hpu": "HPU"}
OTHERS_ACTIVITY = "PrivateUse1"


def _call(module, name):
    """As it lies there: what a module makes when it is asked (__getattr__) may be an import."""
    function = getattr(module, "__dict__", {}).get(name)
    return function is not None and bool(function())


def initialised(attempt):
    """Their names. `attempt` calls, and returns None for what fails."""
    torch = sys.modules["torch"].__dict__
    names = list(MODULES)
    private = attempt(lambda: torch["_C"]._get_privateuse1_backend_name())
    if private and private not in names:
        names.append(private)
    found = [name for name in names if attempt(_call, torch.get(name), "is_initialized")]
    if attempt(_call, sys.modules.get(XLA[0]), XLA[1]):
        found.append("xla")
    return found


def activities(names, supported):
    """Of the profiler's activities in `supported` those that trace the accelerators `names`."""
    wanted = {ACTIVITIES.get(name, OTHERS_ACTIVITY) for name in names if name != "xla"}
    return {activity for activity in supported if activity.name in wanted}


class Accelerators:
    def __init__(self, native):
        self.native = native
        self.generation = 0  # of the recording
        self.told = set()  # in it

    def tell(self, generation, attempt):
        """Each once in a recording: when that begins, or within half a second of becoming so."""
        if generation != self.generation:
            self.generation, self.told = generation, set()
        for name in initialised(attempt):
            text = "accelerator initialised: " + name
            if name not in self.told and self.native.mark(text.encode()):
                self.told.add(name)
