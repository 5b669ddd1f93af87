# SPDX-License-Identifier: Apache-2.0
"""How often `syncline why` is right: healthy runs, real faults, and what only looks like a fault.

Two ranks of examples/pytorch_fault train on two simulated hosts with one core each, by DDP or as
--jobs has it. The hosts and their agents stay up; for every run the job is started anew, given what
the run's label says, and recorded and judged by `syncline why`. The label is then compared with the
verdict. What a run gets (rank, dose, variant) is drawn from the seed, so that the rank's lead is 10
to 40 % of the step.

  healthy        nothing
  quota          its container gets less CPU than it needs (every second: two compute threads)
  thief          another process takes a share of its core
  loader         its data loader waits, or computes
  gc             it collects garbage, with many objects alive
  storage        it waits for storage: reads a file, or has it mapped
  callback       its own code between two steps waits, or computes in Python: no cause is known of
                 that, but the rank is, and the function in which it stands
  checkpoint     it saves a checkpoint every so many steps, and the others wait
  evaluation     it evaluates every so many steps, likewise
  memory         its malloc gives freed memory back to the kernel
  isa            its oneDNN has a lower instruction set (ONEDNN_MAX_CPU_ISA)
  sleep          one of its operators sleeps: no cause is known of that, but the operator
  denormal       one of its operators works on denormal numbers, which takes longer: likewise
  and, where nobody may be named with a cause:
  batch          its batches are 25 % larger
  both           both containers have the same quota, so that nobody is slower
  idle_thief     a thief that takes only what nobody wants: with two cores and two ranks there is
                 no core that nobody uses, so it runs in a group at the kernel's idle policy
  prefetched     its loader is slow, but a worker loads ahead

Where COST is said for a fault that can be taken away, that is done, eight times in turn while the
job is recorded further: what COST says beside what removal gives.

Exits 0 only when no verdict was wrong, nobody was named in healthy runs and decoys, every run was
answered, and at most one fault in 16 was missed.
"""

import argparse
import collections
import contextlib
import dataclasses
import json
import os
import random
import re
import secrets
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, REPOSITORY)

from scripts.corpus_labels import (  # noqa: E402  (path is set)
    JOBS,
    KINDS,
    STALLS,
    Label,
    judge,
    labels,
)
from scripts.corpus_removal import removal, say_removals  # noqa: E402
from tests.integration.fleet import Fleet  # noqa: E402
from tests.testbed import HostSpec, Testbed, TestbedError, faults  # noqa: E402

# train.py's own options.
IN_THE_JOB = (
    *("loader", "gc", "storage", "callback", "checkpoint", "evaluation"),
    *("sleep", "denormal", "batch", "prefetched"),
)
FROM_THE_BEGIN = (*IN_THE_JOB, "isa", "memory")
HAVE_COSTS = ("quota", "thief", "loader", "gc", "storage")
PHASES = 8  # every second one without the fault
PHASE_S = 2.5
BEGUN_S = 2.5  # until a recording has certainly begun
# What malloc does with memory that is freed.
KEEPS = ("MALLOC_TRIM_THRESHOLD_=4294967296", "MALLOC_MMAP_THRESHOLD_=33554432")
GIVES_BACK = ("MALLOC_MMAP_THRESHOLD_=4194304",)
TORCH = os.path.join(REPOSITORY, ".venv-torch")
PYTHON = "/opt/torch/bin/python"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
ELSEWHERE = 0.06  # of a core, for what else runs on it: the agent, LTTng, the kernel
WINDOW_S = 12
REPORT_EVERY = 5  # steps between lines of the job's log
WARM_LINES = 6  # of the log, until the job runs evenly
START_LIMIT_S = 90
FIRST_PORT = 2300
STEP_LINE = re.compile(r"step (\d+): .* ([0-9.]+) ms a step")


@dataclasses.dataclass
class Usual:
    """The healthy job: what doses are measured by."""

    step_ms: float
    busy: list  # of each rank: CPU time per wall time


class Training:
    """The job on both hosts, each rank in its group; a context manager."""

    def __init__(self, bed, groups, work, number, label, usual):
        self.bed, self.groups, self.label, self.usual = bed, groups, label, usual
        self.port = FIRST_PORT + number
        self.with_fault = True  # of one in the job
        self.logs = [os.path.join(work, f"{number}.rank{rank}.log") for rank in range(2)]
        self._processes = []

    def __enter__(self):
        line = faults.job_line(self.groups, f"{PYTHON} {faults.HOST_EXAMPLE}/train.py {self.of()}")
        for rank, host in enumerate(self.bed.hosts):
            environment = [
                *(f"RANK={rank}", "WORLD_SIZE=2", f"MASTER_ADDR={self.bed.hosts[0].address}"),
                *(f"MASTER_PORT={self.port}", "GLOO_SOCKET_IFNAME=eth0"),
            ]
            # Else it is chance how much memory comes anew, on each rank in each run.
            gives_back = self.label.kind == "memory" and rank == self.label.rank
            environment += GIVES_BACK if gives_back else KEEPS
            if self.label.kind == "isa" and rank == self.label.rank:
                environment.append(f"ONEDNN_MAX_CPU_ISA={self.label.variant}")
            command = [
                *("taskset", "-c", str(host.index % os.cpu_count()), "env", *environment),
                *("/opt/syncline/bin/syncline", "run", "--job", "corpus", "--"),
                *("bash", "-c", line),
            ]
            with open(self.logs[rank], "wb") as log:
                self._processes.append(
                    host.popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                )
        return self

    def __exit__(self, *_):
        try:
            self.groups.end_jobs()
        finally:
            self.groups.unlimited()
            for process in self._processes:
                process.kill()
                process.wait()

    def of(self):
        """train.py's options."""
        label = self.label
        words = ["--report-every", REPORT_EVERY, "--threads", label.threads]
        words += JOBS[label.job]
        if label.kind in IN_THE_JOB:
            words += ["--fault", label.kind, "--fault-rank", label.rank]
            words += ["--dose", f"{self.dose():.3f}"]
        if label.variant == "computes":
            words.append(f"--{label.kind}-computes")
        if label.kind == "storage":
            words += ["--data", faults.HOST_DATA]
        if label.variant == "mapped":
            words.append("--mapped")
        if label.kind == "gc":
            words += ["--gc-every", label.variant.split()[1]]
        if label.kind in STALLS:
            words += ["--stall-every", label.variant.split()[1]]
        return " ".join(map(str, words))

    def dose(self):
        """Of a fault in the job. A step becomes longer by what makes the lead this share of it."""
        if self.label.kind == "batch":
            return 1.25
        return self.usual.step_ms * self.label.lead / (1 - self.label.lead)

    def lines(self, rank=0):
        """[(step, ms a step)] of a rank's log."""
        with open(self.logs[rank], encoding="utf-8", errors="replace") as file:
            return [(int(step), float(ms)) for step, ms in STEP_LINE.findall(file.read())]

    def await_lines(self, count):
        """Until the log has so many more lines."""
        wanted, deadline = len(self.lines()) + count, time.monotonic() + START_LIMIT_S
        while len(self.lines()) < wanted:
            ended = [log for log, p in zip(self.logs, self._processes) if p.poll() is not None]
            if ended or time.monotonic() > deadline:
                log = ended[0] if ended else self.logs[0]
                with open(log, encoding="utf-8", errors="replace") as file:
                    raise TestbedError(f"the job does not train; {log}:\n{file.read()[-1500:]}")
            time.sleep(0.05)

    @contextlib.contextmanager
    def fault(self):
        """What is done to the job from outside, meanwhile."""
        label, left = self.label, 1 - self.label.lead
        with contextlib.ExitStack() as stack:
            if label.kind in ("quota", "both"):
                inner = label.variant == "on the container"
                ranks = (0, 1) if label.kind == "both" else (label.rank,)
                cpus = min(self.usual.busy[rank] for rank in ranks) * left
                for rank in ranks:
                    self.groups.limit(rank, cpus, inner)
            if label.kind in ("thief", "idle_thief"):
                group = self.groups.idle if label.kind == "idle_thief" else ""
                share = min(0.45, 1 - ELSEWHERE - self.usual.busy[label.rank] * left)
                host = self.bed.hosts[label.rank]
                stack.enter_context(faults.Thief(host, share, PYTHON, group=group))
            yield

    def turn(self, with_fault):
        """A fault in the job goes, or comes back. Signals are not queued: one at a time."""
        if self.with_fault == with_fault:
            return
        self.with_fault = with_fault
        for pid in self.groups.processes(self.label.rank):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"train.py" in file.read():
                    os.kill(pid, signal.SIGUSR1)

    @contextlib.contextmanager
    def phase(self, with_fault):
        """With the fault, or without."""
        if self.label.kind in IN_THE_JOB:
            self.turn(with_fault)
            yield
        elif with_fault:
            with self.fault():
                yield
            self.groups.unlimited()
        else:
            yield

    def mean_ms(self, seconds):
        """The mean step; of a line's steps some may have been before."""
        self.await_lines(1)
        lines = len(self.lines())
        time.sleep(seconds)
        return statistics.fmean(ms for _, ms in self.lines()[lines:] or [(0, 0)])

    def measure(self, seconds):
        """What the job is like by now, as Usual."""
        lines = len(self.lines())
        busy = self.busy(seconds)
        step_ms = statistics.median(ms for _, ms in self.lines()[max(lines - 1, WARM_LINES - 1) :])
        return Usual(step_ms, busy)

    def busy(self, seconds):
        """CPU time per wall time of each rank's processes."""
        begin, before = time.monotonic(), [self._cpu_s(rank) for rank in range(2)]
        time.sleep(seconds)
        after, took = [self._cpu_s(rank) for rank in range(2)], time.monotonic() - begin
        return [(late - early) / took for early, late in zip(before, after)]

    def _cpu_s(self, rank):
        ticks = 0
        for pid in self.groups.processes(rank):
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / TICKS_PER_S


def share_of_lead(answer):
    """The measured lead of the rank that the verdict speaks of, as a share of the step."""
    ranks = answer["verdict"]["ranks"] if answer and answer["status"] == "answered" else []
    mean_ns = answer["steps"].get("mean_ns") if ranks else None
    return ranks[0]["lead_ns"]["est"] / mean_ns if mean_ns else None


class Corpus:
    """Hosts and agents that stay up, and what is done on them."""

    def __init__(self, bed, groups, work, options):
        self.bed, self.groups, self.work, self.options = bed, groups, work, options
        self.fleet = Fleet(bed, work)
        self._starts = 0
        self.usual = {}  # by job and compute threads
        self.results = []
        self.removals = []

    def training(self, label):
        self._starts += 1
        usual = self.usual.get((label.job, label.threads))
        return Training(self.bed, self.groups, self.work, self._starts, label, usual)

    def measure_usual(self, kind, threads):
        with self.training(Label("healthy", 0, 0, threads, job=kind)) as job:
            job.await_lines(WARM_LINES)
            usual = self.usual[kind, threads] = job.measure(6)
        shares = " and ".join(f"{100 * share:.0f} %" for share in usual.busy)
        print(
            f"usual, {kind}, {threads} compute thread(s): {usual.step_ms:.1f} ms a step, cores "
            f"busy for {shares}"
        )

    def run(self, number, label):
        run = os.path.join(self.options.out, f"run-{number:02}")
        begin = time.monotonic()
        with self.training(label) as job:
            job.await_lines(WARM_LINES)
            if label.kind not in FROM_THE_BEGIN:  # until now it is healthy
                job.usual = self.usual[label.job, label.threads] = job.measure(2)
            with job.fault():
                job.await_lines(1)
                lines = len(job.lines())
                answer, took_s = self.why(run)
                step_ms = statistics.median(ms for _, ms in job.lines()[lines:] or [(0, 0)])
            job.groups.unlimited()
            outcome = judge(label, answer)
            compared = label.kind in HAVE_COSTS and outcome.judgement == "right"
            removed = removal(self.phases(job), answer) if compared and not outcome.also else None
        self.removals += [removed] if removed else []
        lead = share_of_lead(answer)
        self.results.append((label, outcome))
        said = outcome.said + (f" (also {outcome.also})" if outcome.also else "")
        measured = "" if lead is None else f", lead {100 * lead:.0f} %"
        if removed:
            measured += ", removal gives {removed_ms:.1f} ± {half_ms:.1f} ms".format(**removed)
            measured += " (COST {said_ms:.1f} [{lo_ms:.1f}, {hi_ms:.1f}])".format(**removed)
        print(
            f"{number:3} {outcome.judgement:10} {str(label):42} {said:30} "
            f"{step_ms:6.1f} ms a step{measured}, answer {took_s - WINDOW_S:.1f} s after the "
            f"window, run {time.monotonic() - begin:.0f} s",
            flush=True,
        )
        self.keep(run, number, label, outcome, answer, {"step_ms": step_ms, "removal": removed})

    def phases(self, job):
        """The mean step in each phase, while all of them are recorded: that takes time, too."""
        run = os.path.join(self.work, f"phases-{time.monotonic_ns()}")
        command = ["syncline", "record", *self.fleet.fleet_arguments(), "--out", run]
        recording = subprocess.Popen(
            [*command, "--for", f"{round(2 * PHASES * PHASE_S)}s"],
            env=self.fleet.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            time.sleep(BEGUN_S)
            # Off, on, on, off, ...: a job that becomes slower and slower adds nothing.
            means = []
            for number in range(PHASES):
                with job.phase(with_fault=number % 4 in (1, 2)):
                    means.append(job.mean_ms(PHASE_S))
            if recording.poll() is not None:
                raise TestbedError(f"it was not recorded meanwhile: exit {recording.returncode}")
        finally:
            recording.terminate()
            recording.wait()
            shutil.rmtree(run, ignore_errors=True)
        return means

    def why(self, run):
        """The answer's JSON, or None, and how long it took."""
        command = ["syncline", "why", *self.fleet.fleet_arguments()]
        begin = time.monotonic()
        done = subprocess.run(
            [*command, "--for", f"{WINDOW_S}s", "--json", "--out", run],
            env=self.fleet.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WINDOW_S + 120,
            check=False,
        )
        took_s = time.monotonic() - begin
        if done.returncode not in (0, 3):
            raise TestbedError(f"syncline why: exit {done.returncode}\n{done.stderr}{done.stdout}")
        with contextlib.suppress(ValueError):
            return json.loads(done.stdout), took_s
        print(done.stderr + done.stdout, file=sys.stderr)
        return None, took_s

    def keep(self, run, number, label, outcome, answer, measured):
        facts = {
            "run": number,
            "label": dataclasses.asdict(label),
            "usual_step_ms": self.usual[label.job, label.threads].step_ms,
            **measured,
            "outcome": dataclasses.asdict(outcome),
            "answer": answer,
        }
        with open(os.path.join(self.options.out, "results.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps(facts) + "\n")
        if not self.options.keep and outcome.judgement in ("right", "fine"):
            shutil.rmtree(run, ignore_errors=True)


def summary(results):
    """Prints the table; whether all is as it has to be."""
    counts = collections.Counter((label.kind, outcome.judgement) for label, outcome in results)
    columns = ("right", "fine", "missed", "named", "wrong", "unanswered")
    print(f"\n{'':12}" + "".join(f"{column:>11}" for column in ("runs", *columns)))
    for kind in (kind for kind in KINDS if any(label.kind == kind for label, _ in results)):
        row = [counts[kind, column] for column in columns]
        print(f"{kind:12}" + "".join(f"{number or '-':>11}" for number in (sum(row), *row)))
    total = collections.Counter(outcome.judgement for _, outcome in results)
    given = sum(label.cause is not None for label, _ in results)
    others = len(results) - given
    unknown = sum(outcome.said == "late_cause_unknown" for _, outcome in results)
    differs = sum(outcome.said == "work_differs" for _, outcome in results)
    also = sum(bool(outcome.also) for _, outcome in results)
    print(
        f"\n{total['right']} of {given} faults named, {total['wrong']} wrong; a rank named in "
        f"{total['named']} of {others} healthy runs and decoys; {total['unanswered']} unanswered"
        f"\n(late, cause unknown: {unknown}; work differs: {differs}; "
        f"further causes in addition to the first: {also})"
    )
    bad = total["wrong"] + total["named"] + total["unanswered"]
    return bad == 0 and total["missed"] <= given // 16


def parse():
    parser = argparse.ArgumentParser(
        prog="scripts/why-corpus",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--runs", type=int, default=32, help="default 32")
    parser.add_argument("--seed", type=int, help="default: drawn, and printed")
    parser.add_argument("--out", help="a new directory (default: why-corpus-DATE-TIME)")
    parser.add_argument(
        "--keep", action="store_true", help="also the recordings of runs that were judged right"
    )
    parser.add_argument("--only", help="only runs of these kinds, e.g. quota,both")
    parser.add_argument(
        "--jobs",
        default="ddp",
        help="kinds of jobs, in turn: ddp (default), sharded (FSDP), pieces (batches in four "
        "pieces, whose gradients add up)",
    )
    options = parser.parse_args()
    strange = set(options.jobs.split(",")) - set(JOBS)
    if strange:
        parser.error(f"--jobs: {', '.join(sorted(strange))}? There are {', '.join(JOBS)}.")
    if options.runs < 1:
        parser.error("--runs is at least 1")
    unknown = set(filter(None, (options.only or "").split(","))) - set(KINDS)
    if unknown:
        parser.error(f"--only: {', '.join(sorted(unknown))}? There are {', '.join(KINDS)}.")
    if options.seed is None:
        options.seed = secrets.randbelow(2**31)
    options.out = os.path.abspath(options.out or time.strftime("why-corpus-%Y%m%d-%H%M%S"))
    if os.path.isdir(options.out) and os.listdir(options.out):
        parser.error(f"{options.out} is not empty; name a new directory")
    return options


def walk(options, work):
    """The results of all runs, also when interrupted."""
    wanted = labels(options.runs, random.Random(options.seed), options.jobs.split(","))
    if options.only:
        wanted = [label for label in wanted if label.kind in options.only.split(",")]
    specs = [HostSpec("alpha"), HostSpec("beta")]
    with contextlib.ExitStack() as stack:
        groups = stack.enter_context(faults.ControlGroups())
        data = stack.enter_context(faults.data_on_disk())
        binds = {"/opt/torch": TORCH, **faults.BINDS, **data}
        bed = stack.enter_context(Testbed(specs, seed=options.seed, binds=binds))
        for host in bed.hosts:
            groups.admit(host)
        corpus = Corpus(bed, groups, work, options)
        corpus.fleet.up()
        try:
            for kind, threads in sorted({(label.job, label.threads) for label in wanted}):
                corpus.measure_usual(kind, threads)
            for number, label in enumerate(wanted, 1):
                corpus.run(number, label)
        except KeyboardInterrupt:
            print("\nwhy-corpus: interrupted; what was judged:", file=sys.stderr)
            return corpus.results, False
        finally:
            corpus.fleet.fab("down", check=False)
        say_removals(corpus.removals)
        return corpus.results, True


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not os.path.isdir(TORCH):
        print("why-corpus: PyTorch is not installed: scripts/setup --torch", file=sys.stderr)
        return 1
    os.makedirs(options.out, exist_ok=True)
    print(f"seed {options.seed}, {options.runs} runs, results in {options.out}", flush=True)
    try:
        with tempfile.TemporaryDirectory(prefix="syncline-corpus-") as work:
            results, whole = walk(options, work)
    except (TestbedError, AssertionError) as error:
        print(f"why-corpus: {error}", file=sys.stderr)
        return 1
    return 0 if summary(results) and whole else 1


if __name__ == "__main__":
    sys.exit(main())
