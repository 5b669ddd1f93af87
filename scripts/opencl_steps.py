# SPDX-License-Identifier: Apache-2.0
"""An OpenCL program whose device does next to nothing: opencl_steps.py FILE

In a step it enqueues 1,000 kernels of one work item each on one queue, and waits for the last of
them. The count of steps is a little-endian u64 at the beginning of FILE, for whoever maps it too.
"""

import ctypes
import mmap
import struct
import sys

KERNELS = 1000  # of a step
SOURCE = b"kernel void one(global int* a) { a[0] += 1; }"
READ_WRITE = 1
ANY_DEVICE = 0xFFFFFFFF


class OpenCl:
    """The calls of libOpenCL by their names; one that fails ends the program."""

    def __init__(self):
        self._library = ctypes.CDLL("libOpenCL.so.1")

    def call(self, name, *arguments):
        """A call that returns its error."""
        error = getattr(self._library, name)(*arguments)
        if error:
            sys.exit(f"opencl_steps: {name}: {error}")

    def make(self, name, *arguments):
        """A call that returns what it makes; its last argument is where the error goes."""
        function = getattr(self._library, name)
        function.restype = ctypes.c_void_p
        error = ctypes.c_int()
        made = function(*arguments, ctypes.byref(error))
        if error.value:
            sys.exit(f"opencl_steps: {name}: {error.value}")
        return ctypes.c_void_p(made)


def main():
    with open(sys.argv[1], "r+b") as file:
        memory = mmap.mmap(file.fileno(), 8)
    opencl = OpenCl()
    platform, device = ctypes.c_void_p(), ctypes.c_void_p()
    opencl.call("clGetPlatformIDs", 1, ctypes.byref(platform), None)
    any_device = ctypes.c_ulong(ANY_DEVICE)
    opencl.call("clGetDeviceIDs", platform, any_device, 1, ctypes.byref(device), None)
    context = opencl.make("clCreateContext", None, 1, ctypes.byref(device), None, None)
    queue = opencl.make("clCreateCommandQueue", context, device, ctypes.c_ulong(0))
    source = ctypes.c_char_p(SOURCE)
    program = opencl.make("clCreateProgramWithSource", context, 1, ctypes.byref(source), None)
    opencl.call("clBuildProgram", program, 0, None, None, None, None)
    kernel = opencl.make("clCreateKernel", program, ctypes.c_char_p(b"one"))
    size = ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
    buffer = opencl.make("clCreateBuffer", context, ctypes.c_ulong(READ_WRITE), size, None)
    pointer = ctypes.c_size_t(ctypes.sizeof(ctypes.c_void_p))
    opencl.call("clSetKernelArg", kernel, 0, pointer, ctypes.byref(buffer))
    one = ctypes.byref(ctypes.c_size_t(1))
    step = 0
    while True:
        for _ in range(KERNELS):
            opencl.call("clEnqueueNDRangeKernel", queue, kernel, 1, None, one, None, 0, None, None)
        opencl.call("clFinish", queue)
        step += 1
        struct.pack_into("<Q", memory, 0, step)


if __name__ == "__main__":
    main()
