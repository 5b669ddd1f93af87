# SPDX-License-Identifier: Apache-2.0
"""Debian's Slurm on the hosts of a testbed: munged and slurmd on each, slurmctld on the first.

    with Testbed(specs, shared={SHARED: folder}) as bed, Cluster(bed, folder) as cluster:
        job = cluster.submit("ann", "job.sh")

Everything that it reads and writes lies in `folder`, which all hosts see as SHARED, and in the
hosts' own /run: nothing of this machine's Slurm, if it has one. The daemons end with the cluster
or, should the test be killed, with their hosts.
"""

import os
import shutil
import subprocess
import time

from tests.testbed.machine import kill, tail

SHARED = "/shared"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel")
START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 5
# All that it would otherwise look for below /etc, /var/lib and /var/log. The socket is where Slurm
# looks for it.
MUNGED = [
    *("munged", "--foreground", f"--key-file={SHARED}/slurm/munge.key"),
    *("--socket=/run/munge/munge.socket.2", "--pid-file=/run/munge/pid"),
    *("--seed-file=/run/munge/seed", "--log-file=/run/munge/log"),
]

# No control groups: the hosts see none. What Slurm cannot follow by them it follows by parentage.
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={first}
SlurmUser=root
AuthType=auth/munge
StateSaveLocation={folder}/state
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.pid
SlurmdSpoolDir=/run/slurm/spool
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
KillWait=10
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
NodeName={names} CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing_programs():
    """What is not installed here."""
    return [program for program in PROGRAMS if not shutil.which(program)]


class Cluster:
    def __init__(self, bed, folder):
        self.hosts = bed.hosts
        self._bed, self._folder = bed, os.path.join(folder, "slurm")
        self._daemons = []
        self._environment = {"SLURM_CONF": f"{SHARED}/slurm/slurm.conf"}

    def __enter__(self):
        self._write_files()
        try:
            for host in self._bed.hosts:
                host.run(["mkdir", "-p", "/run/munge", "/run/slurm/spool"])
                self._begin(host, *MUNGED)
            for host in self._bed.hosts:
                wait_for(lambda h=host: answers(h), "munged")
            self._begin(self._bed.hosts[0], "slurmctld", "-D")
            for host in self._bed.hosts:
                self._begin(host, "slurmd", "-D", "-N", host.name)
            count = str(len(self._bed.hosts))
            wait_for(lambda: self.ask("sinfo", "-h", "-t", "idle", "-o", "%D") == count, "slurmd")
        except BaseException as error:
            self.__exit__()
            raise AssertionError(f"Slurm does not start: {error}\n{self.logs()}") from error
        return self

    def __exit__(self, *_):
        for enter in reversed(self._daemons):
            # The daemon, whom nsenter then buries: orphans wait for this machine's init to do that.
            for pid in children(enter.pid):
                kill(pid)
            try:
                enter.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                enter.kill()
                enter.wait()

    def _write_files(self):
        os.makedirs(os.path.join(self._folder, "state"), mode=0o755)
        os.makedirs(os.path.join(self._folder, "logs"), mode=0o755)
        names = [host.name for host in self._bed.hosts]
        text = CONFIGURATION.format(
            first=names[0], names=",".join(names), folder=f"{SHARED}/slurm"
        )
        for name, content in (("slurm.conf", text), ("cgroup.conf", "CgroupPlugin=cgroup/v1\n")):
            with open(os.path.join(self._folder, name), "w", encoding="ascii") as file:
                file.write(content)
        key = os.path.join(self._folder, "munge.key")
        with open(os.open(key, os.O_CREAT | os.O_WRONLY, 0o400), "wb") as file:
            file.write(os.urandom(1024))

    def _begin(self, host, *command):
        with open(self._log(host, command[0]), "wb") as log:
            self._daemons.append(
                host.popen(
                    command,
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )

    def _log(self, host, program):
        return os.path.join(self._folder, "logs", f"{program}-{host.name}")

    def logs(self):
        """The ends of what the daemons wrote."""
        folder = os.path.join(self._folder, "logs")
        names = sorted(os.listdir(folder))
        return "".join(f"--- {name}\n{tail(os.path.join(folder, name))}" for name in names)

    def run(self, user, line, check=True, timeout=60, **environment):
        """A line for the shell of a user on the first host, in the home directory."""
        return self._bed.hosts[0].run(
            ["sh", "-c", f"cd && {line}"],
            user=user,
            check=check,
            timeout=timeout,
            env={**self._environment, **environment},
        )

    def ask(self, *command):
        """What a command of Slurm's says to root; "" if it fails."""
        done = self._bed.hosts[0].run(command, env=self._environment, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    def submit(self, user, line, **environment):
        """The job's number."""
        return self.run(user, f"sbatch --parsable {line}", **environment).stdout.strip()

    def is_gone(self, job):
        """Nothing of it runs any more."""
        return self.ask("squeue", "-h", "-o", "%i") != job

    def cancel(self, job):
        self.ask("scancel", job)
        wait_for(lambda: self.is_gone(job), f"the end of job {job}")


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def answers(host):
    return host.run(["sh", "-c", "munge -n | unmunge"], check=False).returncode == 0


def wait_for(happened, what, limit_s=START_TIMEOUT_S):
    deadline = time.monotonic() + limit_s
    while not happened():
        assert time.monotonic() < deadline, f"waited {limit_s} s for {what}"
        time.sleep(0.1)
