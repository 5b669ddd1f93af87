# SPDX-License-Identifier: Apache-2.0
"""How long the PyTorch hook needs to see where a thread stands in Python.

Usage: places_bench.py BUILD_DIRECTORY. PyTorch is not needed. The stack is made anew for each look,
so that Python makes its frame objects each time; the call through ctypes is in the numbers, taking
the interpreter's lock and writing the mark are not.
"""

import ctypes
import os
import sys
import time

HOOK = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "torch")
LOOKS = 2000
DEPTHS = (10, 40, 150)


def measure(native, depth):
    buffer = ctypes.create_string_buffer(1024)
    took_ns = []

    def deep(frames):
        if frames > 1:
            deep(frames - 1)
            return
        begin = time.perf_counter_ns()
        native.look_text(buffer)
        took_ns.append(time.perf_counter_ns() - begin)

    for _ in range(LOOKS):
        deep(depth)
        time.sleep(0.001)  # as the caches are after a pause
    took_ns.sort()
    print(f"{depth:4} frames: median {took_ns[LOOKS // 2] / 1e3:.1f} us", end="")
    print(f", 99 of 100 below {took_ns[LOOKS * 99 // 100] / 1e3:.1f} us")


if __name__ == "__main__":
    sys.path.insert(0, HOOK)
    import syncline_native
    import syncline_places

    library = syncline_native.load(os.path.join(os.path.abspath(sys.argv[1]), "lib"))
    # All of this file's frames are a library's then: the whole stack is walked.
    syncline_places.__file__ = __file__
    syncline_places.start(library)
    for frames in DEPTHS:
        measure(library, frames)
