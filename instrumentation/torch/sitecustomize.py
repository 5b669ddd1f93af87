# SPDX-License-Identifier: Apache-2.0
# Planted by `syncline run` through PYTHONPATH: Python imports it when it starts. All it does is to
# wait for an import of PyTorch; only then is anything of Syncline loaded (syncline_torch.py). Read
# by whatever Python the program uses: nothing here may need a new one.
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
# What the hook imports, but for what is built into Python. PyTorch imports them as well, among its
# first modules.
_NEEDED = ("ctypes", "functools", "json", "signal", "threading", "types", "weakref")


class _TorchFinder(object):
    """Finds nothing, but hears of imports. It is never taken out of sys.meta_path: another thread
    that imports something else, and is going through the list, would pass over the next finder
    and not find what it looks for."""

    hear = None  # who is told of the names, until it returns True

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hear = cls.hear
        if hear is not None and hear(name):
            cls.hear = None
        return None


def _wait_for_torch(name):
    """The first import of a module inside torch is the sign (a look for torch itself may be no
    more than a look) from which the hook finds all it needs. To import that from here could wait
    for ever: Python holds the lock of all imports meanwhile, and another thread that is in the
    middle of such a module may need it to go on."""
    if name.startswith("torch.") and all(map(_is_there, _NEEDED)):
        _TorchFinder.hear = None  # the hook imports, too
        _TorchFinder.hear = _load_hook()
    return False


def _is_there(name):
    """Whether a module is imported, and no thread is in the middle of it."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return spec is not None and not getattr(spec, "_initializing", False)


def _load_hook():
    """What wants to hear of further imports."""
    sys.path.append(_HERE)
    signals = None
    try:
        import syncline_signals as signals
        import syncline_torch

        return syncline_torch.start(os.path.dirname(_HERE))
    except Exception as error:  # the program comes first, and does not know of us
        if signals is not None and signals.is_of_the_program(error):  # of a signal's handler
            _TorchFinder.hear = _wait_for_torch  # it may import PyTorch again
            raise
        return None
    finally:
        if _HERE in sys.path:
            del sys.path[len(sys.path) - 1 - sys.path[::-1].index(_HERE)]


def _step_aside():
    """The user's own sitecustomize, which ours hides, is run as Python would have run it."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", None) != "sitecustomize":
            raise
    finally:
        # Whoever imports us wants to find us where it put us.
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


if sys.version_info >= (3, 8) and sys.implementation.name == "cpython":
    _TorchFinder.hear = _wait_for_torch
    sys.meta_path.insert(0, _TorchFinder)
_step_aside()
