# SPDX-License-Identifier: Apache-2.0
"""`syncline run --kineto`: PyTorch's own profiler (Kineto) runs while Syncline records.

Used by syncline_torch.py, and only when the environment says SYNCLINE_KINETO=1. A native thread
calls `Kineto.turn` when a recording begins or ends, and when a piece is due. A piece is a profile
of all threads; it is written below the runtime directory, from where the agent takes it.

What PyTorch 2.13 does not survive, and what is done about it (docs/decisions/0008):
  - a profile that ends while other threads run operators: collection is switched off first, and
    QUIET_S later nobody is inside PyTorch's observer any more;
  - an operator that began in one profile and ends in another one, which writes to freed memory: it
    is left unfinished in the file, and the process is then not profiled again until the thread is
    gone. The program's own profiles are of another kind (a thread's), which such an end passes by;
  - a profile of its own that the program begins while ours runs: ours is over before;
  - the end of the program while a profile runs: it is ended before, also when C's exit() is called;
  - a child that was forked once a profile had run and calls exit(): libkineto would wait for ever.
"""

import json
import os
import sys
import threading
import time

from syncline_accelerators import activities, initialised
from syncline_signals import attempted, is_of_the_program, undisturbed
from syncline_stacks import start_ticks

QUIET_S = 0.1  # far more than an observer's call takes
# How long an operator that runs as a piece ends may take to end.
OPEN_OPERATORS_S = 0.5
PIECE_S = 10.0
# Kineto keeps a piece in memory: 600 bytes an operator, 2.5 kB while it is put together, which
# takes 10 us an operator during which no Python runs. How many there are it does not say: ITT's
# observer, which writes two events for each, does; where it is not on, the process's growth does,
# of which most may be the program's.
PIECE_EVENTS = 200_000
GROWTH_BYTES = 512 << 20
LOOK_S = 0.2
# Profiles wait in memory until the agent takes them, 400 bytes an operator: no piece is begun with
# less room than this, or more than that waiting.
FREE_BYTES = 256 << 20
WAITING_BYTES = 512 << 20
LISTED = 256  # pieces; the agent has seen those before
FAILURE_CHARACTERS = 200
MAIN_THREAD_S = 1.0  # to begin the first profile in
PIECES_TOGETHER_S = 1.0  # pieces begin at multiples of this, so that ranks pause together
LATE_MS = 100
UNFINISHED = b'"finished": false'
LOG_ERRORS = 2  # of c10: no warnings

EXITED = "the process ended before its profile was written"
OWN_PROFILE = "the program used a profiler of its own"
NO_ROOM = "there is no room for it beside the control blocks"
NO_MAIN_THREAD = "its main thread, in which the first profile must begin, runs no Python for now"
NOT_TAKEN = "nobody takes the profiles that are there"
STILL_OPEN = (
    "operators of the last profile had not ended with it, and PyTorch would write to freed memory"
    " if the process were profiled again"
)


def resident_bytes():
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def look_at(path):
    """The size of a profile, and the ids of the threads with unfinished operators in it. OSError
    when it is not whole: libkineto does not say so."""
    with open(path, "rb") as file:
        text = file.read()
    if not text.rstrip().endswith(b"}"):
        raise OSError("PyTorch wrote %d bytes of it" % len(text))
    found = set()
    at = text.find(UNFINISHED)
    while at >= 0:
        key = text.rfind(b'"tid":', 0, at)
        number = text[key + 6 : key + 30].split(b",")[0].strip()
        found.add(int(number) if number.isdigit() else os.getpid())
        at = text.find(UNFINISHED, at + 1)
    return len(text), found


class Pieces:
    """The pieces of a recording, as the agent wants to hear of them: xspace/profile_list.h."""

    def __init__(self, directory):
        self.directory = directory
        self.pid = os.getpid()
        self.namespace = os.stat("/proc/self/ns/pid").st_ino
        self.ticks = start_ticks()
        self.name = "%d-%d-%d" % (self.namespace, self.pid, self.ticks)
        # What the process listed as the program that it was before exec.
        self.before = self._read()
        # Of the next piece; never used twice by a process.
        self.number = 1 + max((piece["piece"] for piece in self.before), default=-1)
        self.listed = []
        self.unsaid = False  # the list could not be written

    def _read(self):
        try:
            with open(self.path(self.name + ".pieces"), encoding="ascii") as file:
                pieces = json.load(file)["profiles"]
            for piece in pieces:
                piece["end_realtime_ns"] = piece["end_realtime_ns"] or time.time_ns()
                piece["piece"] = int(piece["piece"])
            return pieces[-LISTED // 2 :]
        except Exception:
            return []

    def begin_recording(self):
        self.listed = list(self.before)

    def begin(self, failure):
        piece = {
            "own_pid": self.pid,
            "pid_namespace_inode": self.namespace,
            "start_ticks": self.ticks,
            "piece": self.number,
            "asked_start_realtime_ns": time.time_ns(),
            "begin_realtime_ns": time.time_ns(),
            "begin_monotonic_ns": time.monotonic_ns(),
            "end_realtime_ns": 0,
            "state": "failed",
            "failure": failure,
        }
        self.number += 1
        self.listed = self.listed[1 - LISTED :] + [piece]
        self.say()
        return piece

    def end(self, piece, state, failure, file=None, size=0):
        piece.update(state=state, failure=failure[:FAILURE_CHARACTERS], bytes=size)
        piece["end_realtime_ns"] = time.time_ns()
        piece["asked_duration_ns"] = piece["end_realtime_ns"] - piece["begin_realtime_ns"]
        if file is not None:
            piece["file"] = file
        self.say()

    def end_what_began(self, failure):
        if self.listed and not self.listed[-1]["end_realtime_ns"]:
            self.end(self.listed[-1], "failed", failure)

    def absent(self, why):
        """There is none, from now on; said once."""
        if self.listed and self.listed[-1]["failure"] == why:
            return
        self.end(self.begin(why), "busy" if why == OWN_PROFILE else "missing", why)

    def file_of(self, piece):
        return "%s-%d.kineto.json" % (self.name, piece["piece"])

    def path(self, file):
        return os.path.join(self.directory, file)

    def waiting_bytes(self):
        mine = [file for file in os.listdir(self.directory) if file.startswith(self.name)]
        return sum(os.path.getsize(self.path(file)) for file in mine)

    def free_bytes(self):
        room = os.statvfs(self.directory)
        return room.f_bavail * room.f_frsize

    def say(self):
        self.unsaid = True
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        path = self.path(self.name + ".pieces")
        with open(path + ".new", "w", encoding="ascii") as file:
            json.dump({"format_version": 1, "profiles": self.listed}, file)
        os.rename(path + ".new", path)
        self.unsaid = False


class Kineto:
    def __init__(self, native, ready):
        self.native = native
        self.ready = ready  # () -> whether PyTorch is there
        self.generation = 0  # that the last turn acted on
        self.over = False  # never again in this process
        self.used = self.inherited = False
        self.foreign = set()  # threads with a profiler of the program's
        self.open_threads = set()
        self.on = None  # the piece that runs
        self.installed = False
        self.lock = threading.RLock()
        runtime = os.environ.get("SYNCLINE_RUNTIME_DIR")
        runtime = runtime or "/dev/shm/syncline-%d" % os.geteuid()
        self.directory = os.path.join(runtime, "kineto")
        self.pieces = Pieces(self.directory)
        self.origin = self.due = self.next_start = 0.0
        self.waiting_since = None  # for the main thread
        self.events_due = self.bytes_due = 0

    def hear(self):
        """Of an import; True: it need not hear of more. PyTorch's profiler module must be wrapped
        before the program uses it: a profile of its own that is prepared, and has not begun, does
        not show."""
        profiler = sys.modules.get("torch.autograd.profiler")
        if profiler is None or getattr(profiler.__spec__, "_initializing", False):
            return False
        try:
            self.install()
        except Exception as error:
            if is_of_the_program(error):
                raise
        return True

    # ---- called by the native thread; for the first time in the main thread

    def turn(self, generation, in_main_thread=False):
        """How many ms to sleep, unless the gate changes; 0: until it does."""
        with self.lock:
            try:
                if not self.used and not in_main_thread:
                    return self._wait_for_main_thread(generation)
                return self._turn(generation)
            except Exception as error:
                if in_main_thread and is_of_the_program(error):
                    raise
                return self._go_on_after(error)

    def _wait_for_main_thread(self, generation):
        """libkineto complains on stderr when another thread than PyTorch's first one uses it
        first."""
        if not generation or not self.ready():
            self.waiting_since = None
        elif self.waiting_since is None:
            self.waiting_since = time.monotonic()
            self.pieces.begin_recording()
        elif time.monotonic() > self.waiting_since + MAIN_THREAD_S:
            self.pieces.absent(NO_MAIN_THREAD)
        return LATE_MS if generation else 0

    def _go_on_after(self, error):
        """A full disk, no descriptor: better luck another time. An unknown PyTorch: never again."""
        if not isinstance(error, OSError):
            self.over = True
        if self.on:
            return LATE_MS
        self.next_start = time.monotonic() + PIECES_TOGETHER_S
        try:
            self.pieces.end_what_began("it could not begin: %s" % error)
        except OSError:
            pass
        return LATE_MS if self.pieces.unsaid or self.generation and not self.over else 0

    def _turn(self, generation):
        if not self.ready():
            return LATE_MS
        if self.pieces.unsaid:
            self.pieces.say()
        if self.over and not self.on:
            return 0
        self.used = True
        self.install()
        if generation != self.generation:
            self._end("complete", "", OPEN_OPERATORS_S)
            self.generation = generation
            self.origin = self.next_start = time.monotonic()
            if generation:
                self.pieces.begin_recording()
        if not generation:
            return 0
        if self.on and self._is_due():
            self._end("complete", "", OPEN_OPERATORS_S)
            passed = time.monotonic() - self.origin
            whole = passed // PIECES_TOGETHER_S + 1
            self.next_start = self.origin + whole * PIECES_TOGETHER_S
        if not self.on and time.monotonic() >= self.next_start:
            self._begin()
        until = (self.due if self.on else self.next_start) - time.monotonic()
        return max(1, int(min(LOOK_S, until) * 1000))

    def _is_due(self):
        if self.over or time.monotonic() >= self.due:
            return True
        if self.native.profile_events() >= self.events_due:
            return True
        try:
            return resident_bytes() >= self.bytes_due
        except OSError:  # no descriptor
            return True

    def _hindrance(self):
        if self.foreign:
            return OWN_PROFILE
        alive = {int(name) for name in os.listdir("/proc/self/task")}
        if os.getpid() in alive:  # else /proc is another namespace's
            self.open_threads &= alive
        if self.open_threads:
            return STILL_OPEN
        if self.pieces.free_bytes() < FREE_BYTES:
            return NO_ROOM
        if self.pieces.waiting_bytes() > WAITING_BYTES:
            return NOT_TAKEN
        return ""

    def _begin(self):
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        why = self._hindrance()
        if why:
            self.pieces.absent(why)
            self.next_start = time.monotonic() + PIECES_TOGETHER_S
            return
        self.on = self.pieces.begin(EXITED)
        self.due = time.monotonic() + PIECE_S
        self.events_due = self.native.profile_events() + PIECE_EVENTS
        self.bytes_due = resident_bytes() + GROWTH_BYTES
        wanted = {self.activity.CPU} | self._accelerators()
        config = self.profiler.ProfilerConfig(
            self.profiler.ProfilerState.KINETO,
            *(True, False, False, False, False),  # shapes; memory, stack, flops, modules
            self.profiler._ExperimentalConfig(profile_all_threads=True),
        )
        self.native.profile_runs(1)
        try:
            self.autograd._prepare_profiler(config, wanted)
            self.autograd._enable_profiler(config, wanted)
        except Exception as error:
            if is_of_the_program(error):
                raise  # it may run: it is ended like one that does
            self.native.profile_runs(0)
            self.over = True
            piece, self.on = self.on, None
            self.pieces.end(piece, "failed", "PyTorch refused: %s" % error)

    def _accelerators(self):
        """The activities of those that the program uses by now, as far as this PyTorch has them."""
        supported = attempted(lambda: self.autograd._supported_activities()) or ()
        return activities(initialised(attempted), supported)

    def _end(self, state, failure, wait_s):
        """What is open may end within `wait_s`; the program runs on meanwhile."""
        piece = self.on
        if piece is None:
            return
        try:
            self._collect_no_more()
            time.sleep(wait_s)
            result = self.autograd._disable_profiler()
        except BaseException as error:
            self.over = True  # it may run on: the process ends as if it did
            self.pieces.end(piece, "failed", "PyTorch did not end it: %r" % error)
            if isinstance(error, Exception):
                return
            raise  # the program's: Ctrl-C
        finally:
            # Until now: the ITT observer must not leave, and wait for us inside an operator.
            self.on = None
        self.native.profile_runs(0)
        file = self.pieces.file_of(piece)
        path = self.pieces.path(file)
        written = False
        try:
            open(path + ".part", "wb").close()  # libkineto would print why it cannot
            result.save(path + ".part")
            del result
            size, open_threads = look_at(path + ".part")
            self.open_threads |= open_threads
            written = True
            os.rename(path + ".part", path)
        except Exception as error:
            # Else nobody knows which operators are open in it.
            self.over = self.over or not written
            self.pieces.end(piece, "failed", "it could not be written: %s" % error)
            return
        self.pieces.end(piece, state, failure, file, size)

    def _collect_no_more(self):
        """PyTorch warns of it on stderr, unless it is told not to."""
        level = self.log_level
        before, level.value = level.value, LOG_ERRORS
        try:
            self.autograd._toggle_collection_dynamic(False, {self.activity.CPU})
        finally:
            level.value = before

    # ---- the program's own profiler, which wins

    def install(self):
        """Wraps what the program's profilers begin and end with. Never undone: a profile of the
        program may begin before a recording does."""
        if self.installed:
            return
        self.profiler = sys.modules["torch.autograd.profiler"]
        torch = sys.modules["torch"]
        self.autograd = torch._C._autograd
        self.activity = torch._C._profiler.ProfilerActivity
        self.log_level = self._find_log_level(torch)
        if getattr(self.profiler, "_is_profiler_enabled", False):
            self.foreign.add(threading.main_thread().ident)
        for name in ("_prepare_profiler", "_enable_profiler"):
            self._wrap(name, self.give_way)
        self._wrap("_disable_profiler", self._foreign_ends, self._foreign_ended)
        self.installed = True

    @staticmethod
    def _find_log_level(torch):
        import ctypes

        library = os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so")
        return ctypes.c_int.in_dll(ctypes.CDLL(library), "FLAGS_caffe2_log_level")

    def _wrap(self, name, before, after=None):
        original = getattr(self.profiler, name)

        def wrapper(*arguments, **named):
            before()
            try:
                return original(*arguments, **named)
            finally:
                if after is not None:
                    after()

        wrapper.__name__ = name
        wrapper.__wrapped__ = original
        setattr(self.profiler, name, wrapper)

    def give_way(self):
        """The program begins a profile in this thread: ours is over."""
        here = threading.get_ident()
        known = here in self.foreign
        self.foreign.add(here)  # from now on none of ours begins
        try:
            self._cut(OWN_PROFILE)
        except BaseException as error:
            if is_of_the_program(error):
                if not known:
                    self.foreign.discard(here)
                raise

    def _cut(self, why):
        with self.lock:
            self.drop_inherited()
            if not self.on and not (self.generation and why):
                return

        def cut():
            try:
                with self.lock:
                    self._end("cut", why, QUIET_S)
                    if self.generation and why:
                        self.pieces.absent(why)
            except OSError:  # the list is written again
                pass

        # In a signal's handler, on top of us: another thread would wait for ours.
        cut() if self.lock._is_owned() else undisturbed(cut)

    def _foreign_ends(self):
        """One that never began, too: PyTorch would end ours."""
        if threading.get_ident() not in self.foreign:
            self.give_way()

    def _foreign_ended(self):
        self.foreign.discard(threading.get_ident())

    def interrupt(self, work):
        """PyTorch must have no profile of ours while it is done."""
        while True:
            self._cut("")
            with self.lock:
                if not self.on:
                    return work()

    # ---- exit and fork

    def at_exit(self):
        try:
            with self.lock:
                self.over = True
                self._end("complete", "", QUIET_S)
        except Exception:
            pass

    def after_fork(self):
        """In the child, which has no thread of ours, and a copy of a profile that ran."""
        self.lock = threading.RLock()
        self.inherited = self.on is not None
        self.on = None
        self.over = True
        self.generation = 0
        self.pieces.unsaid = False  # the list is the parent's
        if self.inherited:
            self._collect_no_more()

    def drop_inherited(self):
        if self.inherited:
            self.inherited = False
            self.autograd._disable_profiler()
