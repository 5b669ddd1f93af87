# SPDX-License-Identifier: Apache-2.0
"""`syncline stacks`: where this process's Python threads stand, and its process groups.

Used by syncline_torch.py. The native thread calls `Stacks.answer` when the agent asks, recording or
not; the answer is a file below the runtime directory, from where the agent takes it
(agent/stacks/stack_answer.h reads it). Of the program's code it says file, function and line
number, no values and no source. The main thread may be inside a call of C's meanwhile, as long as
that has released the interpreter's lock: whoever keeps it cannot be looked at from here.

Nothing is imported and no lock of Python's is taken: the program may fork at any moment.
"""

import _thread
import json
import os
import sys
import threading
from time import monotonic_ns

BYTES = 240_000  # the agent reads no more than 256 KiB
STACKS = 64
NAMES = 8  # of threads with the same stack
INNER, OUTER = 48, 16  # frames of a stack; those between are counted
WALKED = 10_000
TEXT = 256
GROUPS = 256
# PyTorch's flight recorder has 2000 entries unless the program asks for more.
RECORDED = 20_000


def start_ticks():
    with open("/proc/self/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


def _places(frame):
    """[(code, line)], innermost first. No frame is kept: what its variables hold would die here."""
    places = []
    while frame is not None and len(places) < WALKED:
        places.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return places


def _look():
    """{thread: places}, of all threads but this one."""
    frames = sys._current_frames()
    frames.pop(_thread.get_ident(), None)
    found = {}
    while frames:
        thread, frame = frames.popitem()
        found[thread] = _places(frame)
        frame = None
    return found


def _frame(place):
    code, line = place
    name = getattr(code, "co_qualname", code.co_name)  # Python 3.11 has it
    return [name[:TEXT], code.co_filename[-TEXT:], line or 0]


def _threads():
    """Threads with the same stack together, the main thread's first."""
    main = threading.main_thread().ident
    known = dict(threading._active)
    same = {}
    for thread, places in _look().items():
        key = tuple((id(code), line) for code, line in places)
        same.setdefault(key, ([], places))[0].append(thread)
    answers = []
    for threads, places in same.values():
        threads.sort(key=lambda thread: thread != main)
        names = [vars(known[one]).get("_name") for one in threads if one in known]
        shown = places
        if len(places) > INNER + OUTER:
            shown = places[:INNER] + places[-OUTER:]
        answers.append(
            {
                "names": [name[:TEXT] for name in names if type(name) is str][:NAMES],
                "count": len(threads),
                "main": threads[0] == main,
                "frames": [_frame(place) for place in shown],
                "left_out": len(places) - len(shown),
                "left_out_behind": INNER - 1,
            }
        )
    answers.sort(key=lambda answer: (not answer["main"], -answer["count"], answer["names"]))
    return answers


def _recorded():
    """What PyTorch's flight recorder has of each group, by its name: collectives only. (The other
    numbers that a group has may count its transfers, too.) It has them of Gloo; NCCL's recorder is
    another one, which asks the device, and is left alone."""
    dump = getattr(sys.modules.get("torch._C._distributed_c10d"), "_dump_fr_trace_json", None)
    if dump is None or int(os.environ.get("TORCH_FR_BUFFER_SIZE") or 0) > RECORDED:
        return {}
    groups = {}
    for entry in json.loads(dump(True, False))["entries"]:
        if entry["is_p2p"]:
            continue
        group = groups.setdefault(entry["process_group"][0], {})
        number = entry["collective_seq_id"]
        name = entry["profiling_name"].rpartition(":")[2][:TEXT]
        if number >= group.get("collective_number", 0):
            pending = not entry["retired"]
            group.update(collective_number=number, collective=name, collective_pending=pending)
        if not entry["retired"] and number <= group.get("pending_number", number):
            group.update(pending_number=number, pending=name)
    return groups


def _attempt(call, *arguments):
    try:
        return call(*arguments)
    except Exception:
        return None


def _world():
    return getattr(sys.modules.get("torch.distributed.distributed_c10d"), "_world", None)


def _known_groups():
    """{group: (backend, store)}"""
    world = _world()
    return dict(world.pg_map) if world is not None else {}


def _groups(ranges, inherited):
    """Of a forked child nothing is asked of PyTorch before it has groups of its own: a lock of
    PyTorch's may be one that its parent held."""
    known = {group: how for group, how in _known_groups().items() if id(group) not in inherited}
    if not known:
        return []
    world = _world()
    recorded = _attempt(_recorded) or {}
    answers = []
    for group, how in list(known.items())[:GROUPS]:
        members = world.pg_group_ranks.get(group)
        if not members:
            continue
        in_order = sorted(members, key=members.get)
        name = world.pg_names[group]
        number = _attempt(group._get_sequence_number_for_group)
        own = group.rank()
        answer = {
            "name": name[:TEXT],
            "description": getattr(group, "group_desc", "")[:TEXT],
            "ranks": ranges(in_order),
            "rank": in_order[own] if 0 <= own < len(in_order) else -1,
            "backend": str(how[0])[:TEXT],
            "sequence_number": -1 if number is None else number,
        }
        answer.update(recorded.get(name, {}))
        answers.append(answer)
    return answers


class Stacks:
    def __init__(self, native, ranges):
        self.native = native
        self.ranges = ranges
        self.inherited = set()

    def after_fork(self):
        """The groups of the parent are not this process's, although it finds them here."""
        self.inherited = set(map(id, _attempt(_known_groups) or ()))

    def answer(self, number):
        """Called by the native thread. Nothing leaves it: whoever asked hears no answer."""
        begin = monotonic_ns()
        try:
            self._write(number)
        except BaseException:
            pass
        finally:
            self.native.spent(monotonic_ns() - begin)

    def _write(self, number):
        threads = _threads()
        answer = {"format_version": 1, "number": number, "threads": threads[:STACKS]}
        answer["groups"] = _attempt(_groups, self.ranges, self.inherited) or []
        while True:
            shown = sum(one["count"] for one in answer["threads"])
            answer["threads_left_out"] = sum(one["count"] for one in threads) - shown
            text = json.dumps(answer).encode("ascii")
            if len(text) <= BYTES or len(answer["threads"]) <= 1:
                break
            answer["threads"] = answer["threads"][: len(answer["threads"]) // 2]
        runtime = os.environ.get("SYNCLINE_RUNTIME_DIR")
        directory = os.path.join(runtime or "/dev/shm/syncline-%d" % os.geteuid(), "stacks")
        if not os.path.isdir(directory):
            os.mkdir(directory, 0o700)
        namespace = os.stat("/proc/self/ns/pid").st_ino
        stem = "%d-%d-%d" % (namespace, os.getpid(), start_ticks())
        path = os.path.join(directory, stem + ".stacks")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(path + ".new", flags, 0o600)
        try:
            whole = os.write(file, text) == len(text)
        finally:
            os.close(file)
        if whole:
            os.rename(path + ".new", path)
