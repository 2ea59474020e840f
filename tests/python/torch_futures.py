# SPDX-License-Identifier: BSD-3-Clause
"""Test callbacks of the futures of torch.distributed: they may wait for calls and for each other, run in the
order of their registration, and have ended when MPI is finalized."""

import os
import threading
import time
import unittest
import unittest.mock

from common import main, need

torch = need("torch", "python3-torch")
need("torch.distributed.distributed_c10d", "python3-torch")

import mpix_sparse  # noqa: E402
import mpix_sparse.torch  # noqa: E402, F401  (registers the backend)
from mpix_sparse.torch import _callbacks, _progress  # noqa: E402

dist = torch.distributed
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
dist.init_process_group("mpix_sparse", init_method="mpix://")
RANK, SIZE = dist.get_rank(), dist.get_world_size()


def start(value=1.0, count=2):
    """The future of an allreduce whose result is `value` times the number of ranks."""
    return dist.all_reduce(torch.full((count,), value), async_op=True).get_future()


def again(future):
    """A callback that reduces the result of its future once more, and waits for that."""
    return dist.all_reduce(future.value()[0], async_op=True).get_future().wait()[0]


def threads():
    """Names of the package's threads, but for the one that ends with the program."""
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith("mpix_sparse") and name != "mpix_sparse watchdog"]


class Callbacks(unittest.TestCase):
    def test_callback_waits_for_a_call(self):
        for call in (again, lambda future: [dist.all_reduce(future.value()[0]), future.value()[0]][1]):
            self.assertEqual(start().then(call).wait().tolist(), 2 * [float(SIZE**2)])

    def test_callbacks_within_callbacks(self):
        def deeper(depth):
            if depth == 0:
                return lambda future: future.value()[0]
            return lambda future: start(float(future.value()[0][0])).then(deeper(depth - 1)).wait()

        self.assertEqual(start().then(deeper(3)).wait().tolist(), 2 * [float(SIZE**4)])

    def test_calls_meanwhile(self):
        """Calls of the program and of callbacks do not match each other, whatever their order in time."""
        for step in range(20):
            counts = [1 + (7 * step + i) % 11 for i in range(6)]
            chains = [start(1.0 + i, count).then(again) for i, count in enumerate(counts)]
            time.sleep(0.002 * (RANK + step) % 3)
            tensor = torch.full((3,), float(RANK))
            dist.all_reduce(tensor)
            self.assertEqual(tensor.tolist(), 3 * [float(sum(range(SIZE)))])
            for i, (count, chain) in enumerate(zip(counts, chains)):
                self.assertEqual(chain.wait().tolist(), count * [(1.0 + i) * SIZE**2])

    def test_callback_waits_for_a_later_one(self):
        first, second = start(1.0), start(2.0)
        mine = first.then(lambda _: second.then(lambda future: future.value()[0] + 1).wait())
        self.assertEqual(mine.wait().tolist(), 2 * [2.0 * SIZE + 1])
        mine = start(1.0).then(lambda _: torch.futures.collect_all([second]).wait()[0].value()[0])
        self.assertEqual(mine.wait().tolist(), 2 * [2.0 * SIZE])
        event = threading.Event()
        mine, other = start().then(lambda _: event.wait(30)), start().then(lambda _: event.set())
        self.assertTrue(mine.wait())
        other.wait()

    def test_order(self):
        """Callbacks run in the order of their registration, also if a future was complete before."""
        found = []
        old = start()
        old.wait()
        futures = [start(), old, start()]
        chains = [
            future.then(lambda _, i=i: found.append(i)).then(lambda _, i=i: found.append(i + 10))
            for i, future in enumerate(futures)
        ]
        for chain in chains:
            chain.wait()
        self.assertEqual([i for i in found if i in (0, 2, 10, 12)], [0, 10, 2, 12])
        self.assertLess(found.index(1), found.index(11))

    def test_done_callbacks(self):
        """add_done_callback() has the order and the threads of then(), also where ranks are late."""
        for late in range(SIZE):
            done, futures = threading.Event(), [start(), start()]
            found = []
            if RANK == late:
                futures[0].wait()
                time.sleep(0.1)
            futures[0].add_done_callback(lambda future: found.append(again(future).tolist()))
            futures[0].add_done_callback(lambda _: found.append(threading.current_thread().name))
            futures[1].then(lambda _: done.set())
            dist.all_reduce(torch.ones(4))
            self.assertTrue(done.wait(30))
            self.assertEqual(found, [2 * [float(SIZE**2)], "mpix_sparse callbacks 1"])

    def test_errors_of_done_callbacks(self):
        """PyTorch prints the exception of such a callback; the ones behind it run."""
        future, found = start(), threading.Event()
        future.add_done_callback(lambda _: 1 / 0)
        future.add_done_callback(lambda _: found.set())
        self.assertTrue(found.wait(30))

    def test_threads(self):
        """Callbacks run neither in the thread that makes progress nor in the program's, also if a future is
        complete."""
        future = start()
        future.wait()
        for each in (future, start(), future.then(lambda _: None)):
            name = each.then(lambda _: threading.current_thread().name).wait()
            self.assertEqual(name, "mpix_sparse callbacks 1")

    def test_other_futures(self):
        """Futures of other origin behave as before."""
        future = torch.futures.Future()
        then, found = future.then(lambda done: (done.value(), threading.current_thread())), []
        future.add_done_callback(lambda done: found.append((done.value(), threading.current_thread())))
        future.set_result(5)
        self.assertEqual(then.wait(), (5, threading.current_thread()))
        self.assertEqual(found, [then.wait()])

    def test_errors(self):
        divided = start().then(lambda future: 1 / 0)
        for failed in (divided, divided.then(lambda future: future.value())):
            with self.assertRaisesRegex(RuntimeError, "ZeroDivisionError"):
                failed.wait()
        caught = divided.then(lambda future: self.assertRaises(RuntimeError, future.value))
        self.assertIsNone(caught.wait())

    def test_calls_of_any_order(self):
        """A message that is late delays no callback of a collective call."""
        if SIZE == 1:
            return
        got = torch.zeros(1)
        if RANK == 0:
            received = dist.irecv(got, 1).get_future().then(lambda _: float(got))
        total = start().then(lambda future: float(future.value()[0][0])).wait()
        dist.barrier()
        if RANK == 1:
            dist.send(torch.full((1,), total), 0)
        if RANK == 0:
            self.assertEqual(received.wait(), float(SIZE))

    def test_outcome(self):
        """Of a Work of torch.distributed, before and after wait()."""
        for failing in (False, SIZE > 1):
            work = dist.all_reduce(torch.ones(2 + (failing and RANK == SIZE - 1)), async_op=True)
            while not work.is_completed():
                time.sleep(0)
            self.assertEqual(work.is_success(), not failing)
            self.assertEqual(isinstance(work.exception(), ValueError), failing)
            if failing:
                self.assertRaises(ValueError, work.wait)
            else:
                work.wait()
            self.assertEqual(work.is_success(), not failing)

    def test_end(self):
        """At the end all callbacks have run, and the threads have ended."""
        found = []
        start().then(again).then(lambda future: (time.sleep(0.3), found.append(future.value().tolist())))
        _progress._stop()
        self.assertEqual(found, [2 * [float(SIZE**2)]])
        self.assertEqual(threads(), [])
        self.assertEqual(start().then(again).wait().tolist(), 2 * [float(SIZE**2)])
        event = threading.Event()
        start().then(lambda _: event.wait())
        with unittest.mock.patch.object(_callbacks, "END_SECONDS", 0.2):
            with self.assertWarnsRegex(RuntimeWarning, "1 callbacks of futures have not ended"):
                _progress._stop()
        event.set()


if __name__ == "__main__":
    main()
