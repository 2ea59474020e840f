# SPDX-License-Identifier: BSD-3-Clause
"""Test that calls whose arguments differ between ranks are exceptions on all ranks, within seconds, for
vectors of every size: without a check MPI would add small ones, with wrong results, or wait."""

import time
import unittest

import numpy

from common import main

import mpix_sparse

mpix_sparse.init()
RANK, SIZE = mpix_sparse.rank(), mpix_sparse.size()
ODD = RANK == SIZE - 1  # the rank whose arguments differ
COUNTS = 1, 4, 511, 512, 513, 4095, 4097, 50000, 1000000
SECONDS = 5


def ones(count, dtype="float32"):
    return numpy.ones(count, dtype)


def coo(count, dtype="float32"):
    return mpix_sparse.allreduce_coo([0], numpy.ones(1, dtype), count)


def plan(array, op="sum"):
    return mpix_sparse.Plan(array, op).start().wait()


CALLS = (
    mpix_sparse.allreduce,
    lambda array, op="sum": mpix_sparse.iallreduce(array, op).wait(),
    plan,
)


@unittest.skipIf(SIZE == 1, "one rank has no other")
class Mismatches(unittest.TestCase):
    def refused(self, text, call):
        """Check that a call fails on this rank, names both sides, and that the next call succeeds."""
        start = time.monotonic()
        with self.assertRaisesRegex(mpix_sparse.Error, text):
            call()
        self.assertLess(time.monotonic() - start, SECONDS)
        self.assertEqual(mpix_sparse.allreduce(ones(3)).tolist(), 3 * [SIZE])

    def test_counts(self):
        for count in COUNTS:
            for other in (count + 1, 2 * count + 600, 9000):
                mine = other if ODD else count
                low, high = sorted((count, other))
                text = rf"count differs between ranks: {low} on rank . and {high} on rank"
                for call in CALLS:
                    self.refused(text, lambda call=call, mine=mine: call(ones(mine)))
                self.refused(text, lambda mine=mine: coo(mine))

    def test_types(self):
        pairs = ("float64", "float32"), ("int32", "float32"), ("uint8", "int64"), ("complex64", "float64")
        for count in COUNTS:
            for pair in pairs:
                text = r"datatype differs between ranks: .* on rank . and .* on rank"
                for call in CALLS[: 1 if "complex64" in pair else 3]:
                    self.refused(text, lambda call=call, pair=pair: call(ones(count, pair[ODD])))

    def test_ops(self):
        for count in COUNTS:
            for pair in (("sum", "max"), ("prod", "min")):
                text = "op differs between ranks: [a-z]+ on rank . and [a-z]+ on rank"
                for call in CALLS:
                    self.refused(text, lambda call=call, pair=pair: call(ones(count), pair[ODD]))

    def test_functions(self):
        text = r"ranks call different functions: .*allreduce.* on rank . and .* on rank"
        for count in COUNTS:
            for call in CALLS:
                self.refused(text, lambda call=call: coo(count) if ODD else call(ones(count)))
            self.refused(text, lambda: plan(ones(count)) if ODD else mpix_sparse.allreduce(ones(count)))

    def test_barrier(self):
        text = r"ranks call different functions: .*(barrier on rank . and |and .*barrier on rank )"
        for count in COUNTS:
            for call in (*CALLS, lambda array: coo(array.size)):
                self.refused(text, lambda call=call: mpix_sparse.barrier() if ODD else call(ones(count)))
        mpix_sparse.barrier()

    def test_places(self):
        """A call in place on one rank only."""
        for count in COUNTS:
            array = ones(count)
            call = lambda: mpix_sparse.allreduce(array, out=array if ODD else None)  # noqa: E731
            text = "argument out differs between ranks: another array on rank . and the array itself on"
            self.refused(text, call)

    def test_rows(self):
        for count in COUNTS:
            array = ones(4 * count)
            self.refused("count differs", lambda: mpix_sparse.allreduce(array, row=4 if ODD else 2))

    def test_plans(self):
        """One rank starts another plan, also when the choice of a scheme is settled."""
        text = "ranks start different plans: number [0-9]+ of .* on rank . and number [0-9]+ of .* on rank"
        for count in COUNTS:
            dense = [mpix_sparse.Plan(ones(count)) for _ in range(2)]
            sparse = [mpix_sparse.CooPlan(count, "float32") for _ in range(2)]
            starts = (
                lambda i, plans=dense: plans[i].start(),
                lambda i, plans=sparse: plans[i].start([0], ones(1)),
            )
            for start in starts:
                for starts_before in (0, 12):
                    for i in range(2 * starts_before):
                        start(i % 2).wait()
                    self.refused(text, lambda start=start: start(ODD).wait())
            for made in dense + sparse:
                made.free()

    def test_mixed_order(self):
        """One rank makes the calls in another order."""
        for count in (4, 600, 50000):
            first, second = ones(count), ones(2 * count)
            self.refused("count differs", lambda: mpix_sparse.allreduce(second if ODD else first))
            self.refused("count differs", lambda: mpix_sparse.allreduce(first if ODD else second))


class Setting(unittest.TestCase):
    def test_default(self):
        mpix_sparse.allreduce(ones(3))
        self.assertEqual(mpix_sparse.get_info()["forward"], "0")

    def test_set(self):
        """What set_info() sets stays."""
        mpix_sparse.set_info(forward=5)
        mpix_sparse.allreduce(ones(3))
        self.assertEqual(mpix_sparse.get_info()["forward"], "5")
        mpix_sparse.set_info(forward=0)


if __name__ == "__main__":
    main()
