# SPDX-License-Identifier: Apache-2.0
"""Python's garbage collections as tasks, while Syncline records: a callback in gc.callbacks."""

import ctypes
import gc

from syncline_native import address

# What the callback, which is in C (garbage.c), needs of Python: struct syncline_torch_gc_python.
PYTHON = """
    PyUnicode_AsUTF8AndSize PyErr_Clear Py_IncRef PyDict_GetItemString PyLong_AsLong
    PyList_Size PyList_GetItem PyList_SetSlice PyList_Append
""".split()


class Garbage:
    def __init__(self, native):
        self.native = native
        # The list that Python goes through, whatever the program calls by its name later.
        self.callbacks = gc.callbacks
        self.callback = None
        self.usable = type(self.callbacks) is list

    def enter(self, collector):
        """Also when it is there already: the program may have emptied the list. `collector` is the
        file of ours, or None. Whether tasks can be written."""
        if self.callback is None and self.usable:
            self._make(collector)
            self.usable = self.callback is not None
        if self.usable:
            self.native.gc_put(self.callbacks, self.callback)
        return self.usable

    def leave(self):
        """True unless it is better done at another time."""
        return self.callback is None or self.native.gc_take(self.callbacks, self.callback) == 0

    def _make(self, collector):
        if collector is None or self.native.tasks_start(collector.encode()) != 0:
            return
        functions = (ctypes.c_void_p * len(PYTHON))(*map(address, PYTHON))
        method = self.native.gc_start(functions, id(None))
        if method is None:
            return
        # A prototype of our own: the attributes of ctypes.pythonapi are the program's, too.
        prototype = ctypes.PYFUNCTYPE(ctypes.py_object, *[ctypes.c_void_p] * 3)
        self.callback = prototype(("PyCFunction_NewEx", ctypes.pythonapi))(method, None, None)
