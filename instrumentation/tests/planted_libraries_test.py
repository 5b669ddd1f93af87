# SPDX-License-Identifier: Apache-2.0
"""What our libraries ask of the programs into which they are planted, read from the files.

Usage: planted_libraries_test.py LIBRARY ...

The environment of a job is inherited by what runs in containers with older systems. A preloaded
library that wants a newer C library than is there keeps every dynamic program there from starting;
one that is opened later does not load, which is harmless (the program runs, nothing is recorded),
and still a node lost. So the need is pinned here (instrumentation/old_glibc.h).
"""

import os
import re
import subprocess
import sys
import unittest

LIBRARIES = []
GLIBC_MAX = (2, 28)
PRELOADED = {
    "libsyncline_net.so",
    "libsyncline_block.so",
    "libsyncline_level_zero.so",
    "libsyncline_rocm.so",
}
GLIBC_MAX_PRELOADED = (2, 17)
NEEDED = {
    "libc.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "libsyncline_block.so",
    "liblttng-ust.so.1",
    "liblttng-ust-common.so.1",
}
EXPORTS = {
    "libsyncline_cuda.so": {"InitializeInjection"},
    "libsyncline_itt.so": {"__itt_api_init", "__itt_api_fini"},
    "libsyncline_itt_provider.so": {"syncline_itt_emit"},
    "libsyncline_level_zero.so": {"zeInit", "zeInitDrivers"},
    "libsyncline_net.so": set(
        "accept accept4 close connect dup dup2 dup3 fcntl fcntl64 listen open read __read_chk "
        "readv recv __recv_chk recvfrom __recvfrom_chk recvmmsg recvmsg sem_timedwait send "
        "sendfile sendfile64 sendmmsg sendmsg sendto setsockopt shm_open shutdown socket write "
        "writev".split()
    ),
    "libsyncline_nccl.so": {f"ncclProfiler_v{version}" for version in range(4, 8)},
    "libsyncline_net_provider.so": {"syncline_net_emit"},
    "libsyncline_opencl.so": {
        "clGetLayerInfo",
        "clInitLayer",
        "clInitLayerWithProperties",
        "clDeinitLayer",
    },
    "libsyncline_provider.so": {"syncline_emit", "syncline_emit_canary"},
    "libsyncline_rocm.so": set(),
    "libsyncline_rocm_tool.so": {"rocprofiler_configure", "syncline_rocm_start"},
}


def read(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Planted(unittest.TestCase):
    def setUp(self):
        self.assertGreaterEqual(len(LIBRARIES), 4)

    def test_the_newest_c_library_they_need(self):
        for path in LIBRARIES:
            with self.subTest(os.path.basename(path)):
                table = read("readelf", "--version-info", "--wide", path)
                versions = re.findall(r"GLIBC_(\d+)\.(\d+)", table)
                newest = max(tuple(map(int, version)) for version in versions)
                preloaded = os.path.basename(path) in PRELOADED
                self.assertLessEqual(newest, GLIBC_MAX_PRELOADED if preloaded else GLIBC_MAX)

    def test_where_old_c_libraries_have_it(self):
        """Old ones have dlsym and pthread_key_create in libraries of their own: without these a
        program does not start that needs none of them itself."""
        block = next(path for path in LIBRARIES if path.endswith("libsyncline_block.so"))
        needed = re.findall(r"NEEDED\s+(\S+)", read("objdump", "-p", block))
        self.assertLessEqual({"libdl.so.2", "libpthread.so.0"}, set(needed))

    def test_the_libraries_they_need(self):
        for path in LIBRARIES:
            with self.subTest(os.path.basename(path)):
                needed = set(re.findall(r"NEEDED\s+(\S+)", read("objdump", "-p", path)))
                self.assertLessEqual({n for n in needed if not n.startswith("ld-linux")}, NEEDED)
                if "provider" not in path:  # these must load where LTTng is missing
                    self.assertFalse([n for n in needed if "lttng" in n])

    def test_they_stay_and_are_bound_at_once(self):
        for path in LIBRARIES:
            with self.subTest(os.path.basename(path)):
                flags = read("readelf", "-d", path)
                self.assertIn("NODELETE", flags)
                self.assertIn("BIND_NOW", flags)
                self.assertRegex(flags, r"RUNPATH.*\$ORIGIN")

    def test_static_tls_is_small(self):
        """Room for it is scarce (about 1.6 KiB for all libraries that a program opens late)."""
        for path in LIBRARIES:
            with self.subTest(os.path.basename(path)):
                for segment in re.findall(r"^\s+TLS\s+(.*)$", read("readelf", "-lW", path), re.M):
                    self.assertLessEqual(int(segment.split()[4], 16), 16)

    def test_what_they_export(self):
        for path in LIBRARIES:
            with self.subTest(os.path.basename(path)):
                table = read("nm", "-D", "--defined-only", path)
                names = {line.split()[-1].split("@")[0] for line in table.splitlines()}
                ours = {n for n in names if not re.match(r"_*lttng|__(start|stop)_", n)}
                name = os.path.basename(path)
                if name in EXPORTS:
                    self.assertEqual(ours, EXPORTS[name])
                else:
                    self.assertFalse([n for n in ours if not n.startswith("syncline_")])


if __name__ == "__main__":
    LIBRARIES = sys.argv[1:]
    unittest.main(argv=sys.argv[:1], verbosity=2)
