# SPDX-License-Identifier: Apache-2.0
"""A program says where its Python threads stand when it is asked, and goes on as if it were not.

Usage: torch_stacks_test.py BUILD_DIRECTORY. Skipped without .venv-torch (scripts/setup --torch).
"""

import glob
import json
import os
import stat

import torch_program
from torch_program import TorchProgram

GROUP = """
import torch.distributed as dist
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
"""


class StacksOfAProgram(TorchProgram):
    def files(self):
        return glob.glob(os.path.join(self.fixture.runtime, "stacks", "*"))

    def ask(self, number, answers=1):
        """{pid: what it answers}"""

        def answered():
            # Again: it may not have slept yet.
            self.fixture.block_tool("ask", self.fixture.runtime, number)
            found = {}
            for path in self.files():
                if path.endswith(".stacks"):
                    with open(path, encoding="ascii") as file:
                        found[int(os.path.basename(path).split("-")[1])] = json.load(file)
            self.found = {pid: one for pid, one in found.items() if one["number"] == number}
            return len(self.found) == answers

        self.fixture.wait_for(answered, "an answer", 30)
        return self.found

    def test_a_main_thread_inside_a_call_of_c_does_not_hinder_it(self):
        process = self.start(
            """
            threads = [threading.Thread(target=threading.Event().wait, name="t%d" % i, daemon=True)
                       for i in range(3)]
            for thread in threads: thread.start()
            def deep(n):
                if n: deep(n - 1)
                else: input()
            deep(200)
            """
        )
        (answer,) = self.ask(1).values()
        main, *others = answer["threads"]
        self.assertTrue(main["main"])
        self.assertEqual(main["names"], ["MainThread"])
        self.assertEqual(main["frames"][0][:2], ["deep", "<string>"])
        self.assertEqual(main["frames"][-1][0], "<module>")
        self.assertEqual(len(main["frames"]) + main["left_out"], 202)
        (idle,) = [one for one in others if one["count"] == 3]
        self.assertEqual(idle["names"], ["t0", "t1", "t2"])
        self.assertIn("wait", idle["frames"][0][0])
        self.assertEqual(answer["groups"], [])
        for path in self.files():
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
            self.assertLess(os.stat(path).st_size, 256 << 10)
        self.ask(2)
        self.assertIn("recording=0", self.fixture.block_tool("show", self.fixture.runtime))
        out, errors = process.communicate("\n", timeout=60)
        self.assertEqual((process.returncode, out, errors), (0, "", ""))

    def test_groups_with_their_last_collective(self):
        process = self.start(
            GROUP
            + """
for _ in range(3): dist.all_reduce(torch.ones(4))
dist.broadcast(torch.ones(4), 0)
ended.is_set(1000)
"""
        )
        answer = self.settled(process.pid)
        (group,) = answer["groups"]
        self.assertEqual((group["name"], group["description"]), ("0", "default_pg"))
        self.assertEqual((group["ranks"], group["rank"], group["backend"]), ("0", 0, "gloo"))
        self.assertEqual((group["collective"], group["collective_number"]), ("broadcast", 4))
        self.assertFalse(group["collective_pending"])
        self.assertNotIn("pending_number", group)
        self.end(process)

    def settled(self, pid):
        """The program's answer once it is behind its broadcast: works end in another thread."""
        number = 0

        def there():
            nonlocal number
            number += 1
            groups = self.ask(number)[pid]["groups"]
            if not groups or groups[0].get("collective") != "broadcast":
                return False
            return not groups[0]["collective_pending"]

        self.fixture.wait_for(there, "the broadcast", 30)
        return self.found[pid]

    def test_a_forked_child_does_not_answer_for_its_parents_groups(self):
        process = self.start(
            GROUP
            + """
dist.all_reduce(torch.ones(4))
child = os.fork()
if child == 0:
    import time
    while os.getppid() != 1 and not os.path.exists(os.environ["SYNCLINE_RUNTIME_DIR"] + "/end"):
        time.sleep(0.05)
    os._exit(0)
os.waitpid(child, 0)
ended.is_set(1000)
"""
        )
        answers = self.ask(1, answers=2)
        groups = {pid == process.pid: len(one["groups"]) for pid, one in answers.items()}
        self.assertEqual(groups, {True: 1, False: 0})
        with open(os.path.join(self.fixture.runtime, "end"), "w", encoding="ascii"):
            pass
        self.end(process)

    def test_asked_while_it_is_recorded_and_as_it_trains(self):
        process = self.start("train()")

        def asked_and_recorded():
            self.number = getattr(self, "number", 0) + 1
            self.ask(self.number)
            return self.recorded() >= 500

        self.record(asked_and_recorded)
        self.end(process)


if __name__ == "__main__":
    torch_program.main()
