# SPDX-License-Identifier: Apache-2.0
"""What the hook (syncline_torch.py) changes in PyTorch while something is recorded."""

import sys


def leave_out(function):
    """torch.compile neither reads the function nor what it calls: a compiled program calls it as it
    is, as torch.compiler.disable makes it, which imports far more than a guest may. What is wrapped
    here is PyTorch's C++, which torch.compile does not read either."""
    function._torchdynamo_disable = True
    frames = getattr(getattr(sys.modules.get("torch._C"), "_dynamo", None), "eval_frame", None)
    strategy = getattr(frames, "_FrameExecStrategy", None)
    if strategy is not None:
        skip = frames._FrameAction.SKIP
        frames.set_code_exec_strategy(function.__code__, strategy(skip, skip))
    elif hasattr(frames, "skip_code"):  # before PyTorch 2.7
        frames.skip_code(function.__code__)


class Patches:
    """Attributes that are something else for a while."""

    def __init__(self):
        self._made = []

    def put(self, owner, name, make):
        original = getattr(owner, name, None)
        if original is None or any(made[:2] == (owner, name) for made in self._made):
            return
        # As it lies there: what getattr gives of a class's method is not what makes it one.
        as_found = owner.__dict__.get(name, self)
        wrapper = make(original)
        wrapper.__name__ = name
        wrapper.__doc__ = getattr(original, "__doc__", None)
        wrapper.__wrapped__ = original
        leave_out(wrapper)
        setattr(owner, name, wrapper)
        self._made.append((owner, name, wrapper, as_found))

    def undo(self):
        """What somebody else has wrapped meanwhile stays: ours then passes everything on."""
        for owner, name, wrapper, as_found in reversed(self._made):
            if owner.__dict__.get(name) is not wrapper:
                continue
            if as_found is self:  # inherited
                delattr(owner, name)
            else:
                setattr(owner, name, as_found)
        self._made = []
