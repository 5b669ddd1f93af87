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
import json
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
    CONNECT_TIMEOUT_S,
    HostError,
    connect,
    explain,
    names,
    on_all,
    read_hosts,
    remote,
    show,
)

STOP_TIMEOUT_S = 10
READY_TIMEOUT_S = 180
SETTLE_S = 2  # a command that does not exist has ended by then
REPOSITORY = os.path.dirname(os.path.abspath(__file__))


def setting(name, default):
    return os.environ.get(name) or default


def hosts_file():
    return setting("SYNCLINE_HOSTS", "hosts")


def tls_dir():
    return setting("SYNCLINE_TLS_DIR", "tls")


def prefix():
    return setting("SYNCLINE_PREFIX", "/opt/syncline")


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


def detached(command, log, pid_file):
    """A shell line that starts a command which outlives the log-in, in a session of its own."""
    log, pid_file = shlex.quote(log), shlex.quote(pid_file)
    return f"setsid nohup {command} </dev/null >>{log} 2>&1 & echo $! >{pid_file}"


def end_session(pid_file):
    """A shell line that ends the session a detached() command began: asked first, then killed."""
    file = shlex.quote(pid_file)
    return (
        f"test ! -e {file} || {{ p=$(cat {file}); pkill -TERM -s $p; "
        f"timeout {STOP_TIMEOUT_S} tail --pid=$p -f /dev/null || pkill -KILL -s $p; "
        f"rm -f {file}; }}"
    )


def agent_files():
    var = os.path.join(prefix(), "var")
    return os.path.join(var, "agent.log"), os.path.join(var, "agent.pid")


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
    show(names(nodes), agent_command(nodes[0]) + "   # each with its own address")
    _, failures = on_all(nodes, start_agent)
    if failures:
        explain(failures)
        on_all(nodes, stop_agent)
        raise Exit("The agents of the other hosts were stopped again.", code=1)
    local("nodes", *fleet_arguments(), fine=(0, 3))


def node_certificates(node):
    return os.path.join(tls_dir(), "nodes", node.name)


def install(node, archive):
    root = shlex.quote(prefix())
    tls = os.path.join(prefix(), "tls")
    # Every user of the host runs its jobs from here; keys, certificates and recordings are private.
    private = f"{root}/var/data {shlex.quote(tls)}"
    remote(node, f"umask 022 && mkdir -p {root}/var {private} && chmod 700 {private}")
    node.connection.put(archive, os.path.join(prefix(), "syncline.tar.gz"))
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
            "on Debian 12: apt-get install lttng-tools liblttng-ctl0 liblttng-ust1 libgrpc++1.51",
        )


def agent_command(node):
    host = f"[{node.host}]" if ":" in node.host else node.host
    return shlex.join(
        [
            f"{prefix()}/bin/syncline-agent",
            "--listen",
            f"{host}:{node.port}",
            "--data-dir",
            f"{prefix()}/var/data",
            "--tls-dir",
            f"{prefix()}/tls",
            "--node-name",
            node.name,
        ]
    )


def start_agent(node):
    log, pid_file = agent_files()
    stop_agent(node)
    remote(node, detached(agent_command(node), log, pid_file))
    # Its own socket, not whoever's: a port that is taken answers, too.
    listens = f"ss -Hltnp 'sport = :{node.port}' | grep -q pid=$(cat {pid_file}),"
    deadline = time.monotonic() + CONNECT_TIMEOUT_S
    while time.monotonic() < deadline:
        if remote(node, listens, warn=True).ok:
            return
        if not remote(node, f"kill -0 $(cat {pid_file})", warn=True).ok:
            break
        time.sleep(0.2)
    said = remote(node, f"tail -n 5 {log}", warn=True).stdout.strip()
    raise HostError("the agent does not serve", f"{log} ends with:\n{said}")


def stop_agent(node):
    remote(node, end_session(agent_files()[1]), warn=True)


@task
def status(_):
    """What each node is and can trace, and what is being recorded where."""
    local("nodes", *fleet_arguments(), fine=(0, 3))
    local("status", *fleet_arguments(), fine=(0, 3))


# ---- the job -------------------------------------------------------------------------------------


@task(
    help={
        "command": "what to run on each host; {role}, {name}, {rank}, {host}, {master} are set",
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
    if copy and not os.path.isdir(copy):
        raise Exit(f"--copy {copy}: there is no such directory here.")
    directory = f"{prefix()}/var/jobs/{job}"
    lines = {
        node.name: job_line(nodes, node, rank, directory, job, command, int(port))
        for rank, node in enumerate(nodes)
    }
    if copy:
        print(f"copying {copy} to {names(nodes)}", flush=True)
    _, failures = on_all(nodes, lambda node: prepare_job(node, directory, copy))
    if failures:
        explain(failures)
        raise Exit("No job was started.", code=1)
    for node in nodes:
        show(node.name, lines[node.name])
    _, failures = on_all(nodes, lambda node: remote(node, lines[node.name]))
    failures = failures or wait_for_job(nodes, directory, ready)
    if failures:
        explain(failures)
        on_all(nodes, lambda node: remote(node, end_session(f"{directory}.pid"), warn=True))
        raise Exit("The job was ended on the other hosts.", code=1)


def job_line(nodes, node, rank, directory, job, command, port):
    for word, value in (
        ("role", node.role),
        ("name", node.name),
        ("rank", str(rank)),
        ("host", node.host),
        ("master", nodes[0].host),
    ):
        command = command.replace("{" + word + "}", value)
    environment = {
        "RANK": rank,
        "WORLD_SIZE": len(nodes),
        "LOCAL_RANK": 0,
        "MASTER_ADDR": nodes[0].host,
        "MASTER_PORT": port,
        "TF_CONFIG": tf_config(nodes, node, port),
    }
    words = [f"{key}={value}" for key, value in environment.items() if value != ""]
    run = [f"{prefix()}/bin/syncline", "run", "--job", job]
    if node.role:
        run += ["--role", node.role]
    line = f"{shlex.join(['env', *words, *run, '--'])} {command}"
    return f"cd {directory} || exit; {detached(line, f'{directory}.log', f'{directory}.pid')}"


def tf_config(nodes, node, port):
    """TensorFlow's own description of a cluster; empty when a node has no role."""
    if not all(other.role for other in nodes):
        return ""
    cluster = {}
    for other in nodes:
        cluster.setdefault(other.role, []).append(f"{other.host}:{port}")
    index = [other.name for other in nodes if other.role == node.role].index(node.name)
    return json.dumps({"cluster": cluster, "task": {"type": node.role, "index": index}})


def prepare_job(node, directory, copy):
    if remote(node, f"kill -0 $(cat {directory}.pid)", warn=True).ok:
        raise HostError(
            "a job of this name runs there",
            "end it with fab down --jobs-only, or choose another --job NAME",
        )
    remote(node, f"rm -f {directory}.log && mkdir -p {directory}")
    if copy:
        for name in sorted(os.listdir(copy)):
            if os.path.isfile(os.path.join(copy, name)):
                node.connection.put(os.path.join(copy, name), f"{directory}/{name}")


def wait_for_job(nodes, directory, ready):
    """Until some log holds `ready` (when empty: until the jobs had time to fail); {name: error}
    when a process ended instead."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    settled = time.monotonic() + SETTLE_S
    while True:
        _, failures = on_all(nodes, lambda node: check_alive(node, directory))
        if failures:
            return failures
        found = on_all(
            nodes,
            lambda node: remote(
                node, f"grep -q -F -- {shlex.quote(ready)} {directory}.log", warn=True
            ).ok,
        )
        if (ready and any(found[0].values())) or (not ready and time.monotonic() > settled):
            return {}
        if time.monotonic() > deadline:
            late = HostError(f"no log holds {ready!r} after {READY_TIMEOUT_S} s", "see fab logs")
            return {nodes[0].name: late}
        time.sleep(0.5)


def check_alive(node, directory):
    if not remote(node, f"kill -0 $(cat {directory}.pid)", warn=True).ok:
        said = remote(node, f"tail -n 8 {directory}.log", warn=True).stdout.strip()
        raise HostError("the job ended", f"its log {directory}.log ends with:\n{said}")


# ---- recordings ----------------------------------------------------------------------------------


def newest_run(run):
    found = run or max(glob.glob("run-*"), key=os.path.getmtime, default="")
    if not found:
        raise Exit("There is no run-* here: name the recording with --run.")
    return found


@task(help={"duration": "how long, e.g. 10s (default)", "out": "where to (default: run-DATE-TIME)"})
def record(_, duration="10s", out=""):
    """Record all hosts at once and collect what they recorded."""
    out = out or time.strftime("run-%Y%m%d-%H%M%S")
    local("record", *fleet_arguments(), "--for", duration, "--out", out, fine=(0, 3))


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
    line = f"for f in {prefix()}/var/jobs/*.pid; do {end_session('PID_FILE')}; done".replace(
        "PID_FILE", '"$f"'
    )
    if not jobs_only:
        line += f"; {end_session(agent_files()[1])}"
    show(names(nodes), line)
    _, failures = on_all(nodes, lambda node: remote(node, line, warn=True))
    if failures:
        explain(failures)
        raise Exit("The other hosts are down.", code=1)


@task(help={"lines": "of each log (default 40)"})
def logs(c, lines=40):
    """Show the ends of the agents' and jobs' logs."""
    nodes = connect(c, read_hosts(hosts_file()))
    line = f"tail -n {int(lines)} {prefix()}/var/agent.log {prefix()}/var/jobs/*.log"
    show(names(nodes), line)
    results, failures = on_all(nodes, lambda node: remote(node, line, warn=True).stdout)
    for node in nodes:
        if node.name in results:
            print(f"\n===== {node.name} =====\n{results[node.name]}")
    if failures:
        explain(failures)
        raise Exit(code=1)
