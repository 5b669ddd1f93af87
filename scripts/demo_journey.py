# SPDX-License-Identifier: Apache-2.0
"""The demo: a real job on two (simulated) machines, recorded at once, merged into one timeline.

Makes two hosts on this machine, each with its own network, processes, session daemon and clocks,
and a wall clock that is wrong on purpose. Then it does only what a user would: certificates,
deployment, job, recording and merge through fabfile.py and the syncline command. With --fault one
of the two ranks gets a fault, and `syncline why` says which one and why. Everything it makes is
removed at the end, also after Ctrl-C; the recording stays.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, REPOSITORY)

from scripts import demo_fault  # noqa: E402  (after the path is set)
from tests.testbed import HostSpec, Testbed, TestbedError  # noqa: E402  (after the path is set)


@dataclasses.dataclass(frozen=True)
class Job:
    """A real training job, and where the hosts see its framework, as if it were installed there; of
    the checkout they see nothing."""

    example: str
    command: str
    environment: str  # of the checkout
    host_environment: str
    hosts: tuple  # (name, role)
    collective: bool  # its timeline begins with its process groups

    def environment_path(self):
        return os.path.join(REPOSITORY, self.environment)


TENSORFLOW = Job(
    example="tensorflow_two_partitions",
    command="env TF_CPP_MIN_LOG_LEVEL=2 /opt/tensorflow/bin/python {role}.py",
    environment=".venv-tensorflow",
    host_environment="/opt/tensorflow",
    hosts=(("master-0", "master"), ("worker-0", "worker")),
    collective=False,
)
PYTORCH = Job(
    example="pytorch_ddp",
    command="env GLOO_SOCKET_IFNAME=eth0 /opt/torch/bin/python train.py",
    environment=".venv-torch",
    host_environment="/opt/torch",
    hosts=(("rank-0", ""), ("rank-1", "")),
    collective=True,
)


class StepFailed(Exception):
    """A command of the journey failed; it has said why itself."""


class Journey:
    """Runs the commands of the walk, each under a heading."""

    def __init__(self, bed, out, work):
        self.out = out
        self._fab = [
            os.path.join(REPOSITORY, ".venv", "bin", "fab"),
            "-r",
            REPOSITORY,
            "-S",
            bed.ssh_config,
        ]
        build = os.path.join(REPOSITORY, "build")
        self._environment = {
            **os.environ,
            "PATH": os.path.join(build, "bin") + ":" + os.environ["PATH"],
            "SYNCLINE_BUILD": build,
            "SYNCLINE_HOSTS": bed.hosts_file,
            "SYNCLINE_TLS_DIR": os.path.join(work, "tls"),
        }

    def fab(self, title, *arguments):
        heading(f"{title}: fab {shlex.join(arguments)}")
        self._run([*self._fab, *arguments], fine=(0,))

    def syncline(self, title, *arguments):
        heading(f"{title}: syncline {shlex.join(arguments)}")
        self._run(["syncline", *arguments], fine=(0, 3))

    def clock_difference(self, local, remote):
        """remote's trace clock less local's and its bound, from what `syncline clocks` says."""
        command = ["syncline", "clocks", self.out, "--json"]
        text = subprocess.run(
            command, env=self._environment, check=True, capture_output=True, text=True
        ).stdout
        edges = {(edge["local"], edge["remote"]): edge for edge in json.loads(text)["edges"]}
        if (local, remote) in edges:  # they probed each other
            return edges[local, remote]["offset_ns"], edges[local, remote]["bound_worst_ns"]
        here, there = edges["coordinator", local], edges["coordinator", remote]
        bound_ns = here["bound_worst_ns"] + there["bound_worst_ns"]
        return there["offset_ns"] - here["offset_ns"], bound_ns

    def quietly(self, *arguments):
        """A fab task whose failure changes nothing any more."""
        subprocess.run(
            [*self._fab, *arguments],
            env=self._environment,
            check=False,
            timeout=90,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _run(self, command, fine):
        code = subprocess.run(command, env=self._environment, check=False).returncode
        if code not in fine:
            raise StepFailed(
                f"{shlex.join(command[-4:])} failed (exit {code}); what it printed says why."
            )


def heading(text):
    print(f"\n\033[1m== {text}\033[0m" if sys.stdout.isatty() else f"\n== {text}", flush=True)


def walk(bed, options, job, work):
    journey = Journey(bed, options.out, work)
    journey.fab("Certificates", "certs")
    journey.fab("Deploy", "up")
    try:
        journey.fab(
            "Train",
            "launch",
            "--job",
            "digits",
            "--copy",
            os.path.join(REPOSITORY, "examples", job.example),
            "--command",
            job.command,
            "--ready",
            "step 100:",
        )
        journey.fab("Record", "record", "--duration", f"{options.seconds}s", "--out", options.out)
        journey.fab("Fetch", "fetch", "--run", options.out)
        journey.fab("What the job printed meanwhile", "logs", "--lines", "5")
    finally:
        journey.quietly("down")
    journey.fab("Merge", "merge", "--run", options.out)
    svg = os.path.join(options.out, "out", "steps.svg")
    journey.syncline("Report", "report", options.out, "--svg", svg)
    if not job.collective:
        journey.syncline("What a step waits for", "why", options.out)
    journey.syncline("Clocks", "clocks", options.out)
    tell_truth(bed, journey)


def tell_truth(bed, journey):
    local, remote = bed.hosts[0], bed.hosts[1]
    truth_ns = bed.monotonic_difference_ns(local.name, remote.name)
    measured_ns, bound_ns = journey.clock_difference(local.name, remote.name)
    wall_ns = remote.spec.wall_error_ns - local.spec.wall_error_ns
    inside = abs(truth_ns - measured_ns) <= bound_ns
    print(
        f"""
The truth, known because the hosts are simulated:
  {remote.name}'s trace clock less {local.name}'s   {truth_ns:>24,} ns
  measured by Syncline                 {measured_ns:>24,} ns, at most {bound_ns:,} ns wrong
  so it was wrong by                   {measured_ns - truth_ns:>24,} ns: {
        "inside the bound" if inside else "OUTSIDE THE BOUND"}
  their wall clocks disagree by        {wall_ns:>24,} ns: a merge by wall clock is wrong by this"""
    )


def tell_results(out, job):
    quoted = shlex.quote(out)
    first = (
        '\n                 its first track is "collectives": a lane for each process group'
        if job.collective
        else ""
    )
    print(
        f"""
What you have now, in {out}:
  the timeline   out/timeline.perfetto-trace   https://ui.perfetto.dev; stays in your browser{first}
  two steps      out/steps.svg                 open it in a browser
  the report     syncline report {quoted}         again; --full for all of it, or --json
  the answer     syncline why {quoted}
  the clocks     syncline clocks {quoted}
  every event    syncline events {quoted} | less
  the raw trace  babeltrace2 {quoted}/nodes/*/trace
(syncline is build/bin/syncline)"""
    )


def parse():
    parser = argparse.ArgumentParser(
        prog="scripts/demo",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--out", help="where the recording goes: a new directory (default: run-demo-DATE-TIME)"
    )
    parser.add_argument("--seconds", type=int, default=5, help="how long to record (default 5)")
    parser.add_argument(
        "--seed", type=int, default=20, help="draws the hosts' clock errors (default 20)"
    )
    parser.add_argument(
        "--pytorch",
        action="store_true",
        help="PyTorch's DistributedDataParallel instead of TensorFlow (setup --torch)",
    )
    parser.add_argument(
        "--fault",
        choices=demo_fault.FAULTS,
        help="hold one rank up, and find it with `syncline why`; implies --pytorch",
    )
    options = parser.parse_args()
    options.pytorch = options.pytorch or bool(options.fault)
    options.out = options.out or time.strftime("run-demo-%Y%m%d-%H%M%S")
    if os.path.isdir(options.out) and os.listdir(options.out):
        parser.error(f"{options.out} is not empty; name a new directory")
    return options


def give_to_caller(path):
    """Under sudo the recording belongs to whoever called it."""
    uid, gid = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if uid and gid and os.path.isdir(path):
        subprocess.run(["chown", "-R", f"{uid}:{gid}", path], check=False)


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    job = PYTORCH if options.pytorch else TENSORFLOW
    if not os.path.isdir(job.environment_path()):
        print("demo: PyTorch is not installed: scripts/setup --torch", file=sys.stderr)
        return 1
    begin = time.monotonic()
    try:
        heading("Two hosts")
        with tempfile.TemporaryDirectory() as work, contextlib.ExitStack() as stack:
            binds = {job.host_environment: job.environment_path()}
            if options.fault:
                bed, groups = stack.enter_context(demo_fault.hosts(options.seed, binds))
            else:
                specs = [HostSpec(name, role=role) for name, role in job.hosts]
                bed = stack.enter_context(Testbed(specs, seed=options.seed, binds=binds))
            for host in bed.hosts:
                print(f"{host.name} at {host.address}", flush=True)
            if options.fault:
                python = f"{job.host_environment}/bin/python"
                journey = Journey(bed, options.out, work)
                demo_fault.walk(journey, heading, bed, groups, options, python)
            else:
                walk(bed, options, job, work)
    except (StepFailed, TestbedError) as error:
        print(f"\ndemo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ndemo: interrupted; the hosts are gone", file=sys.stderr)
        return 130
    finally:
        give_to_caller(options.out)
    if options.fault:  # the verdict is the last thing that is said
        return 0
    tell_results(options.out, job)
    print(f"\n{time.monotonic() - begin:.0f} s, and the hosts are gone again.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
