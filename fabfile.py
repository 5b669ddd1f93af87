# SPDX-License-Identifier: Apache-2.0
"""Deploys Syncline to the hosts of a training job, launches the job, records and merges: Fabric 3.

    export SYNCLINE_HOSTS=hosts SYNCLINE_TLS_DIR=tls
    fab certs                                # certificates for these nodes and for you
    fab up                                   # copy the installed tree, start the agents
    fab launch --copy examples/tensorflow_two_partitions --command 'python3 {role}.py'
    fab record --duration 10s --out run-1
    fab fetch --run run-1
    fab merge --run run-1
    fab down

Every task prints the commands it runs, on this machine and on the hosts: all of them work by hand.
All hosts are worked on at once; when one fails it is named with what to do, and what the task had
started on the others is stopped again.

Settings (environment):
    SYNCLINE_HOSTS     the hosts file (default: hosts): `name address[:port] [role=...]` lines
    SYNCLINE_TLS_DIR   the fleet's certificates (default: tls)
    SYNCLINE_PREFIX    where Syncline lives on the hosts (default: /opt/syncline)
    SYNCLINE_BUILD     the build that `up` installs (default: build)

SSH is configured as always, in ~/.ssh/config or with `fab -S FILE`. Host keys are checked against
the UserKnownHostsFile named there; where none is named, against ~/.ssh/known_hosts, and an unknown
host is accepted with a warning.
"""

import glob
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time

from fabric import task
from invoke.exceptions import Exit

from scripts.fab_hosts import (
    CONNECT_TIMEOUT_S, HostError, connect, explain, names, on_all, read_hosts, remote, show,
)
from scripts.fab_jobs import (
    agent_files, end_job, end_of, job_files, prefix, session, session_program, setting, start_job,
    state_of, there,
)

SELFTEST_JOB = "selftest"
SETTLE_S = 2  # until the delay is in every step
REPOSITORY = os.path.dirname(os.path.abspath(__file__))


def hosts_file():
    return setting("SYNCLINE_HOSTS", "hosts")


def tls_dir():
    return setting("SYNCLINE_TLS_DIR", "tls")


def build_dir():
    return setting("SYNCLINE_BUILD", os.path.join(REPOSITORY, "build"))


# ---- commands ------------------------------------------------------------------------------------


def syncline_program():
    return shutil.which("syncline") or os.path.join(build_dir(), "bin", "syncline")


def local(*arguments, fine=(0,)):
    show("", shlex.join(["syncline", *arguments]))
    program = syncline_program()
    if not os.path.exists(program):
        raise Exit(
            f"{program} does not exist: build first (scripts/setup), or put syncline into "
            "your PATH."
        )
    code = subprocess.run([program, *arguments], check=False).returncode
    if code not in fine:
        raise Exit(code=code)
    return code


def fleet_arguments():
    return ["--hosts", hosts_file(), "--tls-dir", tls_dir()]


def make_tree_archive(path):
    """An installed tree, as a distribution would lay it out, in one archive."""
    with tempfile.TemporaryDirectory() as stage:
        command = ["cmake", "--install", build_dir(), "--prefix", stage, "--strip"]
        show("", shlex.join(command))
        result = subprocess.run(command, check=False, capture_output=True, text=True)
        if result.returncode != 0:
            raise Exit(f"{result.stdout}{result.stderr}Build first: scripts/setup.")
        # For all users there, whatever this user's umask and the scratch directory's mode are.
        everybody = "--mode=u+rwX,go+rX,go-w"
        subprocess.run(["tar", everybody, "-czf", path, "-C", stage, "."], check=True)


@task
def certs(_):
    """Make the fleet's certificates: an authority, one certificate per node, one for the
    operator."""
    local("certs", "init", tls_dir(), "--hosts", hosts_file())


@task
def up(c):
    """Copy the installed tree and each node's certificate to all hosts, and start the agents."""
    nodes = connect(c, read_hosts(hosts_file()))
    for node in nodes:
        if not os.path.isdir(node_certificates(node)):
            raise Exit(f"{node_certificates(node)} does not exist: fab certs makes it.")
    with tempfile.TemporaryDirectory() as scratch:
        archive = os.path.join(scratch, "syncline.tar.gz")
        make_tree_archive(archive)
        print(f"copying {os.path.getsize(archive) / 1e6:.1f} MB to {names(nodes)}", flush=True)
        _, failures = on_all(nodes, lambda node: install(node, archive))
    if failures:
        explain(failures)
        raise Exit("No agent was started.", code=1)
    start = session("start", *agent_files(), *agent_command(nodes[0]))
    show(names(nodes), f"{start}   # each with its own address")
    _, failures = on_all(nodes, start_agent)
    if failures:
        explain(failures)
        on_all(nodes, lambda node: remote(node, session("end", agent_files()[0]), warn=True))
        raise Exit("The agents of the other hosts were stopped again.", code=1)
    local("nodes", *fleet_arguments(), fine=(0, 3))


def node_certificates(node):
    return os.path.join(tls_dir(), "nodes", node.name)


def install(node, archive):
    check_place(node)
    root, tls = shlex.quote(prefix()), there("tls")
    # Every user of the host runs its jobs from here; keys, certificates and recordings are private.
    private = shlex.join([there("var/data"), tls])
    remote(node, f"umask 022 && mkdir -p {root}/var/jobs {private} && chmod 700 {private}")
    node.connection.put(archive, there("syncline.tar.gz"))
    remote(node, f"cd {root} && tar -xzf syncline.tar.gz --no-same-owner && rm syncline.tar.gz")
    for name in sorted(os.listdir(node_certificates(node))):
        node.connection.put(os.path.join(node_certificates(node), name), os.path.join(tls, name))
    remote(node, f"chmod 600 {shlex.quote(tls)}/*")
    missing = remote(
        node, f"ldd {root}/bin/syncline-agent | grep 'not found' || true"
    ).stdout.split("\n")
    missing = [line.split()[0] for line in missing if line.strip()]
    if missing:
        raise HostError(
            f"libraries are missing there: {' '.join(missing)}",
            "on Debian 12: apt-get install lttng-tools liblttng-ctl0 liblttng-ust1 libdw1 "
            "libgrpc++1.51",
        )


def check_place(node):
    """An ordinary user can install only into what is theirs, or is yet to be made; root only where
    nobody else can exchange what root then runs."""
    own = shlex.join(there(part) for part in ("bin", "tls", "var", "var/data", "var/jobs"))
    root = shlex.quote(prefix())
    foreign = remote(
        node,
        f'for d in {own}; do test ! -e "$d" || test -O "$d" || stat -c "%U %n" "$d"; done; '
        f'd={root}; until test -e "$d"; do d=$(dirname "$d"); done; '
        'test -w "$d" || stat -c "%U %n" "$d"; id -un',
    ).stdout.splitlines()
    user = foreign.pop()
    if user == "root":
        foreign += remote(node, NOT_ROOT_S.replace("PREFIX", root)).stdout.splitlines()
    if not foreign:
        return
    owner, _, directory = foreign[0].partition(" ")
    if user == "root":
        raise HostError(
            f"users other than root can change {directory} there ({owner}'s), and ssh logs in as "
            "root",
            "have it removed there, or set SYNCLINE_PREFIX to a directory that only root can "
            "change; or log in as an ordinary user (User in ~/.ssh/config)",
        )
    raise HostError(
        f"{directory} is {owner}'s there, and ssh logs in as {user}",
        f"log in as {owner} (User in ~/.ssh/config), or set SYNCLINE_PREFIX to a directory of "
        f"{user}'s on the hosts",
    )


# Prints "owner path" of what others than root can exchange: the parts of the way to the prefix, as
# it is written and as its links lead, and what is installed there. Below var the jobs lie.
NOT_ROOT_S = r"""
others() {
  find "$@" '(' ! -uid 0 -o ! -type l -perm -0002 ! -perm -1000 ')' -printf '%u %p\n' -quit
}
for d in PREFIX "$(readlink -m PREFIX)"; do
  until test "$d" = . ; do
    test ! -e "$d" -a ! -L "$d" || others "$d" -maxdepth 0
    test "$d" != / || break
    d=$(dirname "$d")
  done
done
test ! -d PREFIX || others PREFIX/ -path PREFIX/var -prune -o
"""


def agent_command(node):
    return [
        there("bin/syncline-agent"),
        "--listen",
        f"{node.bracketed_host}:{node.port}",
        "--data-dir",
        there("var/data"),
        "--tls-dir",
        there("tls"),
        "--node-name",
        node.name,
    ]


def start_agent(node):
    pid_file, log = agent_files()
    # SIGUSR1: the session daemon goes on for the next agent, and the jobs stay known to it.
    remote(node, session("replace", pid_file))
    remote(node, session("start", pid_file, log, *agent_command(node)))
    # Its own socket, not whoever's: a port that is taken answers, too.
    listens = f"ss -Hltnp 'sport = :{node.port}' | grep -q pid=$(cat {shlex.quote(pid_file)}),"
    deadline = time.monotonic() + CONNECT_TIMEOUT_S
    while time.monotonic() < deadline:
        if remote(node, listens, warn=True).ok:
            return
        if state_of(node, pid_file) == "ended":
            break
        time.sleep(0.2)
    raise HostError("the agent does not serve", end_of(node, log, 5))


@task
def status(_):
    """Show what each node is and can trace, and what is being recorded."""
    local("nodes", *fleet_arguments(), fine=(0, 3))
    local("status", *fleet_arguments(), fine=(0, 3))


# ---- the job -------------------------------------------------------------------------------------


@task(
    help={
        "command": "a shell line to run on each host, by bash where there is one; {role}, {name}, "
        "{rank}, {host}, {master} are set",
        "job": "the job's name (default: job)",
        "copy": "a directory to copy to the hosts; the command runs in it",
        "port": "the job's own port: TF_CONFIG's servers, MASTER_PORT (default: 2222)",
        "ready": "wait until a log holds this text",
    }
)
def launch(c, command, job="job", copy="", port=2222, ready=""):
    """Start a job on all hosts, ready to be traced: `syncline run` over ssh, with TF_CONFIG and
    RANK set."""
    nodes = connect(c, read_hosts(hosts_file()))
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", job):
        raise Exit(f"--job {job!r}: letters, digits, '.', '_' and '-' only.")
    if not command.strip():
        raise Exit("--command is empty: what is to run on the hosts?")
    if copy and not os.path.isdir(copy):
        raise Exit(f"--copy {copy}: there is no such directory here.")
    start_job(nodes, job, command, int(port), copy, ready)


# ---- recordings ----------------------------------------------------------------------------------


def newest_run(run):
    found = run or max(glob.glob("run-*"), key=os.path.getmtime, default="")
    if not found:
        raise Exit("There is no run-* here: name the recording with --run.")
    return found


@task(help={"duration": "how long, e.g. 10s (default)", "out": "where to (default: run-DATE-TIME)",
            "detail": "full (default), normal or low: docs/detail.md"})
def record(_, duration="10s", out="", detail="full"):
    """Record all hosts at once and collect what they recorded."""
    out = out or time.strftime("run-%Y%m%d-%H%M%S")
    local("record", *fleet_arguments(), "--for", duration, "--out", out, "--detail", detail,
          fine=(0, 3))


@task(help={"analysis": "VTune's name of it (default: hotspots)", "duration": "as of record",
            "out": "as of record"})
def vtune(_, analysis="hotspots", duration="10s", out=""):
    """Record all hosts, and collect with Intel VTune on those that have it."""
    out = out or time.strftime("run-%Y%m%d-%H%M%S")
    local("vtune", analysis, *fleet_arguments(), "--for", duration, "--out", out, fine=(0, 3))


@task(help={"python": "on the hosts, with PyTorch (default: python3)",
            "delay": "of one rank, milliseconds a step (default: 20)",
            "late-rank": "which rank is delayed (default: that of the last host)",
            "duration": "of each of the two recordings (default: 10s)",
            "out": "where to (default: selftest-DATE-TIME)",
            "interface": "the hosts' network, where they have several (GLOO_SOCKET_IFNAME)",
            "port": "MASTER_PORT of its job (default: 2223)"})
def selftest(c, python="python3", delay="20", late_rank="", duration="10s", out="", interface="",
             port=2223):
    """Train a small PyTorch job on all hosts, delay one rank and shift one clock by known times,
    and check that both are found."""
    nodes = connect(c, read_hosts(hosts_file()))
    if len(nodes) < 2:
        raise Exit("One host has one rank, and nobody to wait for it: syncline selftest there.")
    late_rank = late_rank or str(len(nodes) - 1)
    if not late_rank.isdecimal() or int(late_rank) >= len(nodes):
        raise Exit(f"--late-rank {late_rank}: there are ranks 0 to {len(nodes) - 1}.")
    if not re.fullmatch(r"\d+(\.\d+)?", delay) or not 1 <= float(delay) <= 1000:
        raise Exit(f"--delay {delay}: 1 to 1000 milliseconds.")
    late = nodes[int(late_rank)]
    out = out or time.strftime("selftest-%Y%m%d-%H%M%S")
    healthy, delayed = os.path.join(out, "healthy"), os.path.join(out, "delayed")
    directory = job_files(SELFTEST_JOB)[0]
    variables = ["OMP_NUM_THREADS=1"] + ([f"GLOO_SOCKET_IFNAME={interface}"] if interface else [])
    job = shlex.join(["exec", "env", *variables, python, there("lib/syncline-selftest/train.py")])
    start_job(nodes, SELFTEST_JOB, f"rm -f switch && {job}", int(port), ready="step 60:")
    try:
        local("record", *fleet_arguments(), "--for", duration, "--out", healthy,
              fine=(0, 3))
        line = f"echo {late_rank} {delay} > {shlex.quote(os.path.join(directory, 'switch'))}"
        show(late.name, line)
        remote(late, line)
        time.sleep(SETTLE_S + 3 * float(delay) / 1000)
        local("record", *fleet_arguments(), "--for", duration, "--out", delayed,
              fine=(0, 3))
    finally:
        explain(end_job(nodes, SELFTEST_JOB))
    local("selftest", healthy, delayed, "--delay", f"{delay}ms", "--late-rank", late_rank)


@task(help={"run": "the recording (default: the newest run-*)"})
def fetch(_, run=""):
    """Fetch what is still on the hosts of a recording."""
    local("fetch", newest_run(run), *fleet_arguments(), fine=(0, 3))


@task(help={"run": "the recording (default: the newest run-*)"})
def merge(_, run=""):
    """Merge a recording into one timeline."""
    local("merge", newest_run(run), fine=(0, 3))


@task(help={"jobs-only": "leave the agents running"})
def down(c, jobs_only=False):
    """End the jobs and agents that were started from here. What was installed and recorded
    stays."""
    nodes = connect(c, read_hosts(hosts_file()))
    files = f"{shlex.quote(there('var/jobs'))}/*.pid"
    if not jobs_only:
        files += f" {shlex.quote(agent_files()[0])}"
    program = session("end")
    line = f"test ! -e {shlex.quote(session_program())} || {session('end')} {files}"
    show(names(nodes), line)
    _, failures = on_all(nodes, lambda node: remote(node, line))
    if failures:
        explain(failures)
        raise Exit("The other hosts are down.", code=1)


@task(help={"lines": "of each log (default 40)"})
def logs(c, lines=40):
    """Show the ends of the agents' and jobs' logs."""
    nodes = connect(c, read_hosts(hosts_file()))
    agent, jobs = shlex.quote(agent_files()[1]), shlex.quote(there("var/jobs"))
    line = f"tail -n {int(lines)} {agent} {jobs}/*.log"
    show(names(nodes), line)
    results, failures = on_all(nodes, lambda node: remote(node, line, warn=True).stdout)
    for node in nodes:
        if node.name in results:
            print(f"\n===== {node.name} =====\n{results[node.name]}")
    if failures:
        explain(failures)
        raise Exit(code=1)
