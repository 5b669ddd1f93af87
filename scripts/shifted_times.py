# SPDX-License-Identifier: Apache-2.0
"""What a recording's times become when ranks take longer: pure arithmetic, in ns.

Each rank does what it did, in the same order and for as long, and what is added to it. A collective
begins when its last rank enters it; from then on each rank leaves it, and goes on behind its wait,
as long after that as it did. So a rank that comes later waits less, and the others wait longer for
it. Between waits a rank's time only moves; within a wait it is compressed or stretched.

The ranks may be of several recordings, of which each has its own waits. Their times then are put
side by side by when the last collective before the window began.
"""

import dataclasses

import numpy as np

# A gap that is no longer than this is not a wait: the collective was over when the driver came.
NO_WAIT_NS = 50_000
WAKE_NS = 20_000  # what a driver takes to notice that a collective is over, at most


def along(times, old, new):
    """Times along the knots (old, new), and on at the same speed outside of them; whole ns."""
    times = np.asarray(times, np.int64)
    near = np.clip(times, old[0], old[-1])
    # Differences are small enough for floating point; the times themselves need not be.
    moved = np.rint(np.interp(near - old[0], old - old[0], new - new[0])).astype(np.int64)
    return new[0] + moved + (times - near)


@dataclasses.dataclass
class Window:
    """Steps of one rank; arrays of (step) or (step, collective of the step)."""

    zero: int  # when the last collective before the window began
    begin: np.ndarray
    end: np.ndarray
    launched: np.ndarray
    entered: np.ndarray
    left: np.ndarray
    wait_begin: np.ndarray
    wait_end: np.ndarray
    began: np.ndarray  # when the collectives began: their last rank entered them


@dataclasses.dataclass
class Added:
    """What a rank takes longer: `amount` just before the event at `at`, in the order of `at`."""

    at: np.ndarray
    amount: np.ndarray

    def until(self, time):
        """What was added up to a time, itself included."""
        sums = np.concatenate([[0], np.cumsum(self.amount)])
        return sums[np.searchsorted(self.at, time, "right")]


NOTHING = Added(np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclasses.dataclass
class Moved:
    """The times that a rank's become: of its driver along the knots, of its collectives as told."""

    old: np.ndarray
    new: np.ndarray
    entered: np.ndarray
    left: np.ndarray
    own_work: np.ndarray  # by step


class _Cursor:
    """One rank, from wait to wait."""

    def __init__(self, window, added):
        self.window, self.added = window, added
        self.old, self.new = int(window.begin[0]), int(window.begin[0]) - window.zero
        self.knots = [(self.old, self.new)]

    def moved(self, time):
        """Of times from the last wait's end on, until the next one begins."""
        more = self.added.until(time) - self.added.until(self.old)
        return self.new + (time - self.old) + more

    def wait(self, step, number, began, left):
        """The wait for a collective that now begins and is left at these times."""
        window = self.window
        begin = int(window.wait_begin[step, number])
        end, was_left = int(window.wait_end[step, number]), int(window.left[step, number])
        waits_from = int(self.moved(begin))
        if end - begin <= NO_WAIT_NS and was_left <= end:
            goes_on = max(waits_from + end - begin, left + min(WAKE_NS, end - was_left))
        else:
            shortest = min(end - begin, WAKE_NS)
            goes_on = max(waits_from + shortest, began + end - int(window.began[step, number]))
        self._knots_until(begin)
        self.knots += [(begin, waits_from), (end, goes_on)]
        self.old, self.new = end, goes_on
        return goes_on - waits_from

    def _knots_until(self, time):
        """A jump before each event from which on something was added."""
        first, last = np.searchsorted(self.added.at, (self.old, time), "right")
        for at in self.added.at[first:last]:
            self.knots += [(int(at) - 1, int(self.moved(at - 1))), (int(at), int(self.moved(at)))]

    def finish(self):
        end = int(self.window.end[-1])
        self._knots_until(end)
        self.knots.append((end, int(self.moved(end))))
        # A jump may lie where a wait ends.
        old, new = np.array(self.knots).T
        keep = np.diff(old, prepend=old[0] - 1) > 0
        return old[keep], new[keep]


def replay(windows, added):
    """What the times of the ranks' windows become (Moved, by rank), from 0: `zero`, on."""
    cursors = [_Cursor(window, more) for window, more in zip(windows, added)]
    steps, count = windows[0].launched.shape
    lag = np.array([window.entered - window.launched for window in windows])
    lasts = np.array([window.left - window.began for window in windows])
    entered, left = np.zeros_like(lag), np.zeros_like(lag)
    own = np.zeros((len(windows), steps), np.int64)
    for step in range(steps):
        for rank, cursor in enumerate(cursors):
            entered[rank, step] = cursor.moved(windows[rank].launched[step]) + lag[rank, step]
        began = entered[:, step].max(axis=0)
        left[:, step] = began + lasts[:, step]
        for rank, cursor in enumerate(cursors):
            before = cursor.moved(windows[rank].begin[step])
            waited = 0
            for number in range(count):
                times = int(began[number]), int(left[rank, step, number])
                waited += cursor.wait(step, number, *times)
            own[rank, step] = cursor.moved(windows[rank].end[step]) - before - waited
    return [
        Moved(*cursor.finish(), entered[rank], left[rank], own[rank])
        for rank, cursor in enumerate(cursors)
    ]


def carried_by(entered, left, wanted, threads):
    """(which thread carries out each collective, entered, left) so that none does two at once.

    A collective takes the thread that it had (`wanted`), else another that is free, else it begins
    when one is.
    """
    free = dict.fromkeys(threads, entered[0])
    chosen, begins, ends = [], [], []
    for begin, end, thread in zip(entered.tolist(), left.tolist(), wanted.tolist()):
        if free[thread] > begin:
            thread = min(threads, key=free.get)
        begin = max(begin, free[thread])
        end = max(end, begin + 1)
        free[thread] = end + 1
        chosen.append(thread)
        begins.append(begin)
        ends.append(end)
    return np.array(chosen), np.array(begins), np.array(ends)
