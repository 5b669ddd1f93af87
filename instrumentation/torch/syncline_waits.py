# SPDX-License-Identifier: Apache-2.0
"""`Work.wait`, PyTorch's wait for a collective or a transfer: a task, and the end of a transfer."""

import weakref
from time import monotonic_ns


class Waits:
    def __init__(self, native, attempt):
        self.native = native
        self.attempt = attempt  # calls what may fail
        # id of a Work -> [weak reference, id of the transfer, from anybody?, since when the program
        # waits]
        self.transfers = {}

    def forget(self):
        self.transfers = {}

    def expect(self, work, transfer, any_source):
        """`work` is the transfer of this id, which ends when the program has waited for it."""
        key = id(work)
        forget = self.transfers.pop

        def gone(reference):
            kept = self.transfers.get(key)
            if kept is not None and kept[0] is reference:
                forget(key, None)

        self.transfers[key] = [weakref.ref(work, gone), transfer, any_source, None]

    def make(self, original):
        def wait(work, *arguments, **named):
            kept = self.transfers.get(id(work)) if self.transfers else None
            if kept is not None and kept[3] is None:  # one that failed waits on in the next
                kept[3] = monotonic_ns()
            try:
                self.native.wait_begin()
                result = original(work, *arguments, **named)
            finally:  # also when a signal's handler raises
                self.native.wait_end()
            kept = self.transfers.pop(id(work), None)
            if kept is not None and kept[0]() is work:
                waited = monotonic_ns() - kept[3] if kept[3] is not None else 0
                self.native.transfer_end(kept[1], self._source(work) if kept[2] else -1, waited)
            return result

        return wait

    def _source(self, work):
        """The rank in the group that it came from, once it is there; -1: unknown."""
        rank = self.attempt(lambda: work._source_rank())
        return -1 if rank is None else rank
