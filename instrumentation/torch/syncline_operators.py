# SPDX-License-Identifier: Apache-2.0
"""PyTorch's ITT observer, as the hook (syncline_torch.py) switches it on and off."""

import os
import sys
import threading

LEFT_OUT = 2  # of syncline_torch:operators: the program's own profiler has the thread
# Where PyTorch keeps state of this thread that it puts back afterwards: what is switched here would
# be switched back, or be in the way.
NOT_INSIDE = (
    os.path.join("torch", "autograd", "graph.py"),
    os.path.join("torch", "autograd", "__init__.py"),
    os.path.join("torch", "autograd", "profiler.py"),
    os.path.join("torch", "profiler", "profiler.py"),
)


class _LastWord:
    """Dies with its thread, in it: PyTorch complains of an observer that a thread leaves behind."""

    def __init__(self, operators):
        self.operators = operators

    def __del__(self):
        try:
            self.operators.leave(anywhere=True)
        except Exception:
            pass


class Operators:
    """PyTorch's ITT observer, which is a matter of each thread."""

    def __init__(self, native):
        self.native = native
        # Another collector (VTune's) is not fed unasked.
        collector = os.environ.get("INTEL_LIBITTNOTIFY64", "")
        self.ours = os.path.basename(collector) == "libsyncline_itt.so"
        self.collector = collector if self.ours else None
        self.threads = set()  # where it is on
        self.here = threading.local()
        self.profiler = None  # the module torch.autograd.profiler, once it is known
        self.kineto = None  # syncline_kineto.Kineto, with `syncline run --kineto`

    def ready(self):
        torch = sys.modules.get("torch")
        profiler = sys.modules.get("torch.autograd.profiler")
        if torch is None or profiler is None:
            return False
        spec = getattr(torch, "__spec__", None)
        if spec is None or getattr(spec, "_initializing", False):
            return False
        self.profiler = profiler
        self.autograd = torch._C._autograd
        self.ours = self.ours and torch._C._itt.is_available()
        return True

    def kind(self):
        """What observes this thread."""
        return self.autograd._profiler_type()

    def enter(self, anywhere=False):
        """True unless it is better done at another time."""
        if not self.ours:
            return True
        if self.hushed():
            return self.is_here()  # it speaks again soon
        kind = self.kind()
        if kind != type(kind).NONE:  # the program's own, or ours already
            if kind != type(kind).ITT:
                self.native.operators(LEFT_OUT)
            return True
        if not anywhere and self._inside():
            return False
        # Known before it is on: a signal's handler may leave this at any point.
        self.threads.add(threading.get_ident())
        self.native.look_here(1)
        if not hasattr(self.here, "last_word"):
            self.here.last_word = _LastWord(self)
        self._switch_on()
        self.native.operators(1)
        return True

    def leave(self, anywhere=False):
        """True unless it is better done at another time."""
        if not self.is_here():
            return True
        if not anywhere and (self._inside() or self.kineto and self.kineto.on):
            return False
        here = threading.get_ident()
        try:
            self.threads.discard(here)  # first: the main thread's turn may come in between
            self.native.look_here(0)
            if self.suspend() or self.hushed():
                self.native.operators(0)
            self.speak()
        except BaseException:
            self.threads.add(here)
            self.native.look_here(1)
            raise
        return True

    def suspend(self):
        """True when it was on."""
        if self.kind() != type(self.kind()).ITT:
            return False
        if self.kineto:
            self.kineto.interrupt(self._switch_off)
        else:
            self._switch_off()
        return True

    def _switch_off(self):
        self.autograd._disable_profiler()
        # Kineto's profile on demand is the whole process's, and goes before a thread's own.
        if self.kind() == type(self.kind()).ITT:
            self.autograd._disable_profiler()

    def hush(self):
        """For a moment, in this thread; `speak` must follow. Between any two bytecodes our own
        `turn` may come, or a signal's handler that calls PyTorch: what they do to this thread
        meanwhile they do to its state, and `speak` makes it true.

        Where autograd puts a thread's observers back when a node ends, one that was taken out
        within it would be there beside the one that was put in again: there all of the thread's are
        not called meanwhile, and stay."""
        if not self.is_here() or self.hushed():
            return
        self.here.silenced = bool(self.kineto) or self._inside()
        self.here.hushed = True
        if self.here.silenced:
            self.autograd._enable_record_function(False)
            self.here.hushed = True  # our turn may have left, and spoken, in between
        else:
            self.suspend()

    def speak(self):
        if not self.hushed():
            return
        try:
            kind = self.kind()
            if self.here.silenced:
                self.autograd._enable_record_function(True)
            elif self.is_here() and kind == type(kind).NONE:
                self._switch_on()
                if not self.is_here():  # it has just left
                    self.suspend()
        finally:
            self.here.hushed = False

    def hushed(self):
        return getattr(self.here, "hushed", False)

    def _switch_on(self):
        profiler = self.profiler
        shapes = stack = flops = modules = memory = False
        config = profiler.ProfilerConfig(
            profiler.ProfilerState.ITT,
            *(shapes, memory, stack, flops, modules),
            profiler._ExperimentalConfig(),
        )
        self.autograd._enable_profiler(config, set())

    def is_here(self):
        return threading.get_ident() in self.threads

    def forget_the_dead(self):
        self.threads &= set(self.native.current_frames())

    def after_fork(self):
        """In the child, which has this thread alone."""
        self.threads &= {threading.get_ident()}
        self.native.look_forked()
        if self.threads:
            self.native.look_here(1)

    @staticmethod
    def _inside():
        frame = sys._getframe()
        while frame is not None:
            if frame.f_code.co_filename.endswith(NOT_INSIDE):
                return True
            frame = frame.f_back
        return False
