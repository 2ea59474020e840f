# SPDX-License-Identifier: BSD-3-Clause
"""Test reduce_scatter, reduce_scatter_coo and allgather_coo, against sums of NumPy."""

import unittest

import numpy
from common import main, need_here, whole

import mpix_sparse

RANK, SIZE = mpix_sparse.rank(), mpix_sparse.size()
COUNT = 1000
LAST = RANK == SIZE - 1


def elements(rank, row):
    """A rank's elements: every rank can make those of all."""
    numbers = numpy.random.default_rng(rank)
    indices = numpy.sort(numbers.choice(COUNT, 50 + rank, replace=False)).astype("int32")
    return indices, numbers.integers(-9, 9, (len(indices), row)).astype("float32")


def total_of(row):
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
            dense, present = total_of(row)
            for block in (1, 7, 64, -(-COUNT // SIZE), 10**12):
                indices, values = elements(RANK, row)
                mine = mpix_sparse.reduce_scatter_coo(indices, values, COUNT, block)
                owned = present[present // block % SIZE == RANK]
                numpy.testing.assert_array_equal(mine.indices, owned)
                numpy.testing.assert_array_equal(mine.values, dense[owned])
                everything = mpix_sparse.allgather_coo(mine.indices, mine.values, COUNT)
                numpy.testing.assert_array_equal(everything.indices, present)
                numpy.testing.assert_array_equal(everything.values, dense[present])

    def test_in_flight(self):
        """Several calls at once, which are waited for in another order on each rank."""
        blocks = (1, 7, COUNT)
        dense, present = total_of(1)
        handles = [mpix_sparse.ireduce_scatter_coo(*elements(RANK, 1), COUNT, block) for block in blocks]
        parts = {block: handle.wait() for block, handle in list(zip(blocks, handles))[:: -1 if LAST else 1]}
        sent = [(part.indices, part.values, COUNT) for part in map(parts.get, blocks)]
        handles = [mpix_sparse.iallgather_coo(*part) for part in sent]
        for handle in handles[:: 1 if LAST else -1]:
            numpy.testing.assert_array_equal(handle.wait().indices, present)
            numpy.testing.assert_array_equal(handle.wait().values, dense[present])

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
                mpix_sparse.iallgather_coo([3], ones, 100).wait()

    def test_lengths(self):
        """Different numbers of indices and values on one rank are an exception on all."""
        values = numpy.ones(1 + LAST, "float32")
        calls = (
            lambda: mpix_sparse.reduce_scatter_coo([RANK], values, 100, 1),
            lambda: mpix_sparse.ireduce_scatter_coo([RANK], values, 100, 1).wait(),
            lambda: mpix_sparse.allgather_coo([RANK], values, 100),
            lambda: mpix_sparse.iallgather_coo([RANK], values, 100).wait(),
        )
        others = f"nnz is -1|rank {SIZE - 1} has an error in its arguments: there are 1 indices"
        mine = (ValueError, "1 indices, and values of shape") if LAST else (mpix_sparse.Error, others)
        for call in calls:
            with self.assertRaisesRegex(*mine):
                call()


class Dense(unittest.TestCase):
    def inputs(self, shape, dtype, rank):
        return whole(int(numpy.prod(shape)), 0.3, dtype, rank).reshape(shape)

    def test_like_numpy(self):
        for shape in ((SIZE,), (4 * SIZE, 3), (2 * SIZE, 0), (700 * SIZE, 16)):
            for dtype in ("float32", "float64", "int16", "uint8", "complex64"):
                parts = [self.inputs(shape, dtype, rank) for rank in range(SIZE)]
                wanted = sum(parts[1:], parts[0]).reshape(SIZE, shape[0] // SIZE, *shape[1:])[RANK]
                for row in (1, *shape[1:]):
                    if row:
                        found = mpix_sparse.reduce_scatter(parts[RANK], row=row)
                        self.assertEqual((found.shape, found.dtype), (wanted.shape, dtype))
                        numpy.testing.assert_array_equal(found, wanted)
                        started = mpix_sparse.ireduce_scatter(parts[RANK], row=row).wait()
                        numpy.testing.assert_array_equal(started, wanted)

    def test_out_and_strides(self):
        """Arrays that are not contiguous are copied; out gets the part."""
        parts = [self.inputs((6 * SIZE, 4), "int32", rank) for rank in range(SIZE)]
        wanted = numpy.max(parts, 0)[6 * RANK : 6 * RANK + 6]
        fortran = numpy.asfortranarray(parts[RANK])
        around = numpy.full((6, 8), -1, "int32")
        found = mpix_sparse.reduce_scatter(fortran, "max", out=around[:, ::2])
        self.assertTrue(numpy.shares_memory(found, around))
        numpy.testing.assert_array_equal(around[:, ::2], wanted)
        self.assertTrue((around[:, 1::2] == -1).all())

    def test_scipy(self):
        sparse = need_here("scipy.sparse", "python3-scipy")
        for kind in (sparse.csr_matrix, sparse.coo_matrix, sparse.csc_matrix):
            for height in (0, 3 * SIZE, 40 * SIZE):
                parts = [self.inputs((height, 5), "float64", rank) for rank in range(SIZE)]
                found = mpix_sparse.reduce_scatter(kind(parts[RANK]))
                self.assertEqual((type(found), found.shape), (kind, (height // SIZE, 5)))
                wanted = sum(parts)[height // SIZE * RANK : height // SIZE * (RANK + 1)]
                numpy.testing.assert_array_equal(found.toarray(), wanted)
        if SIZE > 1:
            with self.assertRaisesRegex(ValueError, f"{SIZE + 1} rows, which {SIZE} ranks cannot share"):
                mpix_sparse.reduce_scatter(sparse.eye(SIZE + 1).tocsr())
        with self.assertRaisesRegex(ValueError, "not for scipy.sparse"):
            mpix_sparse.reduce_scatter(sparse.eye(SIZE).tocsr(), row=2)

    def test_errors(self):
        """An error on one rank is an exception on all, and the next call works."""
        fine, wrong = numpy.ones((2 * SIZE, 3), "float32"), numpy.ones((2 * SIZE + 1, 3), "float32")
        others = (mpix_sparse.Error, "recvcount is -1|rank . has an error in its arguments: ")
        for sentence, call in (
            ("cannot share", lambda: mpix_sparse.reduce_scatter(numpy.float32(1) if LAST else fine)),
            ("rows of 4", lambda: mpix_sparse.reduce_scatter(fine, row=4 if LAST else 3)),
            ("out has 1 ", lambda: mpix_sparse.reduce_scatter(fine, out=wrong[0, :1] if LAST else None)),
            ("out has 1 ", lambda: mpix_sparse.ireduce_scatter(fine, out=wrong[0, :1] if LAST else None)),
        ):
            with self.subTest(sentence), self.assertRaisesRegex(*(ValueError, sentence) if LAST else others):
                call().wait()
        with self.assertRaisesRegex(TypeError, "out holds int64"):
            mpix_sparse.reduce_scatter(fine, out=numpy.zeros((2, 3), "int64"))
        with self.assertRaisesRegex(ValueError, "overlap"):
            mpix_sparse.reduce_scatter(fine, out=fine[:2])
        if SIZE > 1:
            with self.assertRaisesRegex(ValueError, "cannot share"):
                mpix_sparse.reduce_scatter(wrong)
            with self.assertRaisesRegex(mpix_sparse.Error, "differs between ranks"):
                mpix_sparse.reduce_scatter(fine, "max" if LAST else "sum")
        self.assertTrue((mpix_sparse.reduce_scatter(fine) == SIZE).all())


if __name__ == "__main__":
    main()
