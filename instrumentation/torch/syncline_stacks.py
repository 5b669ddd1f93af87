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
import re
import sys
import threading
from time import monotonic_ns

import syncline_native

BYTES = 240_000  # the agent reads no more than 256 KiB
STACKS = 64
NAMES = 8  # of threads with the same stack
INNER, OUTER = 48, 16  # frames of a stack; those between are counted
WALKED = 10_000
TEXT = 256
GROUPS = 256
# PyTorch's flight recorder has 2000 entries unless the program asks for more. It is written out and
# looked through with the interpreter's lock held.
RECORDED = 4_000
# Its keys come in this order, and no text of the program's has a bare quotation mark.
ENTRY = re.compile(
    rb'\{"collective_seq_id":(\d+),.*?"is_p2p":(true|false),.*?"pg_id":(\d+),'
    rb'"process_group":\["((?:[^"\\]|\\.)*)".*?"profiling_name":"([^"]*)".*?"retired":(true|false)',
    re.DOTALL,
)
VERSION = re.compile(r"(\d+)\.(\d+)")


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


def _look(frames):
    """{thread: places}, of all threads but this one."""
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


def _threads(looked):
    """Threads with the same stack together, the main thread's first."""
    main = threading.main_thread().ident
    known = dict(threading._active)
    same = {}
    for thread, places in looked.items():
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


def _makes_group(looked):
    """Whether a thread makes a process group."""
    for places in looked.values():
        for code, _ in places:
            if code.co_name == "_new_process_group_helper":
                return True
    return False


def _recorded():
    """What PyTorch's flight recorder has of each group, by its name as JSON has it: collectives
    only. (The other numbers that a group has may count its transfers, too.) It has them of Gloo;
    NCCL's recorder is another one, which asks the device, and is left alone.

    Of a name the newest group counts: those that were destroyed stay recorded, and the next one of
    the name counts from 1. No JSON is parsed: so many objects at once set off Python's collector,
    and finalizers of the program's would run here."""
    dump = getattr(sys.modules.get("torch._C._distributed_c10d"), "_dump_fr_trace_json", None)
    for variable in ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"):
        if int(os.environ.get(variable) or 0) > RECORDED:
            return {}
    if dump is None:
        return {}
    text = dump(True, False)
    groups = {}
    found = 0
    for entry in ENTRY.finditer(text):
        found += 1
        number, transfer, made, name, collective, ended = entry.groups()
        number, made, pending = int(number), int(made), ended == b"false"
        group = groups.get(name)
        if group is None or made > group[0]:
            group = groups[name] = (made, {})
        if made < group[0] or transfer == b"true":
            continue
        group = group[1]
        collective = collective.rpartition(b":")[2].decode("utf-8", "replace")[:TEXT]
        if number >= group.get("collective_number", 0):
            group.update(
                collective_number=number, collective=collective, collective_pending=pending
            )
        if pending and number <= group.get("pending_number", number):
            group.update(pending_number=number, pending=collective)
    if not found == text.count(b'"pg_id":') == text.count(b'"collective_seq_id":'):
        return {}  # it is written otherwise than it was
    return {name: group for name, (_, group) in groups.items()}


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


def _kind(config):
    """"gloo" of "cpu:gloo,cuda:gloo"; a group that has several kinds keeps its text."""
    kinds = {part.rpartition(":")[2] for part in config.split(",")}
    return kinds.pop() if len(kinds) == 1 else config


def _number_of_gloo(group):
    """Groups that were made for several devices may not say it themselves."""
    device = sys.modules["torch"].device("cpu")
    return group._get_backend(device)._get_sequence_number_for_group()


def _counts_collectives(kind):
    """Before PyTorch 2.13 NCCL's counter counted some transfers as well. A group of several kinds
    has a counter for each."""
    if ":" in kind:
        return False
    version = VERSION.match(sys.modules["torch"].__version__)
    return version is not None and (int(version[1]), int(version[2])) >= (2, 13)


def _is_wrapped():
    """Whether groups are wrapped into others that check them: what these count is another thing."""
    if os.environ.get("TORCH_DISTRIBUTED_DEBUG", "").upper() == "DETAIL":
        return True
    c10d = sys.modules["torch._C._distributed_c10d"]
    return c10d.get_debug_level() == c10d.DebugLevel.DETAIL


def _group(world, group, ranges, recorded, numbered):
    members = world.pg_group_ranks.get(group)
    if not members:
        return None
    in_order = sorted(members, key=members.get)
    name = world.pg_names[group]
    config = getattr(world, "pg_backend_config", {}).get(group) or world.pg_map[group][0]
    kind = _kind(str(config))
    own = group.rank()
    number = None
    if numbered and kind == "gloo":
        number = _attempt(_number_of_gloo, group)
    if numbered and number is None and (kind == "gloo" or _attempt(_counts_collectives, kind)):
        number = _attempt(group._get_sequence_number_for_group)
    answer = {
        "name": name[:TEXT],
        "description": getattr(group, "group_desc", "")[:TEXT],
        "ranks": ranges(in_order),
        "rank": in_order[own] if 0 <= own < len(in_order) else -1,
        "backend": kind[:TEXT],
        "sequence_number": -1 if number is None else number,
    }
    if kind == "gloo" and number is not None:
        last = recorded.get(json.dumps(name, ensure_ascii=False)[1:-1].encode("utf-8"), {})
        # What is recorded of another one, which had this name, says nothing of this one.
        if last.get("collective_number", 0) <= number:
            answer.update(last)
    return answer


def _groups(ranges, inherited, looked):
    """Of a forked child nothing is asked of PyTorch before it has groups of its own: a lock of
    PyTorch's may be one that its parent held."""
    known = [group for group in _known_groups() if id(group) not in inherited]
    if not known:
        return []
    world = _world()
    numbered = _attempt(_is_wrapped) is False
    recorded = {}
    # PyTorch writes its recorder out without the lock under which a new group enters it.
    if numbered and not _makes_group(looked):
        recorded = _attempt(_recorded) or {}
    answers = [
        _attempt(_group, world, group, ranges, recorded, numbered) for group in known[:GROUPS]
    ]
    return [answer for answer in answers if answer is not None]


class Stacks:
    def __init__(self, native, ranges):
        self.native = native
        self.ranges = ranges
        self.inherited = set()
        runtime = os.environ.get("SYNCLINE_RUNTIME_DIR")
        runtime = runtime or "/dev/shm/syncline-%d" % os.geteuid()
        self.directory = os.path.join(runtime, "stacks")

    def listen(self):
        self.callback = self.native.stacks_type(self.answer)  # lives as long as the process
        self.native.stacks(self.callback)

    def after_fork(self):
        """The groups of the parent are not this process's, although it finds them here."""
        self.inherited = set(map(id, _attempt(_known_groups) or ()))

    def answer(self, number):
        """Called by the native thread. Nothing leaves it: whoever asked hears no answer."""
        if not syncline_native.is_locked():
            return
        begin = monotonic_ns()
        try:
            self._write(number, begin)
        except BaseException:
            pass
        finally:
            self.native.spent(monotonic_ns() - begin)

    def _write(self, number, begin):
        looked = _look(self.native.current_frames())
        threads = _threads(looked)
        answer = {"format_version": 1, "number": number, "begin_ns": begin}
        answer["threads"] = threads[:STACKS]
        answer["groups"] = _attempt(_groups, self.ranges, self.inherited, looked) or []
        while True:
            shown = sum(one["count"] for one in answer["threads"])
            answer["threads_left_out"] = sum(one["count"] for one in threads) - shown
            text = json.dumps(answer).encode("ascii")
            if len(text) <= BYTES or len(answer["threads"]) <= 1:
                break
            answer["threads"] = answer["threads"][: len(answer["threads"]) // 2]
        if not os.path.isdir(self.directory):
            os.mkdir(self.directory, 0o700)
        namespace = os.stat("/proc/self/ns/pid").st_ino
        stem = "%d-%d-%d" % (namespace, os.getpid(), start_ticks())
        path = os.path.join(self.directory, stem + ".stacks")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(path + ".new", flags, 0o600)
        try:
            whole = os.write(file, text) == len(text)
        except OSError:
            whole = False
        os.close(file)
        if whole:
            os.rename(path + ".new", path)
        else:
            os.unlink(path + ".new")
