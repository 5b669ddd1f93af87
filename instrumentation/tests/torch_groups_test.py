# SPDX-License-Identifier: Apache-2.0
"""What a program asks of its process groups: all of it is seen, with its group.

Usage: torch_groups_test.py BUILD_DIRECTORY. Skipped without .venv-torch (scripts/setup --torch).
"""

import subprocess
import textwrap

import torch_program
from torch_garbage_test import Spans
from torch_program import TORCH_PYTHON, TorchProgram, planted


class ProcessGroups(TorchProgram):
    def test_all_that_pytorch_asks_of_a_group_is_seen(self):
        program = """
            import inspect, re, torch.distributed.distributed_c10d as distributed
            from syncline_torch import COLLECTIVES, TRANSFERS
            source = inspect.getsource(distributed)
            called = set(re.findall(r"\\bgroup\\.([a-z][a-z_]+)\\(", source))
            print(*sorted(called - set(COLLECTIVES) - set(TRANSFERS)))
        """
        done = subprocess.run(
            [TORCH_PYTHON, "-c", textwrap.dedent(program)],
            env=planted(),
            capture_output=True,
            text=True,
        )
        self.assertEqual((done.returncode, done.stdout), (0, "rank size\n"), done.stderr)

    def test_an_exchange_of_a_mixture_of_experts_says_its_group(self):
        process = self.start(
            """
            import torch.distributed as dist
            dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
            while not ended.is_set():
                step()
                dist.all_to_all_single(torch.ones(4), torch.ones(4))
            """
        )
        events = self.record()
        self.end(process)
        names = {e.id: e.text for e in events if e.name == "syncline:name"}
        calls = [e for e in events if e.name == "syncline_torch:collective"]
        self.assertEqual({names[e.fields["name"]] for e in calls}, {"all_to_all_single"})
        self.assertEqual({e.fields["bytes"] for e in calls}, {16})

    def test_a_broadcast_says_whose_it_is(self):
        process = self.start(
            """
            import torch.distributed as dist
            dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
            model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
            model = torch.nn.parallel.DistributedDataParallel(model)
            group = dist.distributed_c10d._get_default_group()
            while not ended.is_set():
                step()
                model(torch.ones(2, 4))
                dist.broadcast(torch.ones(4), 0)
                group.broadcast(torch.ones(4), 0).wait()
                try:
                    dist._broadcast_coalesced(
                        process_group=group, tensors=[torch.ones(4)], buffer_size=100, src=0)
                    dist._broadcast_coalesced()
                except TypeError:
                    pass
            """
        )
        events = self.record()
        self.end(process)
        names = {e.id: e.text for e in events if e.name == "syncline:name"}
        said = None
        kinds = {True: 0, False: 0}
        for event in events:
            if event.name == "syncline_torch:root":
                said = event.fields["root"]
                self.assertEqual(names[event.fields["group"]], "0")
            elif event.name == "syncline_itt:task_begin":
                if names[event.fields["name"]] == "c10d::broadcast_":
                    kinds[said == 0] += 1
        # The buffers' two, and two of the program's; but not where names give the group.
        self.assertGreater(kinds[False], 2)
        self.assertLess(abs(kinds[True] - 4 * kinds[False]), 8)

    def test_a_wait_is_a_task_also_where_it_fails(self):
        process = self.start(
            """
            import sys
            import torch.distributed as dist
            dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())

            def fails(work):
                torch.ones(4).sin()
                raise ValueError

            def within(work):  # as a signal's handler may
                dist.all_reduce(torch.ones(4))
                torch.ones(4).cos()

            waits = sys.modules["syncline_torch"].start.hook.waits
            while not ended.is_set():
                step()
                dist.all_reduce(torch.ones(4))
                work = dist.all_reduce(torch.ones(4), async_op=True)
                torch.ones(4).atan()
                assert work.wait()
                waits.make(within)(work)
                try:
                    waits.make(fails)(work)
                except ValueError:
                    pass
            """
        )
        spans = Spans(self, self.record(lambda: self.recorded() >= 4000))
        self.end(process)
        around = {}
        for _, domain, name, outer, _, _ in spans.done:
            around.setdefault((domain, name), []).append(outer)
        waits = around["PyTorch", "Work.wait"]
        atans = around["PyTorch", "aten::atan"]
        self.assertGreater(len(atans), 5)
        self.assertLess(abs(len(waits) - 4 * len(atans)), 5)
        self.assertEqual({outer for outer in waits + atans}, {()})
        for name in "aten::sin", "aten::cos":
            inside = around["PyTorch", name]
            # The recording may begin in a wait.
            self.assertLess(len(inside) - inside.count(("Work.wait",)), 2)

    def test_a_compiled_program_is_the_same_while_it_is_recorded(self):
        process = self.start(
            """
            import torch._dynamo
            import torch.distributed as dist
            dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
            built = []

            def build(module, inputs):
                built.append(module)
                return module.forward

            @torch.compile(backend=build)
            def program(values):
                values = values.sin()
                work = dist.all_reduce(values, async_op=True)
                other = values.cos()
                work.wait()
                dist.reduce(values, 0)
                return values + other

            def counted():
                breaks = sum(torch._dynamo.utils.counters["graph_break"].values())
                return len(built), breaks, program(torch.ones(4)).sum().item()

            program(torch.ones(4))
            before = counted()
            print("compiled", flush=True)
            while not ended.is_set():
                step()
                program(torch.ones(4))
            assert counted() == before, (before, counted())
            """,
            "-Wignore",  # PyTorch's own, of what it cannot compile
        )
        self.assertEqual(self.line_of(process), b"compiled\n")
        events = self.record()
        self.end(process)
        names = {e.id: e.text for e in events if e.name == "syncline:name"}
        calls = [e for e in events if e.name == "syncline_torch:collective"]
        self.assertEqual({names[e.fields["name"]] for e in calls}, {"allreduce", "reduce"})

    def test_what_is_hushed_in_a_backward_pass_leaves_one_observer(self):
        # As a transfer there does: autograd puts a thread's observers back when a node ends.
        process = self.start(
            """
            import syncline_torch
            import torch.distributed as dist
            dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())

            class Exchange(torch.autograd.Function):
                @staticmethod
                def forward(ctx, values):
                    return values.clone()

                @staticmethod
                def backward(ctx, gradient):
                    operators = syncline_torch.start.hook.operators
                    operators.hush()
                    gradient.cos()
                    operators.speak()
                    return gradient

            values = torch.ones(4, requires_grad=True)
            while not ended.is_set():
                step()
                dist.barrier()
                Exchange.apply(values).sum().backward()
                torch.ones(4).atan()
            """
        )
        # A step's events are up to 200, with the names, in the first ones.
        events = self.record(lambda: self.recorded() >= 4000)
        self.end(process)
        names = {e.id: e.text for e in events if e.name == "syncline:name"}
        begun = [names[e.fields["name"]] for e in events if e.name == "syncline_itt:task_begin"]
        calls = sum(1 for e in events if e.name == "syncline_torch:collective")
        self.assertGreater(calls, 5)
        self.assertLess(abs(begun.count("aten::atan") - calls), 3)
        self.assertEqual(begun.count("aten::cos"), 0)


if __name__ == "__main__":
    torch_program.main()
