# SPDX-License-Identifier: BSD-3-Clause
"""Test reduce_scatter_coo and allgather_coo, against sums of NumPy."""

import unittest

import numpy
from common import main

import mpix_sparse

RANK, SIZE = mpix_sparse.rank(), mpix_sparse.size()
COUNT = 1000


def elements(rank, row):
    """A rank's elements: every rank can make those of all."""
    numbers = numpy.random.default_rng(rank)
    indices = numpy.sort(numbers.choice(COUNT, 50 + rank, replace=False)).astype("int32")
    return indices, numbers.integers(-9, 9, (len(indices), row)).astype("float32")


def whole(row):
    """The sum of all ranks' elements, and their indices."""
    dense, present = numpy.zeros((COUNT, row), "float32"), numpy.zeros(COUNT, bool)
    for rank in range(SIZE):
        indices, values = elements(rank, row)
        dense[indices] += values
        present[indices] = True
    return dense, numpy.flatnonzero(present)


class Halves(unittest.TestCase):
    def test_round_trip(self):
        for row in (1, 5):
            dense, present = whole(row)
            for block in (1, 7, 64, -(-COUNT // SIZE), 10**12):
                indices, values = elements(RANK, row)
                mine = mpix_sparse.reduce_scatter_coo(indices, values, COUNT, block)
                owned = present[present // block % SIZE == RANK]
                numpy.testing.assert_array_equal(mine.indices, owned)
                numpy.testing.assert_array_equal(mine.values, dense[owned])
                everything = mpix_sparse.allgather_coo(mine.indices, mine.values, COUNT)
                numpy.testing.assert_array_equal(everything.indices, present)
                numpy.testing.assert_array_equal(everything.values, dense[present])

    def test_op_and_reuse(self):
        index = numpy.array([RANK], "int64")
        mine = mpix_sparse.reduce_scatter_coo(index * 0, index, 5, 5, "max")
        self.assertEqual(list(mine.values), [SIZE - 1] if RANK == 0 else [])
        again = mpix_sparse.allgather_coo(index, index % 2 == 0, SIZE, reuse=mine)
        self.assertEqual(list(again.values), [rank % 2 == 0 for rank in range(SIZE)])

    def test_errors(self):
        ones = numpy.ones(1, "float32")
        with self.assertRaisesRegex(mpix_sparse.Error, "block is 0"):
            mpix_sparse.reduce_scatter_coo([RANK], ones, 100, 0)
        with self.assertRaises(TypeError):
            mpix_sparse.reduce_scatter_coo([RANK], ones, 100, 1.5)
        with self.assertRaisesRegex(mpix_sparse.Error, "occurs twice"):
            mpix_sparse.allgather_coo([3, 3], numpy.ones(2, "float32"), 100)
        if SIZE > 1:
            with self.assertRaisesRegex(mpix_sparse.Error, "occurs twice"):
                mpix_sparse.allgather_coo([3], ones, 100)


if __name__ == "__main__":
    main()
