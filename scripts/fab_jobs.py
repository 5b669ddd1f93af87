# SPDX-License-Identifier: Apache-2.0
"""The jobs that fabfile.py starts and ends on hosts: `syncline run` over ssh.

Also where Syncline and its jobs are there, as both need that.
"""

import json
import os
import shlex
import time

from invoke.exceptions import Exit

from scripts.fab_hosts import HostError, explain, names, on_all, remote, show

READY_TIMEOUT_S = 180
BEGIN_TIMEOUT_S = 30  # a shell that lives but starts no program for so long is the program
SETTLE_S = 2  # a command that has begun, and fails at once, is told from one that works


def setting(name, default):
    return os.environ.get(name) or default


def prefix():
    return setting("SYNCLINE_PREFIX", "/opt/syncline")


def there(*parts):
    """A path below Syncline's directory on the hosts."""
    return os.path.join(prefix(), *parts)


def session_program():
    return there("libexec/syncline/session")


def session(*words):
    """A shell line for the hosts: scripts/fab_session.sh, which starts and ends what outlives the
    log-in."""
    return shlex.join([session_program(), *words])


def agent_files():
    return there("var/agent.pid"), there("var/agent.log")


def job_files(job):
    """A job's directory, pid file and log."""
    directory = there("var/jobs", job)
    return directory, f"{directory}.pid", f"{directory}.log"


def end_of(node, log, lines):
    """What the last lines of a log say, for people."""
    said = remote(node, f"tail -n {lines} {shlex.quote(log)}", warn=True).stdout.strip()
    return f"its log {log} ends with:\n{said}" if said else f"its log {log} is empty"


def state_of(node, pid_file):
    return remote(node, session("state", pid_file)).stdout.strip()


def start_job(nodes, job, command, port, copy="", ready=""):
    """On all nodes, ready to be traced; ended again where it does not start on all. `copy`: a
    directory to copy there; `ready`: a text of a log to wait for."""
    lines = {
        node.name: job_line(nodes, node, rank, job, command, port)
        for rank, node in enumerate(nodes)
    }
    if copy:
        print(f"copying {copy} to {names(nodes)}", flush=True)
    _, failures = on_all(nodes, lambda node: prepare_job(node, job, copy))
    if failures:
        explain(failures)
        raise Exit("No job was started.", code=1)
    for node in nodes:
        show(node.name, lines[node.name])
    _, failures = on_all(nodes, lambda node: remote(node, lines[node.name]))
    failures = failures or wait_for_job(nodes, job, ready)
    if failures:
        explain(failures)
        left = end_job(nodes, job)
        explain(left)
        raise Exit(
            f"The job may still run on {', '.join(sorted(left))}."
            if left
            else "The job was ended on all hosts.",
            code=1,
        )


def job_line(nodes, node, rank, job, command, port):
    """Starts a node's part: one session, in which `syncline run` becomes the shell that runs the
    command."""
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
    run = [there("bin/syncline"), "run", "--job", job]
    if node.role:
        run += ["--role", node.role]
    directory, pid_file, log = job_files(job)
    start = session("start-line", pid_file, log, command, "env", *words, *run, "--")
    return f"cd {shlex.quote(directory)} && {start}"


def tf_config(nodes, node, port):
    """TensorFlow's own description of a cluster; empty when a node has no role."""
    if not all(other.role for other in nodes):
        return ""
    cluster = {}
    for other in nodes:
        cluster.setdefault(other.role, []).append(f"{other.bracketed_host}:{port}")
    index = [other.name for other in nodes if other.role == node.role].index(node.name)
    return json.dumps({"cluster": cluster, "task": {"type": node.role, "index": index}})


def prepare_job(node, job, copy):
    directory, pid_file, log = job_files(job)
    if not remote(node, f"test -x {shlex.quote(session_program())}", warn=True).ok:
        raise HostError(f"there is no {session_program()}", "fab up installs Syncline there")
    if state_of(node, pid_file) != "ended":
        raise HostError(
            "a job of this name runs there",
            "end it with fab down --jobs-only, or choose another --job NAME",
        )
    remote(node, f"rm -f {shlex.quote(log)} && mkdir -p {shlex.quote(directory)}")
    if copy:
        for name in sorted(os.listdir(copy)):
            if os.path.isfile(os.path.join(copy, name)):
                node.connection.put(os.path.join(copy, name), os.path.join(directory, name))


def wait_for_job(nodes, job, ready):
    """Until some log holds `ready`; when empty, until the command has begun on all hosts and had
    time to fail. {name: error} when it ended instead."""
    begin = time.monotonic()
    began = None
    while True:
        states, failures = on_all(nodes, lambda node: check_alive(node, job))
        now = time.monotonic()
        if failures:
            return failures
        if ready:
            found, _ = on_all(nodes, lambda node: holds(node, job_files(job)[2], ready))
            if any(found.values()):
                return {}
            if now - begin > READY_TIMEOUT_S:
                late = f"no log holds {ready!r} after {READY_TIMEOUT_S} s"
                return {nodes[0].name: HostError(late, "see fab logs")}
        elif began is None and (
            set(states.values()) == {"running"} or now - begin > BEGIN_TIMEOUT_S
        ):
            began = now
        elif began is not None and now - began > SETTLE_S:
            return {}
        time.sleep(0.5)


def check_alive(node, job):
    _, pid_file, log = job_files(job)
    state = state_of(node, pid_file)
    if state == "ended":
        raise HostError("the job ended", end_of(node, log, 8))
    return state


def holds(node, log, text):
    found = remote(node, f"grep -q -F -- {shlex.quote(text)} {shlex.quote(log)}", warn=True)
    return found.ok


def end_job(nodes, job):
    """On all nodes where it runs: {name: error} of those where it may go on."""
    line = session("end", job_files(job)[1])
    show(names(nodes), line)
    _, failures = on_all(nodes, lambda node: remote(node, line))
    return failures
