# SPDX-License-Identifier: Apache-2.0
"""Where the threads that train stand in Python, now and then, while something is recorded.

Used by syncline_torch.py. The native thread looks (look.c), 50 to 150 ms behind the last time, at
random. For each thread in which PyTorch is observed (syncline_operators.py) a task of no length of
the domain "syncline" says, on the native thread's own lane, where that thread stands:

    python TID: OWN < CALLER < CALLER > INNERMOST

OWN is the innermost frame of the program's own code, "-" where there is none, and up to three of
its callers are. INNERMOST is the frame that runs, left out where it is OWN. A frame is "function
(file:line)"; of a file there are the last two parts of its path, of a library's what is behind
site-packages. Where the thread stood when it was looked for is not always known:

    python TID: keeps the lock

analysis/why/task_names.h reads it.
"""

import ctypes
import os
import sys

import syncline_native

# In the order of syncline_torch_look_python.
PYTHON = """
    PyGILState_Ensure PyGILState_Release PyInterpreterState_Main PyInterpreterState_ThreadHead
    PyThreadState_Next PyThreadState_Get PyThreadState_GetID PyThreadState_GetFrame PyFrame_GetBack
    PyFrame_GetCode PyFrame_GetLineNumber PyObject_GetAttrString PyUnicode_AsUTF8AndSize Py_DecRef
    PyErr_Clear
""".split()
COLLECTOR = ["PyGC_Disable", "PyGC_Enable"]


def libraries():
    """Folders whose code is not the program's own; besides those, what is below site-packages."""
    files = [os.__file__, __file__, getattr(sys.modules.get("torch"), "__file__", None)]
    return [os.path.dirname(os.path.abspath(file)) + os.sep for file in files if file]


def start(native):
    """Once. Whether there is what is needed: Python 3.9, and its lock."""
    names = PYTHON + (COLLECTOR if hasattr(ctypes.pythonapi, COLLECTOR[0]) else [])
    if not syncline_native.is_locked() or sys.version_info < (3, 9):
        return False
    functions = (ctypes.c_void_p * len(PYTHON + COLLECTOR))(*map(syncline_native.address, names))
    folders = [os.fsencode(folder) for folder in libraries()]
    folders = (ctypes.c_char_p * (len(folders) + 1))(*folders)
    start.kept = functions, folders  # as long as the process lives
    native.look_start(*start.kept)
    return True


def know_interval(native):
    """The program may have changed it."""
    native.look_interval(int(sys.getswitchinterval() * 1e9))
