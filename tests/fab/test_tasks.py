# SPDX-License-Identifier: Apache-2.0
"""The words that fabfile.py and the demo put together for shells and frameworks, without hosts."""

import json
import os
import shlex
import subprocess

import pytest

import fabfile
from scripts import demo_journey, fab_jobs
from scripts.fab_hosts import HostError, Node

SOMEBODY = 2001


def test_tensorflow_gets_ipv6_addresses_in_brackets():
    nodes = [Node("m", "fd00::1", 7611, "master"), Node("w", "10.0.0.2", 7611, "worker")]
    cluster = json.loads(fab_jobs.tf_config(nodes, nodes[0], 2222))["cluster"]
    assert cluster == {"master": ["[fd00::1]:2222"], "worker": ["10.0.0.2:2222"]}


def test_the_job_s_line_keeps_the_command_whole_and_paths_with_blanks(monkeypatch):
    monkeypatch.setenv("SYNCLINE_PREFIX", "/opt/a b")
    node = Node("w", "fd00::2", 7611, "worker")
    command = "cd 'x y' && python {role}.py; echo $HOME"
    line = fab_jobs.job_line([node], node, 0, "night", command, 2222)
    enter, _, start = line.partition(" && ")
    assert shlex.split(enter) == ["cd", "/opt/a b/var/jobs/night"]
    words = shlex.split(start)
    assert words[:2] == ["/opt/a b/libexec/syncline/session", "start-line"]
    assert words[4] == "cd 'x y' && python worker.py; echo $HOME"
    run = ["/opt/a b/bin/syncline", "run", "--job", "night", "--role", "worker", "--"]
    assert words[-7:] == run


def test_the_demo_s_hints_work_for_a_directory_with_a_blank(capsys):
    demo_journey.tell_results("my run", demo_journey.TENSORFLOW)
    lines = capsys.readouterr().out.splitlines()
    commands = [line[17:] for line in lines if "syncline " in line or "babeltrace2" in line]
    given = [line.split("   ")[0] for line in commands if "my run" in line]
    assert len(given) == 5
    for command in given:
        assert any(word.startswith("my run") for word in shlex.split(command)), command


def test_the_session_script_is_a_shell_script_to_every_shell():
    for shell in ("dash", "bash"):
        subprocess.run([shell, "-n", "scripts/fab_session.sh"], check=True)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A prefix on a host which is this machine, where ssh logs in as root; it is there already."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files to somebody else")
    prefix = tmp_path / "opt" / "sync line"
    for part in ("bin", "libexec/syncline", "tls", "var/data", "var/jobs/digits"):
        (prefix / part).mkdir(parents=True)
    (prefix / "bin" / "syncline-agent").touch()
    monkeypatch.setenv("SYNCLINE_PREFIX", str(prefix))

    def here(_, command):
        return subprocess.run(
            ["sh", "-c", command], check=True, text=True, capture_output=True, umask=0o022
        )

    monkeypatch.setattr(fabfile, "remote", here)
    return prefix


def test_root_installs_where_only_root_can_change_anything(place):
    os.chown(place / "var" / "jobs" / "digits", SOMEBODY, SOMEBODY)  # a job's own
    fabfile.check_place(None)


@pytest.mark.parametrize(
    "part", ["..", ".", "bin", "libexec/syncline", "bin/syncline-agent", "var"]
)
def test_root_does_not_install_into_another_user_s_tree(place, part):
    os.chown(place / part, SOMEBODY, SOMEBODY)
    with pytest.raises(HostError, match="users other than root can change") as refused:
        fabfile.check_place(None)
    assert "SYNCLINE_PREFIX" in refused.value.do


def test_root_does_not_install_where_everybody_may_write(place):
    place.parent.chmod(0o777)
    with pytest.raises(HostError, match="users other than root can change"):
        fabfile.check_place(None)


def test_root_does_not_install_through_another_user_s_link(place, monkeypatch):
    link = place.parent / "link"
    link.symlink_to(place)
    monkeypatch.setenv("SYNCLINE_PREFIX", str(link))
    fabfile.check_place(None)
    os.chown(link, SOMEBODY, SOMEBODY, follow_symlinks=False)
    with pytest.raises(HostError, match="users other than root can change"):
        fabfile.check_place(None)
