# SPDX-License-Identifier: Apache-2.0
"""`python3 -m tests.testbed [NAME...]`: makes hosts (default master-0 worker-0), tells how to reach
them and keeps them until Ctrl-C or `-- COMMAND...` ends."""

import argparse
import os
import signal
import subprocess
import sys

from tests.testbed.testbed import HostSpec, Testbed, TestbedError


def describe(bed):
    for host in bed.hosts:
        spec = host.spec
        print(
            f"{host.name:12} {host.address:14} monotonic +{spec.monotonic_offset_ns} ns, "
            f"wall clock wrong by {spec.wall_error_ns:+d} ns",
            flush=True,
        )
    print(
        f"enter:      ssh -F {bed.ssh_config} {bed.hosts[0].name}\nhosts file: {bed.hosts_file}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(prog="python3 -m tests.testbed", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="draws the clock errors (default 1)")
    parser.add_argument(
        "names",
        nargs="*",
        default=["master-0", "worker-0"],
        help="hosts; the role is what stands before the dash",
    )
    arguments, command = sys.argv[1:], None
    if "--" in arguments:
        at = arguments.index("--")
        arguments, command = arguments[:at], arguments[at + 1 :]
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    specs = [HostSpec(name, role=name.split("-")[0]) for name in options.names]
    try:
        with Testbed(specs, seed=options.seed) as bed:
            describe(bed)
            if command:
                environment = {
                    **os.environ,
                    "SYNCLINE_HOSTS": bed.hosts_file,
                    "SYNCLINE_SSH_CONFIG": bed.ssh_config,
                }
                return subprocess.run(command, env=environment, check=False).returncode
            print("Ctrl-C removes them.", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        pass
    except TestbedError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
