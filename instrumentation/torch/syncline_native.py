# SPDX-License-Identifier: Apache-2.0
"""libsyncline_torch.so as Python sees it; watch.h says what each call does."""

import ctypes
import os
import sys


def address(name):
    """Of a function of Python's."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p)


def is_locked():
    """Without the interpreter's lock other threads go on under our eyes."""
    locked = getattr(sys, "_is_gil_enabled", None)
    return locked is None or locked()


def load(directory):
    """libsyncline_torch.so. Its calls keep the interpreter's lock, but for `stop`."""
    path = os.path.join(directory, "libsyncline_torch.so")
    native = ctypes.PyDLL(path)
    text, i32, u32, u64 = ctypes.c_char_p, ctypes.c_int32, ctypes.c_uint32, ctypes.c_uint64
    native.turn_type = ctypes.CFUNCTYPE(ctypes.c_int, u32)
    native.stacks_type = ctypes.CFUNCTYPE(None, u32)
    native.profile_turn_type = ctypes.CFUNCTYPE(ctypes.c_int, u32)
    for name, result, arguments in (
        (
            "start",
            ctypes.c_int,
            [native.turn_type] + [ctypes.py_object] * 2 + [ctypes.c_void_p] * 5,
        ),
        ("stacks", None, [native.stacks_type]),
        ("frames", ctypes.py_object, [ctypes.py_object] + [ctypes.c_void_p] * 3),
        ("look_start", None, [ctypes.c_void_p] * 2),
        ("look_interval", None, [u64]),
        ("look_here", None, [ctypes.c_int]),
        ("look_forked", None, []),
        ("look_text", ctypes.c_int, [text]),
        ("acted", None, [u32, ctypes.c_int]),
        ("again", ctypes.c_int, []),
        ("gate", u32, []),
        ("operators", None, [ctypes.c_int]),
        ("group", None, [text, text, text, i32, u32, u64]),
        ("collective", None, [text, text, u64, u64]),
        ("root", None, [text, i32]),
        ("transfer_begin", u64, [text, text, i32, i32, u64]),
        ("transfer_end", None, [u64, i32, u64]),
        ("spent", None, [u64]),
        ("tasks_start", ctypes.c_int, [text]),
        ("mark", ctypes.c_int, [text]),
        ("wait_begin", None, []),
        ("wait_end", None, []),
        ("gc_start", ctypes.c_void_p, [ctypes.c_void_p] * 2),
        ("gc_put", None, [ctypes.py_object] * 2),
        ("gc_take", ctypes.c_int, [ctypes.py_object] * 2),
        ("gc_forked", None, []),
        ("profile_start", ctypes.c_int, [native.profile_turn_type]),
        ("profile_runs", None, [ctypes.c_int]),
        ("profile_events", u64, []),
        ("profile_forked", None, []),
    ):
        function = getattr(native, "syncline_torch_" + name)
        function.restype, function.argtypes = result, arguments
        setattr(native, name, function)
    of_python = [address("PyObject_CallObject"), None, None]
    if hasattr(ctypes.pythonapi, "PyGC_Disable"):  # from Python 3.10 on
        of_python[1:] = address("PyGC_Disable"), address("PyGC_Enable")
    # {thread: frame}: what holds these frames when it ends keeps what their variables hold.
    native.current_frames = lambda: native.frames(sys._current_frames, *of_python)
    native.stop = ctypes.CDLL(path).syncline_torch_stop
    native.profile_stop = ctypes.CDLL(path).syncline_torch_profile_stop
    return native
