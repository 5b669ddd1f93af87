# SPDX-License-Identifier: Apache-2.0
"""nvidia-smi beside a recording, as a witness of what the report says of the devices' health."""

import shutil
import statistics
import subprocess
import threading

VALUES = ("power.draw", "clocks.sm", "temperature.gpu")
# Grows: µs in which the limit of power kept the clocks down. Older ones do not know it.
HELD_BACK = "clocks_event_reasons_counters.sw_power_cap"
MOST_APART_WATT = 30  # and a fifth: nvidia-smi shows a mean over the last second
MOST_APART_SECONDS = 0.5  # the two do not look at the same moments


def ask(*names):
    """A row of texts for each GPU; none without nvidia-smi, or where it does not know a name."""
    if shutil.which("nvidia-smi") is None:
        return []
    query = f"--query-gpu={','.join(names)}"
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return []
    return [[text.strip() for text in line.split(",")] for line in done.stdout.splitlines()]


def number(text):
    """None: the GPU does not say it."""
    try:
        return float(text)
    except ValueError:
        return None


class Witness:
    """Asks nvidia-smi again and again, from `with` on until its end."""

    def __init__(self):
        self.rows = {}  # by UUID a list of rows of VALUES
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.held_back = self.counted()

    @staticmethod
    def counted():
        return {uuid: number(text) for uuid, text in ask("uuid", HELD_BACK)}

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        after = self.counted()
        self.held_back = {
            uuid: (after[uuid] - before) / 1e6
            for uuid, before in self.held_back.items()
            if before is not None and after.get(uuid) is not None
        }

    def watch(self):
        while not self.ended.wait(0.1):
            for uuid, *values in ask("uuid", *VALUES):
                self.rows.setdefault(uuid, []).append([number(value) for value in values])

    def column(self, uuid, name):
        place = VALUES.index(name)
        return [row[place] for row in self.rows.get(uuid, []) if row[place] is not None]

    def check(self, report, checks):
        """`report`: of a recording within the time of `with`, in which two ranks used one GPU."""
        if not self.rows:
            print("  health of the devices: nothing to compare it with, there is no nvidia-smi")
            return
        by_id = {device["id"]: device for device in report["device_health"]}
        checks.check(set(by_id) == set(self.rows), f"nvidia-smi's {len(self.rows)} GPUs are there")
        ranks = [{user["rank"] for user in device["users"]} for device in by_id.values()]
        checks.check(
            any({0, 1} <= of for of in ranks) or not any(ranks),
            f"both ranks use one GPU, or the driver does not say who: {ranks}",
        )
        for uuid, device in by_id.items():
            if uuid in self.rows:
                self.check_device(uuid, device, report, checks)

    def check_device(self, uuid, device, report, checks):
        values = device["values"]
        for ours, theirs, more in (("sm_mhz", "clocks.sm", 15), ("device_celsius", VALUES[2], 2)):
            seen = self.column(uuid, theirs)
            if not seen or ours not in values:
                continue
            median = values[ours]["median"]
            checks.check(
                min(seen) - more <= median <= max(seen) + more,
                f"{ours}: median {median}, by nvidia-smi {min(seen):g} to {max(seen):g}",
            )
        drawn = self.column(uuid, "power.draw")
        # By the counter of energy, where its readings are near enough to the window.
        ours = device["mean_power_mw"] or values.get("power_mw", {}).get("mean")
        if drawn and ours is not None:
            watt, median = ours / 1000, statistics.median(drawn)
            checks.check(
                abs(watt - median) <= MOST_APART_WATT + median / 5,
                f"power: {watt:.0f} W, by nvidia-smi {median:.0f} W",
            )
        if uuid in self.held_back and "power_ns" in device["held_back"]:
            window = (report["window"]["end_ns"] - report["window"]["begin_ns"]) / 1e9
            held = device["held_back"]["power_ns"]["est"] * window
            most = self.held_back[uuid] + MOST_APART_SECONDS
            checks.check(
                held <= most,
                f"held back by the limit of power: {held:.2f} s of {window:.2f} s; nvidia-smi"
                f" counted {self.held_back[uuid]:.2f} s from before the recording until behind it",
            )
