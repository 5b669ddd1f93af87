# SPDX-License-Identifier: Apache-2.0
"""Signals of the program's that come while the hook runs: Python calls their handlers in the main
thread, whatever that does, and some leave what they interrupt (sys.exit, a time limit)."""

import _thread
import functools
import signal
import threading
import types


def _code(handler):
    """What runs when the handler is called."""
    if not callable(handler):  # SIG_DFL
        return None
    while isinstance(handler, functools.partial):
        handler = handler.func
    for called in (handler, getattr(type(handler), "__call__", None)):
        code = getattr(called, "__code__", None)
        if isinstance(code, types.CodeType):
            return code
    return None


def is_of_the_program(error):
    """Whether it was raised by a handler of the program's: then it is the program's to catch."""
    if not isinstance(error, Exception):
        return True  # nothing of ours, and of PyTorch's, raises such
    try:
        handlers = {_code(signal.getsignal(number)) for number in signal.valid_signals()}
    except Exception:  # a handler that is no common object
        return False
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            return True
        traceback = traceback.tb_next
    return False


def attempted(call, *arguments):
    """None for what fails, unless the program made it fail."""
    try:
        return call(*arguments)
    except Exception as error:
        if is_of_the_program(error):
            raise
        return None


def undisturbed(work):
    """Has it done, all of it, also when a handler leaves this call before it is over."""
    over = threading.Lock()
    over.acquire()

    def do():
        try:
            work()
        finally:
            over.release()

    if threading.get_ident() != threading.main_thread().ident:
        return work()
    try:
        _thread.start_new_thread(do, ())  # not threading's, of which the program knows
    except RuntimeError:  # there is no room for one
        return work()
    over.acquire()
