# SPDX-License-Identifier: Apache-2.0
"""scripts/fab_session.sh: what it ends is what it started, wholly, and nothing else."""

import os
import signal
import subprocess
import time

import pytest

PROGRAM = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
    *("scripts", "fab_session.sh"),
)
LIMIT_S = 60


class Sessions:
    """Runs the script with one shell, in a scratch directory whose name has a blank."""

    def __init__(self, shell, directory):
        self.shell = shell
        self.directory = directory

    def path(self, name):
        return str(self.directory / name)

    def run(self, *words, check=True):
        result = subprocess.run(
            [self.shell, PROGRAM, *words], check=False, capture_output=True, text=True, timeout=120
        )
        assert not check or result.returncode == 0, result.stderr
        return result

    def start_line(self, line, name="job"):
        """Starts a shell line; returns the session's first pid."""
        file, log = self.path(f"{name}.pid"), self.path(f"{name}.log")
        self.run("start-line", file, log, line, "env", "A=b c")
        return int(self.read(f"{name}.pid"))

    def state(self, name="job"):
        return self.run("state", self.path(f"{name}.pid")).stdout.strip()

    def end(self, name="job"):
        self.run("end", self.path(f"{name}.pid"))

    def read(self, name):
        return (self.directory / name).read_text()

    def wait_for_log(self, text, name="job"):
        wait_until(lambda: text in self.read(f"{name}.log"))


def wait_until(condition):
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def session_of(pid):
    found = subprocess.run(["pgrep", "-s", str(pid)], check=False, capture_output=True, text=True)
    return [int(word) for word in found.stdout.split() if lives(word)]


@pytest.fixture(params=["dash", "bash"])
def sessions(request, tmp_path):
    directory = tmp_path / "a b"
    directory.mkdir()
    made = Sessions(request.param, directory)
    yield made
    made.run("end", *map(str, directory.glob("*.pid")), check=False)


@pytest.fixture
def stranger():
    process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    time.sleep(0.05)  # processes are told apart by the clock tick, 10 ms, in which they began
    yield process
    process.kill()
    process.wait()


def test_a_compound_line_is_one_session_and_ends_as_a_whole(sessions):
    pid = sessions.start_line('cd / && echo "at $PWD, $A"; sleep 1000; echo never')
    sessions.wait_for_log("at /, b c")
    wait_until(lambda: sessions.state() == "running")
    members = session_of(pid)
    assert len(members) == 2 and pid in members  # the shell and what it runs
    sessions.end()
    assert not any(map(lives, members))
    assert "never" not in sessions.read("job.log")
    assert sorted(os.listdir(sessions.directory)) == ["job.log"]


def test_a_log_that_cannot_be_is_an_error_and_starts_nothing(sessions):
    file, log = sessions.path("job.pid"), sessions.path("no such directory/log")
    result = sessions.run("start-line", file, log, "true", "env", check=False)
    assert result.returncode != 0 and log in result.stderr
    assert not os.path.exists(file)


def test_what_outlives_the_first_process_is_ended_too(sessions):
    pid = sessions.start_line("sleep 1000 & echo $!")
    wait_until(lambda: not lives(pid))
    left = int(sessions.read("job.log"))
    assert lives(left) and sessions.state() == "running"
    sessions.end()
    assert not lives(left)


def test_what_ignores_the_request_is_killed(sessions):
    pid = sessions.start_line("trap '' TERM; echo ignored; sleep 1000; sleep 1000")
    sessions.wait_for_log("ignored")
    members = session_of(pid)
    sessions.end()
    assert not any(map(lives, members)) and session_of(pid) == []


def test_a_pid_that_is_a_stranger_s_by_now_is_left_alone(sessions, stranger):
    # The job ended; its pid was given to another program.
    pid = sessions.start_line("true")
    wait_until(lambda: not lives(pid))
    (sessions.directory / "job.pid").write_text(f"{stranger.pid}\n")
    # There never was anything but a pid.
    (sessions.directory / "bare.pid").write_text(f"{stranger.pid}\n")
    for name in ("job", "bare"):
        assert sessions.state(name) == "ended"
        sessions.end(name)
        assert not os.path.exists(sessions.path(f"{name}.pid"))
    assert lives(stranger.pid)


def test_after_a_restart_of_the_machine_nothing_is_ours(sessions):
    pid = sessions.start_line("sleep 1000")
    began, _, mark = sessions.read("job.pid.of").split()
    another = "11111111-2222-3333-4444-555555555555"
    (sessions.directory / "job.pid.of").write_text(f"{began} {another} {mark}\n")
    assert sessions.state() == "ended"
    sessions.end()
    assert lives(pid)
    os.kill(pid, signal.SIGKILL)


def test_what_a_stranger_left_in_a_session_of_that_number_is_left_alone(sessions):
    # A daemon that forked away from its session's leader, whose pid the job once had.
    command = ["setsid", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $$ $!"]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    leader, left = map(int, said.split())
    try:
        wait_until(lambda: session_of(leader) == [left])
        pid = sessions.start_line("true")
        wait_until(lambda: not lives(pid))
        (sessions.directory / "job.pid").write_text(f"{leader}\n")
        assert sessions.state() == "ended"
        sessions.end()
        assert lives(left)
    finally:
        os.kill(left, signal.SIGKILL)


def test_a_command_that_does_not_exist_ends_and_never_runs(sessions):
    sessions.start_line("no-such-command-here")
    seen = set()

    def ended():
        seen.add(sessions.state())
        return "ended" in seen

    wait_until(ended)
    assert "running" not in seen
    assert "no-such-command-here" in sessions.read("job.log")


def test_a_line_that_has_not_begun_is_starting(sessions):
    fifo = sessions.path("go")
    os.mkfifo(fifo)
    sessions.start_line(f"read x <'{fifo}'; sleep 1000; :")
    assert sessions.state() == "starting"
    with open(fifo, "w", encoding="ascii") as file:
        file.write("x\n")
    wait_until(lambda: sessions.state() == "running")


def test_replace_asks_the_first_process_only_to_make_room(sessions):
    sessions.start_line(
        "trap 'echo room; wait; exit' USR1; trap 'echo term' TERM; "
        "sh -c 'trap \"echo other; exit\" USR1 TERM; echo up; while :; do sleep 0.1; done' & "
        "while :; do sleep 0.1; done"
    )
    sessions.wait_for_log("up")
    wait_until(lambda: sessions.state() == "running")
    sessions.run("replace", sessions.path("job.pid"))
    assert sessions.read("job.log").split() == ["up", "room"]  # and in the end SIGKILL
    assert sessions.state() == "ended"
