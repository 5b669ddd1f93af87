# SPDX-License-Identifier: Apache-2.0
"""A program says where its Python threads stand when it is asked, and goes on as if it were not.

Usage: torch_stacks_test.py BUILD_DIRECTORY. Skipped without .venv-torch (scripts/setup --torch).
"""

import gc
import glob
import json
import os
import stat
import sys
import tempfile
import types
import unittest
from unittest import mock

import torch_program
from torch_program import REPOSITORY, TorchProgram

sys.path.insert(0, os.path.join(REPOSITORY, "instrumentation", "torch"))
import syncline_stacks

GROUP = """
import torch.distributed as dist
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
"""


class StacksOfAProgram(TorchProgram):
    number = 0

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

    def ask_until(self, there, what, answers=1):
        """{pid: what it answers}, once `there` is true of it: the program says "step" before it
        is where the test wants to see it."""

        def asked():
            self.number += 1
            return there(self.ask(self.number, answers))

        self.fixture.wait_for(asked, what, 30)
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

        def all_wait(answers):
            main, *others = answers[process.pid]["threads"]
            idle = any(one["count"] == 3 for one in others)
            return main["frames"][0][0] == "deep" and idle

        answer = self.ask_until(all_wait, "the threads to wait")[process.pid]
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
        self.ask(self.number + 1)
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
        (group,) = self.settled(process.pid)["groups"]
        self.assertEqual((group["name"], group["description"]), ("0", "default_pg"))
        self.assertEqual((group["ranks"], group["rank"], group["backend"]), ("0", 0, "gloo"))
        self.assertEqual((group["collective"], group["collective_number"]), ("broadcast", 4))
        self.assertFalse(group["collective_pending"])
        self.assertNotIn("pending_number", group)
        self.end(process)

    def settled(self, pid):
        """The program's answer once it is behind its broadcast: works end in another thread."""

        def there(answers):
            groups = answers[pid]["groups"]
            if not groups or groups[0].get("collective") != "broadcast":
                return False
            return not groups[0]["collective_pending"]

        return self.ask_until(there, "the broadcast")[pid]

    def test_a_group_made_anew_counts_anew(self):
        process = self.start(
            GROUP
            + """
for _ in range(5): dist.all_reduce(torch.ones(4))
dist.destroy_process_group()
dist.init_process_group("cpu:gloo,cuda:gloo", rank=0, world_size=1, store=dist.HashStore())
print("anew", flush=True)
input()
dist.broadcast(torch.ones(4), 0)
input()
os.environ["TORCH_DISTRIBUTED_DEBUG"] = "detail"
print("wrapped", flush=True)
ended.is_set(1000)
"""
        )
        self.assertEqual(process.stdout.readline(), "anew\n")
        self.number = 1
        (group,) = self.ask(self.number)[process.pid]["groups"]
        self.assertEqual((group["backend"], group["sequence_number"]), ("gloo", 0))
        self.assertNotIn("collective_number", group)
        process.stdin.write("\n")
        process.stdin.flush()
        (group,) = self.settled(process.pid)["groups"]
        self.assertEqual((group["collective_number"], group["sequence_number"]), (1, 1))
        process.stdin.write("\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "wrapped\n")
        (group,) = self.ask(1000)[process.pid]["groups"]
        self.assertEqual(group["sequence_number"], -1)
        self.assertNotIn("collective_number", group)
        self.end(process)

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

        has_group = lambda answers: answers[process.pid]["groups"]
        answers = self.ask_until(has_group, "the group", answers=2)
        groups = {pid == process.pid: len(one["groups"]) for pid, one in answers.items()}
        self.assertEqual(groups, {True: 1, False: 0})
        with open(os.path.join(self.fixture.runtime, "end"), "w", encoding="ascii"):
            pass
        self.end(process)

    def test_asked_while_it_is_recorded_and_as_it_trains(self):
        process = self.start("train()")

        asked = lambda: self.ask_until(lambda answers: True, "an answer")
        self.record(lambda: bool(asked()) and self.recorded() >= 500)
        self.end(process)


def recorder_entry(number, made, name="0", ended="true", transfer="false"):
    return (
        '{"collective_seq_id":%d,"is_p2p":%s,"op_id":1,"pg_id":%d,"process_group":["%s","default"],'
        '"profiling_name":"gloo:all_reduce","record_id":0,"retired":%s,"state":"scheduled"}'
        % (number, transfer, made, name, ended)
    )


class Parts(unittest.TestCase):
    """What the hook makes of a PyTorch that is not here."""

    def pytorch(self, **modules):
        names = {"torch": "torch", "c10d": "torch._C._distributed_c10d"}
        names["python"] = "torch.distributed.distributed_c10d"
        made = {names[key]: types.SimpleNamespace(**value) for key, value in modules.items()}
        patch = mock.patch.dict(sys.modules, made)
        patch.start()
        self.addCleanup(patch.stop)

    def recorded(self, *entries):
        text = ('{"entries":[' + ",".join(entries) + '],"version":"2.10"}').encode()
        self.pytorch(c10d={"_dump_fr_trace_json": lambda *_: text})
        return syncline_stacks._recorded()

    def test_of_a_name_the_newest_group_counts(self):
        old = [recorder_entry(number, 0) for number in range(1, 6)]
        new = [recorder_entry(1, 3), recorder_entry(2, 3, ended="false"), recorder_entry(9, 1)]
        group = self.recorded(*old, *new)[b"0"]
        self.assertEqual((group["collective_number"], group["pending_number"]), (2, 2))
        self.assertTrue(group["collective_pending"])
        self.assertNotIn("pg_id", group)
        transfer = recorder_entry(7, 4, transfer="true")
        self.assertEqual(self.recorded(*old, *new, transfer)[b"0"], {})

    def test_pythons_collector_does_not_run_for_it(self):
        entries = [recorder_entry(number, 0) for number in range(1, 4001)]
        self.recorded(*entries)
        gc.collect()
        before = gc.get_stats()
        groups = syncline_stacks._recorded()
        collections = [one["collections"] for one in gc.get_stats()]
        self.assertEqual(collections, [one["collections"] for one in before])
        self.assertEqual(groups[b"0"]["collective_number"], 4000)

    def test_a_name_of_any_text_is_read(self):
        name = 'a"pg_id":1,{"collective_seq_id":1,\n\u00e9'
        text = json.dumps(name, ensure_ascii=False)[1:-1]
        self.assertEqual(list(self.recorded(recorder_entry(3, 0, text))), [text.encode()])

    def test_a_record_that_is_written_otherwise_is_none(self):
        entry = recorder_entry(3, 0)
        self.assertEqual(self.recorded(entry, entry.replace("retired", "done")), {})
        self.assertEqual(self.recorded(entry.replace('"is_p2p":false,', ""), entry), {})
        for variable in ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"):
            with mock.patch.dict(os.environ, {variable: "4001"}):
                self.assertEqual(self.recorded(entry), {})

    def test_an_odd_group_does_not_take_the_others_away(self):
        class Group:
            _get_sequence_number_for_group = staticmethod(lambda: 7)
            rank = staticmethod(lambda: 1)

        gloo, nccl, mixed, odd = Group(), Group(), Group(), Group()
        groups = {gloo: "cpu:gloo", odd: "gloo", nccl: "cuda:nccl", mixed: "cpu:gloo,cuda:nccl"}
        world = types.SimpleNamespace(
            pg_map={group: ("undefined", None) for group in groups},
            pg_group_ranks={group: {4: 0, 5: 1} for group in groups},
            pg_names={gloo: "a", nccl: "b", mixed: "c"},
            pg_backend_config=groups,
        )
        level = types.SimpleNamespace(DETAIL=2)
        text = recorder_entry(7, 0, "b")
        c10d = {
            "_dump_fr_trace_json": lambda *_: text.encode(),
            "DebugLevel": level,
            "get_debug_level": lambda: 0,
        }
        for version, counted in (("2.13.0+cpu", 7), ("2.12.1", -1), ("3.0", 7), ("odd", -1)):
            self.pytorch(torch={"__version__": version}, c10d=c10d, python={"_world": world})
            answers = syncline_stacks._groups(list, set(), {})
            found = [(one["name"], one["backend"], one["sequence_number"]) for one in answers]
            self.assertEqual(
                found,
                [("a", "gloo", 7), ("b", "nccl", counted), ("c", "cpu:gloo,cuda:nccl", -1)],
            )
            self.assertNotIn("collective_number", answers[1])
        text = recorder_entry(7, 0, "a")
        self.assertEqual(syncline_stacks._groups(list, set(), {})[0]["collective_number"], 7)
        made = compile("def _new_process_group_helper(): pass", "x", "exec").co_consts[0]
        looked = {1: [(made, 1)]}
        self.assertNotIn("collective_number", syncline_stacks._groups(list, set(), looked)[0])

    def answer(self, native):
        stacks = syncline_stacks.Stacks(native, list)
        with mock.patch.dict(os.environ, {"SYNCLINE_RUNTIME_DIR": "/nonexistent"}):
            stacks.answer(1)

    def test_nothing_is_left_of_an_answer_that_is_not_whole(self):
        native = types.SimpleNamespace(current_frames=sys._current_frames, spent=lambda ns: None)
        with tempfile.TemporaryDirectory() as folder:
            runtime = mock.patch.dict(os.environ, {"SYNCLINE_RUNTIME_DIR": folder})
            below = os.path.join(folder, "stacks")
            with runtime, mock.patch.object(os, "write", lambda file, text: len(text) - 1):
                self.answer(native)
            self.assertEqual(os.listdir(below), [])
            with runtime, mock.patch.object(sys, "_is_gil_enabled", lambda: False, create=True):
                self.answer(native)
            self.assertEqual(os.listdir(below), [])
            with runtime, mock.patch.object(sys, "_is_gil_enabled", lambda: True, create=True):
                self.answer(native)
            (name,) = os.listdir(below)
            with open(os.path.join(below, name), encoding="ascii") as file:
                self.assertLess(0, json.load(file)["begin_ns"])


if __name__ == "__main__":
    torch_program.main()
