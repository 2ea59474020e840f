# SPDX-License-Identifier: BSD-3-Clause
"""Test the counts of calls, by which the watchdog finds that no call in flight can complete."""

import os
import threading
import time
import unittest
import unittest.mock

import numpy
from common import main

import mpix_sparse
from mpix_sparse import _counts, _frames

mpix_sparse.init()
RANK, SIZE = mpix_sparse.rank(), mpix_sparse.size()
NONE = ["others", 3, 7, 0, ""]  # name, size, calls, oldest call in flight, its function


class Deadlocks(unittest.TestCase):
    def find(self, *states, waiting=None):
        every = dict(enumerate(states))
        return _counts.is_deadlock(every, set(every) if waiting is None else waiting)

    def test_different_calls(self):
        """Each rank waits for a call that the other has not started."""
        one, other = ["a", 2, 5, 5, "call"], ["b", 2, 3, 3, "call"]
        self.assertTrue(self.find([one], [["a", 2, 4, 0, ""], other]))
        self.assertTrue(self.find([one], [other]))

    def test_one_call(self):
        """A call that all ranks have started may complete, however long it takes."""
        self.assertFalse(self.find([["a", 2, 5, 5, "call"]], [["a", 2, 5, 5, "call"], NONE]))
        self.assertFalse(self.find([["a", 2, 5, 4, "call"]], [["a", 2, 4, 0, ""]], waiting={0}))

    def test_missing_rank(self):
        """A rank that has made no call with this communicator has not started one."""
        self.assertTrue(self.find([["a", 3, 1, 1, "call"]], [["a", 3, 1, 1, "call"]], [NONE], waiting={0, 1}))
        self.assertFalse(
            self.find([["a", 2, 1, 1, "call"]], [["a", 2, 1, 1, "call"]], [NONE], waiting={0, 1})
        )

    def test_several_in_flight(self):
        """One of several calls in flight may complete."""
        self.assertFalse(
            self.find([["a", 2, 5, 5, "call"], ["b", 2, 2, 2, "call"]], [["b", 2, 2, 2, "call"]])
        )
        self.assertTrue(
            self.find(
                [["a", 2, 5, 5, "call"], ["b", 2, 2, 2, "call"]], [["b", 2, 1, 0, ""], ["c", 2, 1, 1, "call"]]
            )
        )

    def test_functions(self):
        """One rank is in a call, and the other has started a plan, which compares nothing."""
        call, plan = ["a", 2, 5, 5, "call"], ["a", 2, 5, 5, "plan"]
        self.assertTrue(self.find([call], [plan]))
        self.assertFalse(self.find([plan], [plan]))
        self.assertFalse(self.find([call], [["a", 2, 6, 6, "plan"]], waiting={0}))

    def test_ended(self):
        """A rank that has ended and made fewer calls, or none, is needed; not if it takes no part."""
        call = ["a", 3, 2, 2, "call"]
        for ended, expected in ([["a", 3, 1, 0, ""]], True), ([NONE], True), ([["a", 3, 2, 0, ""]], False):
            states = dict(enumerate([[call], [["a", 3, 2, 0, ""]], ended]))
            self.assertEqual(_counts.needs_ended(states, {0, 1}, {2}), expected)
            states[1] = None
            self.assertEqual(_counts.needs_ended(states, {0, 1}, {2}), expected)
        states = {0: [["a", 2, 2, 2, "call"]], 1: [["a", 2, 1, 0, ""]], 2: [NONE]}
        self.assertFalse(_counts.needs_ended(states, {0, 1}, {2}))
        self.assertFalse(_counts.needs_ended({**states, 2: None}, {0, 1}, {2}))

    def test_no_call(self):
        """What a rank without a call in flight waits for is not known."""
        self.assertFalse(self.find([NONE], [["a", 2, 1, 1, "call"]]))


@unittest.skipIf(SIZE == 1, "calls on one rank are not counted")
class Calls(unittest.TestCase):
    def started(self):
        return sum(count for _, _, count, _, _ in _counts.state())

    def in_flight(self):
        return sum(oldest > 0 for _, _, _, oldest, _ in _counts.state())

    def test_count(self):
        """Blocking and nonblocking calls, and those of plans."""
        mpix_sparse.allreduce(numpy.ones(3))
        for calls, make in (
            (1, lambda: mpix_sparse.allreduce(numpy.ones(3))),
            (1, lambda: mpix_sparse.allreduce_coo([RANK], [1.0], SIZE)),
            (1, lambda: mpix_sparse.iallreduce(numpy.ones(3)).wait()),
            (2, lambda: mpix_sparse.Plan(numpy.ones(3)).start().wait()),
            (2, lambda: mpix_sparse.CooPlan(SIZE, "float64").start([RANK], numpy.ones(1)).wait()),
            (1, mpix_sparse.barrier),
        ):
            before = self.started()
            make()
            self.assertEqual((self.started() - before, self.in_flight()), (calls, 0))

    def test_plans(self):
        plans = [mpix_sparse.Plan(numpy.ones(3)) for _ in range(3)]
        before = self.started()
        mpix_sparse.wait_all(mpix_sparse.plan_start_all(plans))
        self.assertEqual((self.started() - before, self.in_flight()), (3, 0))

    def test_in_flight(self):
        """A call counts as in flight until it is found complete."""
        mpix_sparse.allreduce(numpy.ones(3))
        handle = mpix_sparse.iallreduce(numpy.ones(3))
        self.assertEqual(self.in_flight(), 1)
        handle.wait()
        self.assertEqual(self.in_flight(), 0)

    def test_blocked(self):
        """Calls in flight do not count of a rank that waits in a blocking function."""
        mpix_sparse.allreduce(numpy.ones(3))
        handle = mpix_sparse.iallreduce(numpy.ones(3))
        oldest = [entry[3] for entry in _counts.state(is_blocked=True)]
        handle.wait()
        self.assertEqual(set(oldest), {0})

    def test_error(self):
        with self.assertRaises(mpix_sparse.Error):
            mpix_sparse.iallreduce(numpy.ones(3 + RANK)).wait()
        self.assertEqual(self.in_flight(), 0)

    def test_callers(self):
        """Threads that have made a call."""
        found = []
        for call in mpix_sparse.barrier, mpix_sparse.iallreduce(numpy.ones(3)).done, mpix_sparse.rank:

            def note(call=call):
                _counts.callers.discard(threading.get_ident())
                call()
                found.append(threading.get_ident() in _counts.callers)

            thread = threading.Thread(target=note)
            thread.start()
            thread.join()
        self.assertEqual((found[0], found[2]), (True, False))

    def test_threads(self):
        """This thread makes calls, but is not in one."""
        mpix_sparse.barrier()
        activity = _frames.Activity()
        self.assertEqual((activity.is_in_call, activity.text), (False, ""))

    def find_activity(self, **how):
        """The activity while a thread is in a function of the package."""
        file = os.path.join(os.path.dirname(mpix_sparse.__file__), "f\u00fcnf.py")
        text = compile("import time\n(lambda: time.sleep(0.5))()", file, "exec")
        thread = threading.Thread(target=exec, args=(text, {}), **how)
        thread.start()
        time.sleep(0.2)
        activity = _frames.Activity()
        thread.join()
        return activity

    def test_other_functions(self):
        """A thread that takes long in a function of the package may start a call later. It does not wait."""
        activity = self.find_activity()
        self.assertEqual((activity.is_in_call, activity.surely_waits), (True, False))

    def test_text(self):
        """The function that the program calls, by its module, and the program's line."""
        found = []
        thread = threading.Thread(target=lambda: found.append(_frames.Activity().text))
        thread.start()
        thread.join()
        self.assertRegex(found[0], r"^threading\.(start|join)\(\) at counts\.py:[0-9]+$")

    def test_frame_objects(self):
        """Samples do not touch frame objects of other threads, which may crash Python."""
        with unittest.mock.patch("sys._current_frames", side_effect=AssertionError):
            self.assertTrue(self.find_activity().is_in_call)

    def test_many_threads(self):
        """There are more threads than faulthandler prints, or it has no file."""
        event = threading.Event()
        threads = [threading.Thread(target=event.wait) for _ in range(120)]
        for thread in threads:
            thread.start()
        many = self.find_activity(name="m\u00e4ny")
        event.set()
        for thread in threads:
            thread.join()
        with unittest.mock.patch("mpix_sparse._frames._file", None):
            without = self.find_activity()
        for activity in many, without:
            self.assertTrue(activity.is_in_call)
            self.assertEqual(activity.text, "threading._bootstrap()")

    def test_watchdog(self):
        """The thread that looks for messages is in no call."""
        self.assertFalse(self.find_activity(name=_frames.WATCHDOG).is_in_call)


if __name__ == "__main__":
    main()
