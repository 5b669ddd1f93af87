# SPDX-License-Identifier: Apache-2.0
"""What a recording with less than full detail leaves out, and what it does not.

Usage: itt_detail_test.py BUILD_DIRECTORY
"""

import collections
import sys
import unittest

import lttng_fixture
from itt_capture_test import Names

STEPS = 50
MESSAGES = 1  # SYNCLINE_LEFT_OUT_MESSAGES
LONG = "aten::slow"  # 2 ms each time; aten::cold takes 4 ms twice, then nothing
# In no operator, or nothing that a recording leaves out.
ALWAYS = {
    "Optimizer.step#SGD.step": 0,
    "aten::add_": 1,
    "autograd::engine::evaluate_function: AddmmBackward0": 1,
    "AddmmBackward0": 2,
    "c10d::allreduce_": 3,
    "aten::zero_": 4,  # what it lies in is no operator
    "aten::linear": 1,
    "inside": 2,
}
BRIEF = ("aten::addmm", "matmul", "aten::mm", "aten::cold")
FULL_DEPTHS = {**ALWAYS, "inside": 3, "aten::addmm": 2, "matmul": 3, "aten::mm": 3, LONG: 3}


class DetailTest(unittest.TestCase):
    def setUp(self):
        self.fixture = lttng_fixture.Fixture(sys.argv[1])
        self.addCleanup(self.fixture.close)
        self.fixture.start_daemon()
        self.program = self.fixture.start(
            STEPS, program="tests/itt_detail_program", registered=True
        )
        self.fixture.wait_for_blocks()
        self.recordings = 0

    def record(self, least_us, left_out=0):
        """(tasks as (name, depth), events), where all of a thread's events are balanced."""
        session = self.fixture.begin_session()
        self.fixture.block_tool("leave-out", self.fixture.runtime, least_us, left_out)
        self.recordings += 1
        self.fixture.set_gates(self.recordings)
        self.program.stdin.write("go\n")
        self.program.stdin.flush()
        self.assertEqual(self.program.stdout.readline(), "done\n")
        counted = sum(block["events"] for block in self.fixture.blocks().values())
        lost = sum(block["lost"] for block in self.fixture.blocks().values())
        self.fixture.set_gates(0)
        events, discarded = self.fixture.end_session(session)
        self.assertEqual((discarded, lost), (0, 0))
        ours = [event for event in events if event.name != "syncline:off"]
        self.assertEqual(len(ours), counted, "what is left out is not counted")
        return self.tasks(events), events

    def tasks(self, events):
        names = Names(events)
        tasks, open_tasks, number = collections.Counter(), [], None
        for event in events:
            if event.name == "syncline_itt:task_begin":
                task = names.text(event, "name"), event.depth
                self.assertEqual(event.depth, len(open_tasks), "depths without gaps")
                open_tasks.append(task)
                tasks[task] += 1
            elif event.name == "syncline_itt:task_end":
                self.assertEqual((names.text(event, "name"), event.depth), open_tasks.pop())
            else:
                continue
            if number is not None:
                self.assertEqual(event.number, number, "and no gap in the numbers")
            number = event.number + 1
        self.assertEqual(open_tasks, [])
        return tasks

    def test_brief_operators_inside_of_others_are_left_out(self):
        tasks, events = self.record(1000, MESSAGES)
        # The first of aten::slow and of aten::addmm, in which it lies, are not known to be long.
        long_ones = {(LONG, 3): STEPS - 4, ("aten::addmm", 2): STEPS - 4}
        brief = [count for (name, _), count in tasks.items() if name in BRIEF[1:]]
        self.assertEqual(brief, [], tasks)
        for key, least in long_ones.items():
            self.assertIn(tasks[key], range(least, STEPS + 1), key)
        always = collections.Counter()
        for (name, _), count in tasks.items():
            if name in ALWAYS:
                always[name] += count
        self.assertEqual(always, {name: STEPS for name in ALWAYS})
        self.assertEqual({tasks[name, depth] for name, depth in ALWAYS.items() if name != "inside"},
                         {STEPS})
        metadata = [event for event in events if event.name.startswith("syncline_itt:metadata")]
        self.assertEqual(metadata, [], "that of a primitive which is left out is of nobody")

    def test_the_next_recording_has_everything_again(self):
        self.record(1000)
        tasks, events = self.record(0)
        for name, depth in FULL_DEPTHS.items():
            count = 2 * STEPS if name == "matmul" else STEPS  # made, and executed
            self.assertEqual(tasks[name, depth], count, name)
        metadata = [event for event in events if event.name.startswith("syncline_itt:metadata")]
        self.assertEqual(len(metadata), STEPS)

    def test_what_was_long_is_there_sooner_the_next_time(self):
        first, _ = self.record(1000)
        tasks, _ = self.record(1000)
        self.assertEqual((first[LONG, 3], tasks[LONG, 3]), (STEPS - 4, STEPS - 2))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
