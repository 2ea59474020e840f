# SPDX-License-Identifier: BSD-3-Clause
"""Test nonblocking calls: any order of waiting, interrupts, threads, and dropped handles."""

import gc
import signal
import threading
import time
import unittest
import warnings
import weakref

import numpy
from common import main, whole

import mpix_sparse
from mpix_sparse import _pending

RANK, SIZE = mpix_sparse.rank(), mpix_sparse.size()
COUNT = 40000


def mine(number):
    return whole(COUNT, 0.01, "float32", RANK, number)


def total(number):
    return sum(whole(COUNT, 0.01, "float32", rank, number) for rank in range(SIZE))


class Handles(unittest.TestCase):
    def tearDown(self):
        mpix_sparse.barrier()
        self.assertEqual(_pending.pending_calls, set())

    def test_orders(self):
        handles = [mpix_sparse.iallreduce(mine(i)) for i in range(6)]
        order = list(range(6))[:: 1 if RANK % 2 == 0 else -1]
        for i in order:
            numpy.testing.assert_array_equal(handles[i].wait(), total(i))
            self.assertIs(handles[i].wait(), handles[i].wait())
            self.assertTrue(handles[i].done())

    def test_wait_all_of_others(self):
        for given in ([3], None, 5):
            with self.assertRaisesRegex(TypeError, "a sequence of handles is needed"):
                mpix_sparse.wait_all(given)

    def test_done(self):
        out = numpy.empty(COUNT, "float32")
        handle = mpix_sparse.iallreduce(mine(7), out=out)
        while not handle.done():
            time.sleep(0)
        self.assertIs(handle.wait(), out)
        numpy.testing.assert_array_equal(out, total(7))

    def test_coo_and_wait_all(self):
        places = [numpy.flatnonzero(mine(i)) for i in range(3)]
        handles = [mpix_sparse.iallreduce_coo(p, mine(i)[p], COUNT) for i, p in enumerate(places)]
        for i, result in enumerate(mpix_sparse.wait_all(handles)):
            numpy.testing.assert_array_equal(result.dense(), total(i))

    def test_buffers_live(self):
        source = mine(8)
        life = weakref.ref(source)
        handle = mpix_sparse.iallreduce(source)
        del source
        gc.collect()
        churn = [numpy.full(COUNT, 9, "float32") for _ in range(20)]
        numpy.testing.assert_array_equal(handle.wait(), total(8))
        self.assertEqual(len(churn), 20)
        self.assertIsNone(life())

    def test_dropped(self):
        source, out = mine(9), numpy.zeros(COUNT, "float32")
        life = weakref.ref(source)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            handle = mpix_sparse.iallreduce(source, out=out)
            dropped = not handle.done()
            del handle, source
            gc.collect()
        self.assertEqual([w.category for w in told], [ResourceWarning] if dropped else [])
        # Calls of a communicator complete in the order of their starts, and each start checks dropped
        # handles.
        for _ in range(2):
            mpix_sparse.iallreduce(mine(0)).wait()
        gc.collect()
        self.assertIsNone(life())
        numpy.testing.assert_array_equal(out, total(9))

    def test_interrupted(self):
        """The last rank is late; the others are interrupted while they wait, and wait again."""
        if RANK == SIZE - 1:
            time.sleep(0.5)
        handle = mpix_sparse.iallreduce(mine(10))
        if RANK != SIZE - 1:
            timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
            with self.assertRaises(KeyboardInterrupt):
                timer.start()
                handle.wait()
                time.sleep(60)
        numpy.testing.assert_array_equal(handle.wait(), total(10))

    def test_two_threads_wait_for_one(self):
        handle = mpix_sparse.iallreduce(mine(11))
        outs = []
        threads = [threading.Thread(target=lambda: outs.append(handle.wait())) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertIs(outs[0], outs[1])
        numpy.testing.assert_array_equal(outs[0], total(11))


if __name__ == "__main__":
    main()
