# SPDX-License-Identifier: Apache-2.0
"""The words that fabfile.py and the demo put together for shells and frameworks, without hosts."""

import json
import shlex
import subprocess

import fabfile
from scripts import demo_journey
from scripts.fab_hosts import Node


def test_tensorflow_gets_ipv6_addresses_in_brackets():
    nodes = [Node("m", "fd00::1", 7611, "master"), Node("w", "10.0.0.2", 7611, "worker")]
    cluster = json.loads(fabfile.tf_config(nodes, nodes[0], 2222))["cluster"]
    assert cluster == {"master": ["[fd00::1]:2222"], "worker": ["10.0.0.2:2222"]}


def test_the_job_s_line_keeps_the_command_whole_and_paths_with_blanks(monkeypatch):
    monkeypatch.setenv("SYNCLINE_PREFIX", "/opt/a b")
    node = Node("w", "fd00::2", 7611, "worker")
    command = "cd 'x y' && python {role}.py; echo $HOME"
    line = fabfile.job_line([node], node, 0, "night", command, 2222)
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
    assert len(given) == 4
    for command in given:
        assert any(word.startswith("my run") for word in shlex.split(command)), command


def test_the_session_script_is_a_shell_script_to_every_shell():
    for shell in ("dash", "bash"):
        subprocess.run([shell, "-n", "scripts/fab_session.sh"], check=True)
