# SPDX-License-Identifier: BSD-3-Clause
"""Test arrays in host memory that are not contiguous: they are copied, and results are written back."""

import unittest

import numpy
from common import main, need_here, whole

import mpix_sparse

RANK, SIZE = mpix_sparse.rank(), mpix_sparse.size()
SHAPE = 40, 60
ALL = [whole(2400, 0.3, "float32", rank).reshape(SHAPE) for rank in range(SIZE)]
MINE, TOTAL = ALL[RANK], sum(ALL)


def layouts(array):
    """The same elements in several layouts: Fortran order, every second column, reversed."""
    apart = numpy.full((SHAPE[0], 2 * SHAPE[1]), 7, array.dtype)
    apart[:, ::2] = array
    return numpy.asfortranarray(array), apart[:, ::2], array[::-1].copy()[::-1], array.T.copy().T


class Strided(unittest.TestCase):
    def test_input(self):
        for mine in layouts(MINE):
            self.assertFalse(mine.flags.c_contiguous)
            kept = mine.copy()
            numpy.testing.assert_array_equal(mpix_sparse.allreduce(mine), TOTAL)
            numpy.testing.assert_array_equal(mpix_sparse.iallreduce(mine).wait(), TOTAL)
            numpy.testing.assert_array_equal(mpix_sparse.allreduce(mine, row=SHAPE[1]), TOTAL)
            numpy.testing.assert_array_equal(mine, kept)

    def test_in_place(self):
        for call in mpix_sparse.allreduce, lambda mine, out: mpix_sparse.iallreduce(mine, out=out).wait():
            for mine in layouts(MINE):
                self.assertIs(call(mine, out=mine), mine)
                numpy.testing.assert_array_equal(mine, TOTAL)
        apart = layouts(MINE)[1]
        mpix_sparse.allreduce(apart, out=apart)
        self.assertTrue((apart.base[:, 1::2] == 7).all())

    def test_output(self):
        for out in layouts(numpy.zeros(SHAPE, "float32")):
            for mine in (MINE, *layouts(MINE)):
                out[...] = -1
                self.assertIs(mpix_sparse.allreduce(mine, out=out), out)
                numpy.testing.assert_array_equal(out, TOTAL)
        numpy.testing.assert_array_equal(mpix_sparse.allreduce(layouts(MINE)[0], out=out.copy()), TOTAL)

    def test_other_order(self):
        """Test an output over the input's memory in another order, and one beside it."""
        square = numpy.arange(9, dtype="float32").reshape(3, 3) + RANK
        expected = sum(numpy.arange(9, dtype="float32").reshape(3, 3) + rank for rank in range(SIZE))
        mpix_sparse.allreduce(square, out=square.T)
        numpy.testing.assert_array_equal(square.T, expected)
        both = numpy.zeros(2400 * 2, "float32")
        both[::2] = MINE.ravel()
        mpix_sparse.allreduce(both[::2], out=both[1::2])
        numpy.testing.assert_array_equal(both[1::2], TOTAL.ravel())
        numpy.testing.assert_array_equal(both[::2], MINE.ravel())

    def test_plan(self):
        """Test that every call of a plan reads the array anew."""
        for factor in 1, 2:
            mine, out = layouts(MINE)[1], layouts(numpy.zeros(SHAPE, "float32"))[0]
            with mpix_sparse.Plan(mine, out=out) as plan, mpix_sparse.Plan(mine, out=mine) as in_place:
                mine *= factor
                self.assertIs(plan.start().wait(), out)
                numpy.testing.assert_array_equal(out, factor * TOTAL)
                for handle in mpix_sparse.plan_start_all([in_place]):
                    handle.wait()
                numpy.testing.assert_array_equal(mine, factor * TOTAL)

    def test_coordinates(self):
        indices = numpy.array([5, 0, 3, 0, 99, 0])[::2]
        for values in numpy.ones(6, "float32")[::2], numpy.ones((3, 2), "float32").T.copy().T:
            result = mpix_sparse.allreduce_coo(indices, values, 100)
            self.assertEqual(list(result.indices), [3, 5, 99])
            self.assertTrue((result.values == SIZE).all())
            out = numpy.full((*values.shape[1:], 100), -1, "float32").T
            self.assertIs(result.dense(out), out)
            self.assertEqual(out.sum(), values.size * SIZE)

    def test_inquiry(self):
        for mine in layouts(MINE):
            self.assertEqual(mpix_sparse.profile(mine), mpix_sparse.profile(MINE))
            kept, left = numpy.zeros((2, *SHAPE), "float32")
            threshold = mpix_sparse.topk_threshold(mine, 0.1, sample=1)
            self.assertEqual(threshold, mpix_sparse.topk_threshold(MINE, 0.1, sample=1))
            for found, expected in zip(
                mpix_sparse.topk_select(mine, threshold), mpix_sparse.topk_select(MINE, threshold)
            ):
                numpy.testing.assert_array_equal(found, expected)
            mpix_sparse.dgc_step(mine, kept, left, 0.1, momentum=0)
            numpy.testing.assert_array_equal(kept, MINE)

    def test_tensors(self):
        torch = need_here("torch", "python3-torch")
        mine = torch.from_numpy(MINE.copy()).t()
        self.assertIs(mpix_sparse.allreduce(mine, out=mine), mine)
        numpy.testing.assert_array_equal(mine.t().numpy(), TOTAL)

    def test_read_only(self):
        out = layouts(MINE)[0]
        out.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "read-only"):
            mpix_sparse.allreduce(MINE, out=out)


if __name__ == "__main__":
    main()
