# SPDX-License-Identifier: Apache-2.0
"""Full disks, on a node and here: said with the place and what to do, and nothing that was there is
lost. A small tmpfs plays the disk."""

import contextlib
import errno
import os
import subprocess

import pytest

from tests.integration.fleet import FAILED, INCOMPLETE, TICKER_BINDS, Fleet, load, node_of
from tests.testbed import HostSpec, Testbed

DATA = "/opt/syncline/var/data"
KEEP_FREE_MIB = 8


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Two hosts on which a small job ticks; the disk of `right` holds 32 MiB."""
    with Testbed([HostSpec("left"), HostSpec("right")], seed=43, binds=TICKER_BINDS) as bed:
        made = Fleet(bed, tmp_path_factory.mktemp("disks"))
        bed["right"].run(["mkdir", "-p", DATA])
        bed["right"].run(["mount", "-t", "tmpfs", "-o", "size=32m,mode=700", "tmpfs", DATA])
        made.up()
        made.launch_ticker("0.0002")
        yield made
        made.fab("down")


@contextlib.contextmanager
def small_disk(path, mib):
    os.makedirs(path, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def fill(path, leave_bytes):
    """A file that leaves only so much of the disk, on which a recording may be writing."""
    filler = os.path.join(path, "filler")
    with open(filler, "wb") as file:
        while True:
            space = os.statvfs(path)
            try:
                wanted = space.f_bavail * space.f_frsize - leave_bytes
                os.posix_fallocate(file.fileno(), 0, wanted)
                return filler
            except OSError as error:  # somebody was faster
                if error.errno != errno.ENOSPC:
                    raise


def record(fleet, run, *options, seconds="1s", fine=(0,)):
    arguments = [*fleet.fleet_arguments(), "--for", seconds, "--out", run]
    return fleet.syncline("record", *arguments, *options, fine=fine).stdout


def test_a_node_without_room_is_said_before_anything_is_recorded(fleet, tmp_path):
    printed = record(fleet, str(tmp_path / "run"), fine=(FAILED,))
    assert "right" in printed and DATA in printed and "--keep-free" in printed
    assert not os.path.exists(tmp_path / "run")


def test_a_node_stops_before_its_disk_is_full_and_says_so(fleet, tmp_path):
    run, right = str(tmp_path / "run"), fleet.bed["right"]
    recorder = fleet.start_record(run, 6, "--keep-free", f"{KEEP_FREE_MIB}M")
    fleet.wait_until_it_records(recorder, run)
    # Events fill it more slowly; the guard looks at what is free, not at who took it.
    filler = os.path.join(DATA, "filler")
    right.run(["fallocate", "-l", str((32 - KEEP_FREE_MIB) << 20), filler])
    try:
        printed, _ = recorder.communicate(timeout=90)
    finally:
        right.run(["rm", filler])
    assert recorder.returncode == INCOMPLETE, printed
    assert "right: stopped recording on its own: disk nearly full" in printed
    assert f'"{DATA}"' in printed
    assert node_of(run, "right")["state"] == "incomplete"
    assert node_of(run, "left")["state"] == "complete"
    fleet.syncline("merge", run, fine=(0, INCOMPLETE))
    assert fleet.ticks(run)["right"] > 100


def test_a_disk_that_fills_up_all_at_once_takes_no_names(fleet, tmp_path):
    """Somebody else takes the rest within the guard's period: LTTng cannot write any more."""
    run, right = str(tmp_path / "run"), fleet.bed["right"]
    recorder = fleet.start_record(run, 4, "--keep-free", "1")
    fleet.wait_until_it_records(recorder, run)
    filler = os.path.join(DATA, "filler")
    right.run(["sh", "-c", f"sleep 1; cat /dev/zero >{filler} 2>/dev/null; true"])
    try:
        printed, _ = recorder.communicate(timeout=90)
    finally:
        right.run(["rm", "-f", filler])
    assert recorder.returncode == INCOMPLETE, printed
    node = node_of(run, "right")
    assert node["state"] == "incomplete" and node["fetched"]["complete"], printed
    blocks = os.listdir(os.path.join(run, "nodes", "right", "processes"))
    assert len(blocks) == 2, printed
    fleet.syncline("merge", run, fine=(INCOMPLETE,))
    assert fleet.ticks(run)["right"] > 50
    assert record(fleet, str(tmp_path / "again"), "--keep-free", "1"), "the next one works"


def test_no_room_here_is_said_before_the_nodes_are_asked(fleet, tmp_path):
    with small_disk(tmp_path / "disk", 4) as disk:
        printed = record(fleet, f"{disk}/run", fine=(FAILED,))
        assert "this machine's disk is too full" in printed and f"{disk}/run" in printed
        assert os.listdir(disk) == []


def test_what_does_not_fit_here_stays_on_the_nodes_until_there_is_room(fleet, tmp_path):
    with small_disk(tmp_path / "disk", 64) as disk:
        run = f"{disk}/run"
        recorder = fleet.start_record(run, 3, "--keep-free", "1M")
        fleet.wait_until_it_records(recorder, run)
        filler = fill(disk, 1 << 20)
        printed, _ = recorder.communicate(timeout=90)
        assert recorder.returncode in (FAILED, INCOMPLETE), printed
        assert "disk is too full" in printed and f"syncline fetch {run}" in printed
        assert {node_of(run, name)["state"] for name in ("left", "right")} == {"left"}
        os.unlink(filler)
        fleet.syncline("fetch", run, *fleet.fleet_arguments())
        fleet.syncline("merge", run)
        assert load(os.path.join(run, "recording.json"))["window"]["stop_reason"] == "requested"
        for name in ("left", "right"):
            assert fleet.ticks(run)[name] > 100
    status = fleet.syncline("status", *fleet.fleet_arguments()).stdout
    assert "No recordings" in status


def test_not_even_room_for_recording_json(fleet, tmp_path):
    with small_disk(tmp_path / "disk", 64) as disk:
        run = f"{disk}/run"
        recorder = fleet.start_record(run, 3, "--keep-free", "1M")
        fleet.wait_until_it_records(recorder, run)
        filler = fill(disk, 0)
        printed, _ = recorder.communicate(timeout=90)
        assert recorder.returncode == FAILED, printed
        assert "No space left" in printed and f"syncline fetch {run}" in printed
        os.unlink(filler)
        fleet.syncline("fetch", run, *fleet.fleet_arguments(), fine=(0, INCOMPLETE))
        fleet.syncline("merge", run, fine=(0, INCOMPLETE))
        for name in ("left", "right"):
            assert node_of(run, name)["fetched"]["complete"] and fleet.ticks(run)[name] > 100


def test_a_merge_that_cannot_be_written_leaves_the_earlier_one(fleet, tmp_path):
    run = fleet.record("merge-disk", 1, "--keep-free", "1M")
    with small_disk(tmp_path / "disk", 16) as disk:
        out = f"{disk}/out"
        fleet.syncline("merge", run, "--out", out)
        timeline = os.path.join(out, "timeline.perfetto-trace")
        with open(timeline, "rb") as file:
            before = file.read()
        for leave_bytes in (0, 64 << 10):
            filler = fill(disk, leave_bytes)
            result = fleet.syncline("merge", run, "--out", out, fine=(FAILED,))
            assert f"The merge does not fit into {out}, which is unchanged" in result.stdout
            assert sorted(os.listdir(disk)) == ["filler", "out"]
            with open(timeline, "rb") as file:
                assert file.read() == before
            os.unlink(filler)
        fleet.syncline("merge", run, "--out", out)
