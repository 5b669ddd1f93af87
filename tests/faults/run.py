# SPDX-License-Identifier: Apache-2.0
"""Runs the fault matrix: `.venv/bin/python -m tests.faults.run` in the checkout, as root.

Prints a line for each cell, then what failed, and writes all of it as JSON. A cell that fails is
followed by new hosts, so that the next one does not suffer from it. Exit code 1: a cell failed.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
import traceback

from tests.faults import cells
from tests.faults.scenario import Scenario, absent
from tests.faults.stage import Stage

PASSED, WRONG, KNOWN, NOT_APPLICABLE = "passed", "FAILED", "known limit", "not applicable"


class Runner:
    """Keeps a stage for as long as cells pass."""

    def __init__(self, work, seed):
        self.work, self.seed = work, seed
        self.stage = None
        self.stages = 0

    def get_stage(self):
        if self.stage is None:
            self.stages += 1
            folder = os.path.join(self.work, f"stage-{self.stages}")
            os.makedirs(folder)
            self.stage = Stage(folder, self.seed + self.stages).__enter__()
        return self.stage

    def close(self):
        if self.stage is not None:
            self.stage.__exit__(None, None, None)
            self.stage = None

    def run(self, cell):
        """A cell's result, ready for JSON."""
        begin = time.monotonic()
        why = cells.why_not(cell)
        scenario = None
        try:
            if why:
                problems = [] if absent(self.get_stage(), cell) else [f"there is one: not {why}"]
            else:
                scenario = Scenario(self.get_stage(), cell, self.seed)
                scenario.go()
                problems = scenario.problems
        except Exception:  # pylint: disable=broad-except
            problems = (scenario.problems if scenario else []) + [traceback.format_exc()]
        known = [said for problem in problems if (said := cells.known(cell, problem))]
        wrong = len(known) < len(problems)
        result = {
            "cell": cell.name,
            "result": WRONG if wrong else KNOWN if known else NOT_APPLICABLE if why else PASSED,
            "why": why or ", ".join(sorted(set(known))),
            "problems": problems,
            "seconds": round(time.monotonic() - begin, 1),
            "facts": scenario.facts if scenario else {},
        }
        if problems:
            result["transcript"] = scenario.transcript if scenario else []
            self.keep_logs(cell)
            self.close()
        return result

    def keep_logs(self, cell):
        if self.stage is None:
            return
        for host in self.stage.bed.hosts:
            log = self.stage.outside(host, "/opt/syncline/var/agent.log")
            if os.path.exists(log):
                with open(log, encoding="utf-8", errors="replace") as file:
                    text = file.read()
                path = os.path.join(self.work, f"{cell.name}.{host.name}.agent.log")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)


def describe(result):
    """One line of the table."""
    facts = result["facts"]
    said = result["why"]
    if facts:
        words = [said, facts.get("outcome", "")]
        words += [f"exit {facts['code']}"] if "code" in facts else []
        words += [f"fetch {facts['fetch']}"] if "fetch" in facts else []
        for run in facts.get("runs", [])[:1]:
            words += [f"{name} {one['state']} {one['found']}/{one['calls']}"
                      for name, one in run.items()]
        words += [f"next {facts['next']}"] if facts.get("next", 1) > 1 else []
        said = ", ".join(filter(None, words))
    return f"{result['cell']:34} {result['result']:15} {result['seconds']:6.1f} s  {said}"


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="PATTERN",
                        help="cells whose names match, as 'agent-*-record'")
    parser.add_argument("--quick", action="store_true", help="the part that runs every day")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="N of them, by the seed")
    parser.add_argument("--seed", type=int, default=25, help="of the instants within a moment")
    parser.add_argument("--minutes", type=float, default=0, metavar="M",
                        help="begin no cell after so long; those that were not run are counted")
    parser.add_argument("--json", default="", metavar="FILE", help="where the results go, too")
    parser.add_argument("--work", default="", metavar="DIR",
                        help="keep recordings and logs there (default: deleted)")
    parser.add_argument("--list", action="store_true", help="print the names of the cells")
    return parser.parse_args()


def run_all(chosen, arguments, work):
    results = []
    runner = Runner(work, arguments.seed)
    end = time.monotonic() + (60 * arguments.minutes or float("inf"))
    try:
        for cell in chosen:
            if time.monotonic() > end:
                break
            result = runner.run(cell)
            results.append(result)
            print(describe(result), flush=True)
            for problem in result["problems"]:
                print(f"    {problem}", flush=True)
            if arguments.json:
                with open(arguments.json, "w", encoding="utf-8") as file:
                    json.dump({"seed": arguments.seed, "cells": results}, file, indent=1)
    finally:
        runner.close()
    return results


def main():
    arguments = read_arguments()
    chosen = cells.choose(arguments.only, arguments.quick)
    if arguments.sample:
        picked = random.Random(arguments.seed).sample(chosen, min(arguments.sample, len(chosen)))
        chosen = [cell for cell in chosen if cell in picked]
    if arguments.list:
        print("\n".join(cell.name for cell in chosen))
        return 0
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="syncline-faults-") as scratch:
        work = arguments.work or scratch
        os.makedirs(work, exist_ok=True)
        results = run_all(chosen, arguments, work)
    count = {kind: sum(one["result"] == kind for one in results)
             for kind in (PASSED, KNOWN, WRONG, NOT_APPLICABLE)}
    print(f"\n{len(results)} cells in {time.monotonic() - begin:.0f} s: "
          + ", ".join(f"{number} {kind}" for kind, number in count.items())
          + f", {len(chosen) - len(results)} not run")
    return 1 if count[WRONG] else 0


if __name__ == "__main__":
    sys.exit(main())
