# SPDX-License-Identifier: Apache-2.0
"""The demo's other walk: a training job, a real fault of one rank, and what `syncline why` says.

The fault is made the way it happens: a container gets too little CPU, a backup runs on the job's
core, the storage behind a data loader is slow, Python collects garbage. Doses are such that the
step takes about a third longer.
"""

import contextlib
import dataclasses

from tests.testbed import HostSpec, Testbed, faults

RANK = 1  # who has it
WINDOW = "12s"
QUOTA_CPUS = 0.65
THIEF_SHARE = 0.4


@dataclasses.dataclass(frozen=True)
class Fault:
    told: str  # what is done, for the person who watches
    options: str = ""  # of the job


FAULTS = {
    "throttle": Fault(
        f"The container of rank {RANK} may use only {QUOTA_CPUS} CPUs from now on:\n"
        "echo {quota_us} > {group}/cpu.cfs_quota_us"
    ),
    "thief": Fault(
        f"A process named nightly-backup takes {100 * THIEF_SHARE:.0f} % of the core on which "
        f"rank {RANK} runs."
    ),
    "loader": Fault(
        f"It is in the job: the storage behind the data loader of rank {RANK} needs 20 ms a batch.",
        f"--fault loader --fault-rank {RANK} --dose 20",
    ),
    "storage": Fault(
        f"It is in the job: rank {RANK} reads a file that is not in memory, for 20 ms a step.",
        f"--fault storage --fault-rank {RANK} --dose 20 --data {faults.HOST_DATA}",
    ),
    "gc": Fault(
        f"It is in the job: rank {RANK} has many objects alive and collects garbage every second "
        "step, 40 ms each time.",
        f"--fault gc --fault-rank {RANK} --dose 20 --gc-every 2",
    ),
}


@contextlib.contextmanager
def hosts(seed, binds):
    """(testbed, control groups) of the walk."""
    specs = [HostSpec("alpha"), HostSpec("beta")]
    with faults.ControlGroups() as groups, faults.data_on_disk() as data:
        with Testbed(specs, seed=seed, binds={**binds, **faults.BINDS, **data}) as bed:
            for host in bed.hosts:
                groups.admit(host)
            yield bed, groups


@contextlib.contextmanager
def made(name, bed, groups, python):
    """The fault, from now on."""
    quota_us = round(QUOTA_CPUS * faults.PERIOD_US)
    folder = faults.CONTROLLER + groups.outer(RANK)
    print(FAULTS[name].told.format(quota_us=quota_us, group=folder), flush=True)
    with contextlib.ExitStack() as stack:
        if name == "throttle":
            groups.limit(RANK, QUOTA_CPUS)
        elif name == "thief":
            thief = faults.Thief(bed.hosts[RANK], THIEF_SHARE, python, name="nightly-backup")
            stack.enter_context(thief)
        yield


def walk(journey, heading, bed, groups, options, python):
    """`journey` runs fab and syncline, each under a heading."""
    command = f"env GLOO_SOCKET_IFNAME=eth0 {python} train.py --report-every 20"
    line = faults.job_line(groups, f"{command} {FAULTS[options.fault].options}".strip())
    journey.fab("Certificates", "certs")
    journey.fab("Deploy", "up")
    try:
        journey.fab(
            *("Train", "launch", "--job", "digits", "--copy", faults.EXAMPLE),
            *("--command", line, "--ready", "step 40:"),
        )
        heading("The fault")
        with made(options.fault, bed, groups, python):
            journey.syncline("Why is it slow?", "why", "--for", WINDOW, "--out", options.out)
    finally:
        journey.quietly("down")

