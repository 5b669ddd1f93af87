# SPDX-License-Identifier: Apache-2.0
"""What our libraries ask of the programs into which they are planted, read from the files.

Usage: planted_libraries_test.py LIBRARY ...

A library that wants a newer C library than the machine has does not load; opened by a static part
or by ourselves that is harmless (the program runs, nothing is recorded), and still a node lost. So
the need is pinned here. GLIBC_2.34 is where dlopen, dlsym and pthread_* moved into libc.so.6, and
LTTng-UST's own headers call dlopen: every system that packages lttng-ust 2.13, which the providers
need anyway, has at least that.
"""

import os
import re
import subprocess
import sys
import unittest

LIBRARIES = []
GLIBC_MAX = (2, 34)
NEEDED = {"libc.so.6", "libsyncline_block.so", "liblttng-ust.so.1", "liblttng-ust-common.so.1"}
EXPORTS = {
    "libsyncline_itt.so": {"__itt_api_init", "__itt_api_fini"},
    "libsyncline_itt_provider.so": {"syncline_itt_emit"},
    "libsyncline_net.so": set(
        "accept accept4 close connect dup dup2 dup3 listen read __read_chk readv recv __recv_chk "
        "recvfrom __recvfrom_chk recvmmsg recvmsg send sendfile sendfile64 sendmmsg sendmsg sendto "
        "shutdown socket write writev".split()
    ),
    "libsyncline_net_provider.so": {"syncline_net_emit"},
    "libsyncline_provider.so": {"syncline_emit", "syncline_emit_canary"},
}


def read(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Planted(unittest.TestCase):
    def setUp(self):
        self.assertGreaterEqual(len(LIBRARIES), 4)

    def test_the_newest_c_library_they_need(self):
        for path in LIBRARIES:
            with self.subTest(os.path.basename(path)):
                versions = re.findall(r"GLIBC_(\d+)\.(\d+)", read("objdump", "-T", path))
                newest = max(tuple(map(int, version)) for version in versions)
                self.assertLessEqual(newest, GLIBC_MAX)

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
