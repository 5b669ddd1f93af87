# SPDX-License-Identifier: Apache-2.0
"""The hosts that fabfile.py works on: read from the hosts file, reached over ssh, all at once.

Nothing here knows what is done on a host; errors are turned into words that say what to do.
"""

import concurrent.futures
import dataclasses
import os
import shlex
import sys

import paramiko
from fabric import Connection
from invoke.exceptions import CommandTimedOut, Exit, UnexpectedExit

DEFAULT_AGENT_PORT = 7611
CONNECT_TIMEOUT_S = 15
COMMAND_TIMEOUT_S = 60


@dataclasses.dataclass
class Node:
    """One line of the hosts file. The `syncline` command judges the file; here it is only split."""

    name: str
    host: str
    port: int
    role: str
    connection: Connection | None = None

    @property
    def bracketed_host(self):
        """The address as it stands before a port."""
        return f"[{self.host}]" if ":" in self.host else self.host


def read_hosts(path):
    """The nodes of a hosts file, in its order."""
    nodes = []
    try:
        with open(path, encoding="utf-8-sig") as file:
            lines = [line.split("#")[0].split() for line in file]
    except OSError as error:
        raise Exit(
            f"Cannot read the hosts file {path}: {error.strerror}. SYNCLINE_HOSTS names it."
        ) from error
    for words in filter(None, lines):
        if len(words) < 2:
            raise Exit(f"{path}: the line of {words[0]} must be: name address[:port] [role=...]")
        host, _, port = words[1].rpartition(":") if words[1].count(":") == 1 else (words[1], "", "")
        if words[1].startswith("["):
            host, _, port = words[1][1:].partition("]")
        role = next((word[5:] for word in words[2:] if word.startswith("role=")), "")
        port = port.lstrip(":") or str(DEFAULT_AGENT_PORT)
        if not host or not port.isdecimal():
            raise Exit(f"{path}: the line of {words[0]} has no address[:port]: {words[1]}")
        nodes.append(Node(words[0], host, int(port), role))
    if not nodes:
        raise Exit(f"{path} names no host.")
    return nodes


def connect(c, nodes):
    for node in nodes:
        node.connection = Connection(node.host, config=c.config, connect_timeout=CONNECT_TIMEOUT_S)
        check_host_keys(c, node)
    return nodes


class WarnAboutUnknown(paramiko.MissingHostKeyPolicy):
    """No key is pinned for this host: go on, and say so."""

    def missing_host_key(self, client, hostname, key):
        print(
            f"warning: the host key of {hostname} is not known ({key.get_name()} "
            f"{key.fingerprint}); pin it in "
            "a UserKnownHostsFile",
            file=sys.stderr,
        )


def check_host_keys(c, node):
    """Fabric on its own accepts any key. Pinned files are binding; the user's own file is a second
    best."""
    configured = c.config.base_ssh_config.lookup(node.host).get("userknownhostsfile", "")
    client = node.connection.client
    pinned = [path for path in map(os.path.expanduser, configured.split()) if os.path.exists(path)]
    for path in pinned:
        client.load_host_keys(path)
    if pinned:
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
    else:
        client.load_system_host_keys()
        client.set_missing_host_key_policy(WarnAboutUnknown())


class HostError(Exception):
    """A host cannot do what was asked; `do` is the remedy."""

    def __init__(self, what, do):
        super().__init__(what)
        self.do = do


def what_to_do(error):
    """(what failed, what to do) for people, from what Fabric and paramiko throw."""
    if isinstance(error, HostError):
        return str(error), error.do
    if isinstance(error, UnexpectedExit):
        said = (error.result.stderr or error.result.stdout).strip()
        return (
            f"command failed: {shlex.quote(error.result.command)[:200]}",
            said or f"exit {error.result.exited}",
        )
    if isinstance(error, CommandTimedOut):
        return f"no answer in {error.timeout} s", "is the host overloaded?"
    if isinstance(error, paramiko.BadHostKeyException):
        return (
            str(error),
            "the host is not the one whose key is pinned; if that is right, pin its new key",
        )
    if isinstance(error, paramiko.AuthenticationException):
        return (
            "ssh refused the log-in",
            "add your public key to authorized_keys there, or set User and IdentityFile",
        )
    if isinstance(error, paramiko.SSHException) and "not found in known_hosts" in str(error):
        return (
            str(error),
            "pin its key: ssh-keyscan HOST, compare, add it to the UserKnownHostsFile",
        )
    if isinstance(error, (OSError, paramiko.SSHException)):
        return f"no ssh connection: {error}", "is the address right and sshd running there?"
    return f"{type(error).__name__}: {error}", "see above"


def on_all(nodes, work):
    """work(node) on all nodes at once: {name: result}, and {name: exception} of those that
    failed."""
    results, failures = {}, {}
    with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
        running = {pool.submit(work, node): node for node in nodes}
        for future in concurrent.futures.as_completed(running):
            node = running[future]
            error = future.exception()
            if error is None:
                results[node.name] = future.result()
            else:
                failures[node.name] = error
    return results, failures


def explain(failures):
    for name, error in sorted(failures.items()):
        what, do = what_to_do(error)
        do = do.replace("\n", "\n       ")
        print(f"error: {name}: {what}\n       {do}", file=sys.stderr)


def remote(node, command, **options):
    """Runs a command on a host; its output comes back, it is not printed."""
    options = {"timeout": COMMAND_TIMEOUT_S, **options}
    return node.connection.run(command, hide=True, in_stream=False, **options)


def show(where, command):
    print(f"{where}$ {command}", flush=True)


def names(nodes):
    return ",".join(node.name for node in nodes)
