# SPDX-License-Identifier: Apache-2.0
"""Makes PyTorch say what it does, while Syncline records, and be as it was before and after.

Loaded by our sitecustomize when the program imports PyTorch; asleep until a recording starts. Then
a native thread (libsyncline_torch.so) has `Hook.turn` called, in the main thread, between two
bytecodes:
  - operators: PyTorch's own ITT observer is switched on in the main thread (autograd's and Gloo's
    threads inherit it), in other threads at their next optimizer step or communication;
  - process groups are announced with their ranks and sequence numbers, again twice a second;
  - collectives and transfers that the program asks for are announced with what PyTorch's observer
    does not tell: group, number, peer, tag, bytes; of broadcasts also the root, and of those of
    DistributedDataParallel's buffers; waits for them are tasks (syncline_waits.py);
  - Python's garbage collections become tasks, and that PyTorch has initialised an accelerator;
  - where the threads that train stand in Python, ten times a second (syncline_places.py).
Recording or not, it says where Python's threads stand when the agent asks (syncline_stacks.py).
At the end all of it is undone, but for one thing: PyTorch's hook after an optimizer step is there
from PyTorch's import on, and for good, and does nothing while nothing is recorded. To put it there
and take it out again would make steps of the program's fail (`_listen` says why).

A guest: it never imports torch, never raises into the program, and the program's own profiler
always wins: PyTorch has room for one observer a thread, so ours leaves before the program's enters.
"""

import atexit
import os
import sys
from time import monotonic_ns

import syncline_places
from syncline_accelerators import Accelerators
from syncline_garbage import Garbage
from syncline_operators import Operators
from syncline_stacks import Stacks
from syncline_waits import Waits

DONE, LATER = 0, 1

COLLECTIVES = """
    allreduce allreduce_coalesced broadcast allgather allgather_coalesced
    allgather_into_tensor_coalesced _allgather_base all_gather_single all_gather_single_coalesced
    reduce reduce_scatter reduce_scatter_tensor_coalesced _reduce_scatter_base
    reduce_scatter_single reduce_scatter_single_coalesced gather scatter alltoall alltoall_base
    all_to_all_single barrier
""".split()
STEP_HOOKS = "_global_optimizer_post_hooks"
TRANSFERS = ("send", "recv", "recv_anysource")
# What the native thread calls, in the order of syncline_torch_start.
PYTHON = """
    Py_AddPendingCall PyObject_CallObject Py_DecRef PyErr_ExceptionMatches PyErr_Clear
""".split()


def ranges(numbers):
    """[0, 1, 2, 8] -> "0-2,8"."""
    parts = []
    for number in numbers:
        if parts and parts[-1][1] + 1 == number:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else "%d-%d" % (a, b) for a, b in parts)


def bytes_of(tensors):
    """Of a tensor, or of lists of them."""
    if isinstance(tensors, (list, tuple)):
        return sum(bytes_of(tensor) for tensor in tensors)
    return tensors.numel() * tensors.element_size()


def root_of(arguments):
    """Of ProcessGroup.broadcast: its options say it, or a number does."""
    return getattr(arguments[2], "rootRank", arguments[2])


def may_be_walked(module, name):
    """Whether somebody may be in the middle of this container of a module's: whoever walks through
    it holds a reference to it. (One that is like it tells how many there are when nobody does.)"""
    owners = vars(module), {name: type(getattr(module, name))()}
    held, alone = [sys.getrefcount(owner[name]) for owner in owners]
    return held > alone


class StepHook:
    """What PyTorch calls after each optimizer step.

    Of what varies, torch.compile must see nothing: it would compile anew when that changes. And who
    copies or pickles a handle of a hook of his own takes all hooks along, this one as one that does
    nothing: `slice` takes what a hook is given.
    """

    def __init__(self, hook):
        self.hook = hook

    def __call__(self, *_):
        hook = self.hook
        if hook.compiling() or not hook.awake:
            return
        hook._step_is_over()

    def __deepcopy__(self, _memo):
        return slice

    def __reduce__(self):
        return type, (slice(None),)


class Hook:
    def __init__(self, native):
        self.native = native
        self.operators = Operators(native)
        self.garbage = Garbage(native)
        self.accelerators = Accelerators(native)
        self.stacks = Stacks(native, ranges)
        import syncline_patches
        import syncline_signals

        self.patches = syncline_patches.Patches()
        self.is_of_the_program = syncline_signals.is_of_the_program
        self.distributed = None  # the module distributed_c10d while it is wrapped
        self.listens = False  # PyTorch calls us after each optimizer step
        self.awake = False  # and that matters: while it is recorded
        self.step_hook = StepHook(self)
        self.compiling = bool  # () -> whether torch.compile reads our code rather than runs it
        self.waits = Waits(native, self._try)
        self.usable = True
        self.kineto = None

    def begin_kineto(self):
        import syncline_kineto

        kineto = syncline_kineto.Kineto(self.native, self.operators.ready)
        kineto.callback = self.native.profile_turn_type(kineto.turn)  # lives as long as it
        if self.native.profile_start(kineto.callback) == 0:
            self.kineto = self.operators.kineto = kineto

    # ---- PyTorch is imported

    def hear(self, _name):
        """Of each import, whatever it is of, until there is nothing more to wait for."""
        self._try(self._listen)
        heard = self.kineto is None or self._try(self.kineto.hear)
        return self.listens and self.compiling is not bool and heard

    def _listen(self):
        """Has PyTorch call us after each optimizer step, for good.

        PyTorch keeps such hooks in an OrderedDict and walks through it as it calls them. Whoever
        changes it meanwhile, from another thread or from within one of the hooks, makes the
        program's step raise "OrderedDict mutated during iteration" where another hook is to
        follow. An empty one has none to follow. So ours is the first: it is there before PyTorch's
        import is over, and never leaves. Where PyTorch was there before us and the program has
        hooks already, ours waits for a moment when nobody is in the middle of them. (A copy in
        their place would be no better: what removes a hook of the program's refers to this one.)
        """
        # For good, too, and before anything can be compiled: it is read then.
        compiler = sys.modules.get("torch.compiler")
        self.compiling = getattr(compiler, "is_dynamo_compiling", self.compiling)
        optimizer = sys.modules.get("torch.optim.optimizer")
        register = getattr(optimizer, "register_optimizer_step_post_hook", None)
        if self.listens or register is None or not hasattr(optimizer, STEP_HOOKS):
            return
        if getattr(optimizer.__spec__, "_initializing", False):
            return
        if not getattr(optimizer, STEP_HOOKS) or not may_be_walked(optimizer, STEP_HOOKS):
            self.listens = True  # first: another thread may import at the same time
            register(self.step_hook)

    # ---- called by the native thread, in the main thread if it can

    def turn(self, generation, in_main_thread=False):
        begin = monotonic_ns()
        try:
            return self._turn(generation, in_main_thread) if self.usable else DONE
        except RecursionError:  # the program is deep in its own
            return LATER
        except Exception as error:  # an unknown PyTorch: it is left alone from now on
            if in_main_thread and self.is_of_the_program(error):
                raise
            self.usable = False
            self._try(self.garbage.leave)
            self._try(self.operators.leave, anywhere=True)
            self._undo()
            return DONE
        finally:
            self.native.spent(monotonic_ns() - begin)

    def turn_in_main_thread(self):
        """What a signal's handler raises meanwhile is the program's to catch."""
        generation = self.native.gate()
        self.native.acted(generation, self.turn(generation, True) == DONE)

    def _turn(self, generation, in_main_thread):
        if not self.operators.ready():
            return LATER if generation else DONE
        if generation:
            self._install()
            syncline_places.know_interval(self.native)
            if self._try(self.garbage.enter, self.operators.collector):
                self._try(self.accelerators.tell, generation, self._try)
            if in_main_thread and self.kineto and not self.kineto.used:
                self.kineto.turn(generation, in_main_thread)
            if in_main_thread and not self.operators.enter():
                return LATER
            self._announce_groups()
            return DONE
        is_out = self._try(self.garbage.leave)
        if in_main_thread and not self.operators.leave():
            return LATER
        self._uninstall()
        return DONE if is_out else LATER

    def _install(self):
        if self.kineto:
            try:
                self.kineto.install()
            except OSError:  # it tries again
                pass
        self.patches.put(self.operators.profiler, "_enable_profiler", self._make_enable)
        self.patches.put(self.operators.profiler, "_disable_profiler", self._make_disable)
        self._listen()  # if it could not before
        self.awake = True  # alone as the main thread may be now, another may come
        if self.distributed is None:
            distributed = sys.modules.get("torch.distributed.distributed_c10d")
            if distributed is not None and hasattr(distributed, "ProcessGroup"):
                self._wrap_communication(distributed)

    def _uninstall(self):
        self.operators.forget_the_dead()
        if self.operators.threads:
            return  # another thread has yet to pass by
        self._undo()

    def _undo(self):
        self.patches.undo()
        self.distributed = None
        self.waits.forget()
        self.awake = False

    def _step_is_over(self):
        begin = monotonic_ns()
        try:
            self._pass_by()
        finally:
            self.native.spent(monotonic_ns() - begin)

    def _pass_by(self):
        """A thread of the program is at a good place: it joins, or leaves."""
        self._try(self._join_or_leave)

    def _join_or_leave(self):
        if self.native.gate():
            self.operators.enter()
        elif self.operators.leave():
            self._uninstall()

    def _try(self, call, *arguments, **named):
        """In the program's own calls: what fails is ours alone."""
        try:
            return call(*arguments, **named)
        except Exception as error:
            if self.is_of_the_program(error):  # of a signal's handler
                raise
            return None

    # ---- the program's own profiler

    def _make_enable(self, original):
        def enable(*arguments, **named):
            self._try(self.operators.leave, anywhere=True)
            result = original(*arguments, **named)
            self._rejoin()  # it cannot, and says so
            return result

        return enable

    def _make_disable(self, original):
        def disable(*arguments, **named):
            result = original(*arguments, **named)
            self._rejoin()
            return result

        return disable

    def _rejoin(self):
        # Where the program's profiler can leave, ours can enter.
        if self.native.gate():
            self._try(self.operators.enter, anywhere=True)

    # ---- process groups

    def _announce_groups(self):
        distributed = self.distributed
        if distributed is None:
            return
        for group in list(distributed._world.pg_map):
            self._try(self._announce, group)  # a backend may have no numbers

    def _announce(self, group):
        world = self.distributed._world
        members = world.pg_group_ranks.get(group, {})
        if not members:
            return
        in_order = sorted(members, key=members.get)
        self.native.group(
            world.pg_names[group].encode(),
            getattr(group, "group_desc", "").encode(),
            ranges(in_order).encode(),
            group.rank(),
            group.size(),
            group._get_sequence_number_for_group(),
        )

    # ---- collectives and transfers that the program asks for

    def _wrap_communication(self, distributed):
        for name in COLLECTIVES:
            self.patches.put(distributed.ProcessGroup, name, self._make_collective(name))
        for name in TRANSFERS:
            self.patches.put(distributed.ProcessGroup, name, self._make_transfer(name))
        # How DistributedDataParallel broadcasts its buffers.
        package = sys.modules["torch.distributed"]
        coalesced = self._make_rooted(lambda arguments: arguments[3])
        self.patches.put(package, "_broadcast_coalesced", coalesced)
        self.patches.put(distributed.Work, "wait", self.waits.make)
        self.distributed = distributed  # last: what a signal's handler interrupts is done again

    def _name(self, group):
        return self.distributed._world.pg_names[group].encode()

    def _make_collective(self, name):
        encoded = name.strip("_").encode()

        def make(original):
            if name == "broadcast":
                original = self._make_rooted(root_of)(original)

            def collective(group, *arguments, **named):
                if self.native.gate():
                    begin = monotonic_ns()
                    self._pass_by()
                    self._try(self._tell_collective, group, encoded, arguments)
                    self.native.spent(monotonic_ns() - begin)
                return original(group, *arguments, **named)

            return collective

        return make

    def _tell_collective(self, group, name, arguments):
        has_size = arguments and name != b"barrier"
        size = self._try(bytes_of, arguments[0]) or 0 if has_size else 0
        number = group._get_sequence_number_for_group()
        self.native.collective(self._name(group), name, number, size)

    def _make_rooted(self, find_root):
        """Of what broadcasts in the group that is its first argument."""

        def make(original):
            def broadcast(*arguments, **named):
                begin = monotonic_ns()
                group = self._try(self._tell_root, find_root, arguments)
                if not group:
                    return original(*arguments, **named)
                spent = monotonic_ns() - begin
                try:
                    return original(*arguments, **named)
                finally:
                    begin = monotonic_ns()
                    self._try(self.native.root, group, -1)
                    self.native.spent(spent + monotonic_ns() - begin)

            return broadcast

        return make

    def _tell_root(self, find_root, arguments):
        """The group's name, if somebody hears it."""
        if not self.native.gate():
            return None
        name = self._name(arguments[0])
        self.native.root(name, find_root(arguments))
        return name

    def _make_transfer(self, name):
        encoded = name.encode()

        def make(original):
            def transfer(group, *arguments, **named):
                begin = monotonic_ns()
                begun = self._try(self._begin_transfer, group, encoded, arguments, named)
                if not begun:
                    return original(group, *arguments, **named)
                inner = self.operators.hushed()  # within another one
                spent = 0
                try:
                    # PyTorch's ranges of transfers outlive the operator that contains them, on a
                    # stack: ours, which have ids, are in their place.
                    self._try(self.operators.hush)
                    spent = monotonic_ns() - begin
                    work = original(group, *arguments, **named)
                    begin = monotonic_ns()
                    self._try(self.waits.expect, work, begun, name == "recv_anysource")
                    return work
                finally:
                    if not inner:
                        self._try(self.operators.speak)
                    self.native.spent(spent + monotonic_ns() - begin)

            return transfer

        return make

    def _begin_transfer(self, group, name, arguments, named):
        if not self.native.gate():
            return 0
        self._pass_by()
        any_source = name == b"recv_anysource"
        peer = -1 if any_source else arguments[1]
        tag = named.get("tag", arguments[-1])
        size = bytes_of(arguments[0])
        return self.native.transfer_begin(self._name(group), name, peer, tag, size)

    # ---- exit and fork

    def at_exit(self):
        """The interpreter goes away, from its main thread."""
        try:
            if self.kineto:
                self.native.profile_stop()
                self.kineto.at_exit()
        finally:
            self.native.stop()
        self._try(self.garbage.leave)
        self._try(self.operators.leave, anywhere=True)
        self._try(self._undo)

    def after_fork(self):
        if self.kineto:
            self.native.profile_forked()
            self.kineto.after_fork()
        self.native.gc_forked()
        self.accelerators.generation = 0
        self.operators.after_fork()
        self.waits.forget()
        self.stacks.after_fork()
        self.native.again()


def start(directory):
    """Once, when the program imports PyTorch. `directory` holds our libraries. Returns what wants
    to hear of further imports, if anything does."""
    import syncline_native

    native = syncline_native.load(directory)
    hook = Hook(native)
    start.hook = hook
    # They live as long as the process.
    hook.callbacks = native.turn_type(hook.turn), hook.turn_in_main_thread
    hook.stacks.listen()
    syncline_places.start(native)
    if native.start(*hook.callbacks, RecursionError, *map(syncline_native.address, PYTHON)) != 0:
        return None
    atexit.register(hook.at_exit)
    os.register_at_fork(after_in_child=hook.after_fork)
    if os.environ.get("SYNCLINE_KINETO") == "1":
        hook.begin_kineto()
    return hook.hear
