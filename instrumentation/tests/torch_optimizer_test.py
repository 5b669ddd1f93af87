# SPDX-License-Identifier: Apache-2.0
"""The hook that PyTorch calls after each optimizer step: it comes and goes with no recording.

Usage: torch_optimizer_test.py BUILD_DIRECTORY. Skipped without .venv-torch (scripts/setup --torch).
"""

import torch_program
from torch_program import TorchProgram

RECORDINGS = 5  # of one process


class OptimizerHook(TorchProgram):
    def test_a_program_with_hooks_of_its_own_that_steps_in_a_thread(self):
        """PyTorch's step fails when its hooks change while it walks through them: ours must neither
        come nor go as recordings do. Not from another thread, either: the program's are slow."""
        process = self.start(
            """
            import sys, time
            from torch.optim.optimizer import register_optimizer_step_post_hook
            calls = [0, 0]
            def count(which):
                calls[which] += 1
                time.sleep(0.002)
            register_optimizer_step_post_hook(lambda *_: count(0))
            register_optimizer_step_post_hook(lambda *_: count(1))
            hooks = sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks
            before, failed = list(hooks.items()), []
            def steps():
                try: train()
                except Exception as error: failed.append(repr(error))
            worker = threading.Thread(target=steps); worker.start()
            while worker.is_alive(): time.sleep(0.001)
            print(failed, len(set(calls)), calls[0] > 100, list(hooks.items()) == before)
            """
        )
        for _ in range(RECORDINGS):
            self.record(lambda: self.recorded() >= 100)
        self.assertEqual(self.end(process), "[] 1 True True\n")

    def test_a_recording_that_ends_while_our_own_hook_is_called(self):
        """After it, in the same step, comes one of the program's."""
        process = self.start(
            """
            import sys, time
            from torch.optim.optimizer import register_optimizer_step_post_hook
            hook = sys.modules["syncline_torch"].start.hook
            kind, calls, failed = torch._C._autograd._profiler_type, [], []
            def steps():
                try:
                    while kind().name != "ITT": step()
                    register_optimizer_step_post_hook(lambda *_: calls.append(kind().name))
                    while hook.native.gate(): network(torch.ones(4, 8))
                    while len(hook.operators.threads) > 1: time.sleep(0.001)
                    step()  # the last thread leaves, from within it, and all is undone
                except Exception as error: failed.append(repr(error))
            worker = threading.Thread(target=steps); worker.start()
            while worker.is_alive(): time.sleep(0.001)
            print(failed, calls, hook.patches._made)
            """
        )
        self.record(lambda: self.recorded() >= 100)
        self.assertEqual(self.end(process), "[] ['NONE'] []\n")

    def test_torch_that_was_there_before_us_with_hooks_of_the_programs(self):
        """Ours comes when nobody walks through them, and stays."""
        process = self.start(
            """
            import sys, time
            from torch.optim.optimizer import register_optimizer_step_post_hook
            optimizers = sys.modules["torch.optim.optimizer"]
            hook = sys.modules["syncline_torch"].start.hook
            optimizers._global_optimizer_post_hooks.clear()
            hook.listens = False
            mine = [register_optimizer_step_post_hook(lambda *_: time.sleep(0)) for _ in range(2)]
            inside = register_optimizer_step_post_hook(lambda *_: (hook._listen(), said()))
            said = lambda: seen.add(hook.listens)
            seen = set()
            last = register_optimizer_step_post_hook(lambda *_: None)
            step()
            inside.remove()
            hook._listen(); hook._listen()
            print(seen, hook.listens, len(optimizers._global_optimizer_post_hooks))
            worker = threading.Thread(target=train); worker.start(); worker.join()
            """
        )
        events = self.record()
        self.assertGreater(self.count(events, "Optimizer.step#SGD.step"), 2)
        self.assertEqual(self.end(process), "{False} True 4\n")

    def test_a_compiled_step_stays_whole(self):
        """torch.compile reads through PyTorch's hooks: ours is nothing to it, recorded or not."""
        process = self.start(
            """
            import logging, time
            logging.disable()
            class Own(torch.optim.Optimizer):  # PyTorch's own classes lose their hooks
                def step(self):
                    with torch.no_grad():
                        for p in self.param_groups[0]["params"]: p.add_(p.grad, alpha=-0.01)
            own = Own(network.parameters(), {})
            whole = torch.compile(lambda: own.step(), backend="eager", fullgraph=True)
            def steps():
                while not ended.is_set(): step(); whole()
            worker = threading.Thread(target=steps); worker.start(); worker.join()
            print(torch._dynamo.utils.counters["stats"]["unique_graphs"])
            """
        )
        for _ in range(2):
            self.record()
        self.assertEqual(self.end(process), "1\n")

    def test_hooks_of_the_programs_are_copied_and_pickled(self):
        """PyTorch's handles take all hooks along."""
        process = self.start(
            """
            import copy, pickle, sys
            from torch.optim.optimizer import register_optimizer_step_post_hook
            handle = register_optimizer_step_post_hook(print)
            copy.deepcopy(handle), pickle.loads(pickle.dumps(handle))
            hooks = sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks
            for copied in copy.deepcopy(hooks), pickle.loads(pickle.dumps(hooks)):
                ours, theirs = copied.values()
                ours(network, (), {})
                print(theirs is print, copied.keys() == hooks.keys())
            """
        )
        self.assertEqual(self.end(process), "True True\nTrue True\n")


if __name__ == "__main__":
    torch_program.main()
