# SPDX-License-Identifier: Apache-2.0
"""What Syncline costs a training job, paired and interleaved.

Three copies of a job stand side by side, all stopped but one: two of them know nothing of Syncline,
one was started by `syncline run`. In every round each takes its turn, in a random order: absent,
absent again (how much two equal things differ here), attached but not recording, and recording. A
turn's figure is the wall time and the CPU time of all the job's processes per step; a round's is
the ratio to its absent turn. Printed: the median ratio over the rounds, with the 95 % interval of
the median (bootstrap).
"""

import argparse
import contextlib
import mmap
import os
import random
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXAMPLES = os.path.join(REPOSITORY, "examples")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
START_LIMIT_S = 120
SETTLE_S = 0.3  # a job that goes on again fills its caches first


class Job:
    """The processes of one copy of a job, and its count of steps."""

    def __init__(self, kind, work, name, prefix):
        self.count_file = os.path.join(work, f"{name}.steps")
        with open(self.count_file, "wb") as file:
            file.write(bytes(8))
        self.log = open(os.path.join(work, f"{name}.log"), "wb")
        self.processes = [
            subprocess.Popen(
                [*prefix, *command],
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=self.log,
                stderr=subprocess.STDOUT,
            )
            for command, environment in kind(self.count_file, os.path.join(work, name))
        ]
        with open(self.count_file, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 8)

    def steps(self):
        return struct.unpack_from("<Q", self.memory)[0]

    def await_steps(self, wanted):
        end = time.monotonic() + START_LIMIT_S
        while self.steps() < wanted:
            if time.monotonic() > end or any(p.poll() is not None for p in self.processes):
                self.log.flush()
                raise SystemExit(f"bench-overhead: the job does not train; see {self.log.name}")
            time.sleep(0.05)

    def signal(self, number):
        for process in self.processes:
            process.send_signal(number)

    def cpu_s(self):
        total = 0
        for process in self.processes:
            with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
                fields = file.read().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / TICKS_PER_S

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()
        self.log.close()


def free_ports(count):
    import socket

    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def pytorch(count_file, base):
    python = os.path.join(REPOSITORY, ".venv-torch", "bin", "python")
    script = os.path.join(EXAMPLES, "pytorch_ddp", "train.py")
    counter = os.path.join(REPOSITORY, "scripts", "counted_steps.py")
    (port,) = free_ports(1)
    for rank in range(2):
        counted = count_file if rank == 0 else f"{base}.other"
        if rank:
            shutil.copy(count_file, counted)
        yield (
            [python, counter, counted, script, "--report-every", "1000000"],
            {
                "RANK": str(rank),
                "WORLD_SIZE": "2",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "GLOO_SOCKET_IFNAME": "lo",
                "OMP_NUM_THREADS": "1",
            },
        )


def tensorflow(count_file, base):
    python = os.path.join(REPOSITORY, ".venv-tensorflow", "bin", "python")
    example = os.path.join(EXAMPLES, "tensorflow_two_partitions")
    counter = os.path.join(REPOSITORY, "scripts", "counted_steps.py")
    master, worker = free_ports(2)
    addresses = ["--master", f"127.0.0.1:{master}", "--worker", f"127.0.0.1:{worker}"]
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "2"}
    yield [python, os.path.join(example, "worker.py"), *addresses], quiet
    script = [os.path.join(example, "master.py"), *addresses, "--report-every", "1000000"]
    yield [python, counter, count_file, *script], quiet


def opencl(count_file, _):
    yield (
        [sys.executable, os.path.join(REPOSITORY, "scripts", "opencl_steps.py"), count_file],
        {"POCL_CACHE_DIR": f"{count_file}.pocl"},
    )


KINDS = {"pytorch": pytorch, "tensorflow": tensorflow, "opencl": opencl}


class Bench:
    def __init__(self, options, work):
        self.options = options
        self.work = work
        self.bin = os.path.join(REPOSITORY, options.build, "bin")
        self.data = os.path.join(work, "agent")
        self.hosts = os.path.join(work, "hosts")
        with open(self.hosts, "w", encoding="utf-8") as file:
            file.write(f"here unix:{self.data}/agent.sock\n")

    def agent(self):
        os.mkdir(self.data, 0o700)
        command = [os.path.join(self.bin, "syncline-agent"), "--data-dir", self.data]
        log = os.path.join(self.work, "agent.log")
        agent = subprocess.Popen([*command, "--log-file", log], stdin=subprocess.DEVNULL)
        while not os.path.exists(f"{self.data}/agent.sock"):
            if agent.poll() is not None:
                raise SystemExit(f"bench-overhead: the agent ended; see {log}")
            time.sleep(0.05)
        return agent

    def turn(self, job, recording):
        """Wall and CPU time per step of one turn, in seconds."""
        job.signal(signal.SIGCONT)
        recorder = self.record() if recording else None
        time.sleep(SETTLE_S)
        begin, cpu, steps = time.monotonic(), job.cpu_s(), job.steps()
        time.sleep(self.options.seconds)
        took, cpu, steps = time.monotonic() - begin, job.cpu_s() - cpu, job.steps() - steps
        if recorder is not None:
            recorder.terminate()  # not SIGINT, which a shell's background jobs ignore
            output, _ = recorder.communicate()
            if recorder.returncode != 0:
                raise SystemExit(f"bench-overhead: the recording failed\n{output}")
            shutil.rmtree(os.path.join(self.work, "run"))
        job.signal(signal.SIGSTOP)
        if steps == 0:
            raise SystemExit(f"bench-overhead: no step in {took:.1f} s; give --seconds more")
        return took / steps, cpu / steps

    def record(self):
        """A recording that has begun."""
        run = os.path.join(self.work, "run")
        command = [os.path.join(self.bin, "syncline"), "record", "--hosts", self.hosts]
        recorder = subprocess.Popen(
            [*command, "--out", run, *self.options.record],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        while not os.path.exists(os.path.join(run, "recording.json")):
            if recorder.poll() is not None:
                raise SystemExit(f"bench-overhead: no recording\n{recorder.stdout.read()}")
            time.sleep(0.02)
        return recorder

    def rounds(self):
        """{turn: [(wall, cpu) per step of each round]}."""
        kind = KINDS[self.options.job]
        devices = ["--devices"] if self.options.job == "opencl" else []
        planted = [os.path.join(self.bin, "syncline"), "run", *devices, "--"]
        figures = {"absent": [], "absent again": [], "attached": [], "recording": []}
        jobs = {}
        with contextlib.ExitStack() as stack:
            agent = self.agent()
            stack.callback(agent.wait)
            stack.callback(agent.terminate)
            for name, prefix in (("absent", []), ("again", []), ("attached", planted)):
                jobs[name] = Job(kind, self.work, name, prefix)
                stack.callback(jobs[name].end)
                jobs[name].await_steps(20)
                jobs[name].signal(signal.SIGSTOP)
            turns = {
                "absent": (jobs["absent"], False),
                "absent again": (jobs["again"], False),
                "attached": (jobs["attached"], False),
                "recording": (jobs["attached"], True),
            }
            for number in range(self.options.rounds):
                order = list(turns)
                random.shuffle(order)
                for turn in order:
                    figures[turn].append(self.turn(*turns[turn]))
                print(f"\rround {number + 1} of {self.options.rounds}", end="", file=sys.stderr)
            print(file=sys.stderr)
        return figures


def interval(ratios, generator=random.Random(1)):
    """The median and the 95 % interval of the median, by bootstrap."""
    medians = sorted(
        statistics.median(generator.choices(ratios, k=len(ratios))) for _ in range(4000)
    )
    return statistics.median(ratios), medians[100], medians[-101]


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/bench-overhead",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--job", choices=KINDS, default="tensorflow")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each turn")
    parser.add_argument("--build", default="build")
    parser.add_argument(
        "record", nargs="*", help="more for `syncline record`, after --: e.g. -- --no-tf-profiler"
    )
    options = parser.parse_args()
    # Ended from outside it must take its jobs, some of them stopped, with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench-overhead: terminated"))
    with tempfile.TemporaryDirectory(prefix="syncline-bench-") as work:
        figures = Bench(options, work).rounds()
    for index, name in enumerate(("wall time", "CPU time")):
        absent = [turn[index] for turn in figures["absent"]]
        print(f"{name} per step: {1e3 * statistics.median(absent):.2f} ms absent")
        for turn in ("absent again", "attached", "recording"):
            ratios = [one[index] / other for one, other in zip(figures[turn], absent)]
            middle, low, high = interval(ratios)
            print(f"  {turn + ' / absent':24} {middle:.3f}  [{low:.3f}, {high:.3f}]")


if __name__ == "__main__":
    main()
