# Planted by `syncline run` through PYTHONPATH: Python imports it when it starts. All it does is to
# wait for an import of PyTorch; only then is anything of Syncline loaded (syncline_torch.py). Read
# by whatever Python the program uses: nothing here may need a new one.
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


class _TorchFinder(object):
    """Finds nothing, but hears of imports: the first of a module inside torch is the sign. (A look
    for torch itself may be no more than a look.)"""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.startswith("torch.") and cls in sys.meta_path:
            sys.meta_path.remove(cls)
            _load_hook()
        return None


def _load_hook():
    sys.path.append(_HERE)
    try:
        import syncline_torch

        syncline_torch.start(os.path.dirname(_HERE))
    except Exception:  # the program comes first, and does not know of us
        pass
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
    sys.meta_path.insert(0, _TorchFinder)
_step_aside()
