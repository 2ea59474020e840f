# SPDX-License-Identifier: BSD-3-Clause
"""Test top-k sparsification against a sort."""

import unittest

import numpy
from common import draw, main

import mpix_sparse


def group_of_all():
    """The group of all ranks."""
    return mpix_sparse._mpi.constant("COMM_WORLD")


def gathered(array):
    """Concatenate all ranks' arrays, which have one size."""
    whole = numpy.zeros((mpix_sparse.size(), array.size), array.dtype)
    whole[mpix_sparse.rank()] = array
    return mpix_sparse.allreduce(whole).reshape(-1)


def kth(values, ratio):
    """Compute the threshold by a sort."""
    return numpy.sort(numpy.abs(values))[-max(1, int(ratio * values.size + 0.5))]


class Topk(unittest.TestCase):
    def test_threshold(self):
        for dtype in ("float32", "float64"):
            mine = draw(1, mpix_sparse.rank()).normal(size=5000).astype(dtype)
            for ratio in (0.001, 0.05, 0.9):
                found = mpix_sparse.topk_threshold(mine, ratio, sample=1)
                self.assertEqual(found, kth(mine, ratio))
                found = mpix_sparse.topk_threshold(mine, ratio, sample=1, group=group_of_all())
                self.assertEqual(found, kth(gathered(mine), ratio))

    def test_sampling(self):
        mine = draw(2, mpix_sparse.rank()).normal(size=300000).astype("float32")
        found = [mpix_sparse.topk_threshold(mine, 0.01, seed=seed) for seed in (1, 1, 2)]
        self.assertEqual(found[0], found[1])
        self.assertNotEqual(found[0], found[2])
        for threshold in found:
            self.assertTrue(0.006 < (numpy.abs(mine) >= threshold).mean() < 0.015)

    def test_everything(self):
        """With ratio 1 no sample decides the selection."""
        gradient = draw(5, mpix_sparse.rank()).normal(size=50000).astype("float32")
        velocity, residual = numpy.zeros((2, 50000), "float32")
        for group in (None, group_of_all()):
            residual[:] = velocity[:] = 0
            indices, values = mpix_sparse.dgc_step(gradient, velocity, residual, 1, group=group)
            self.assertTrue(numpy.array_equal(values, gradient))
            self.assertFalse(residual.any())
        self.assertEqual(mpix_sparse.topk_threshold(gradient, 1), 0)

    def test_select(self):
        mine = draw(3, mpix_sparse.rank()).normal(size=(100, 30))
        flat = mine.reshape(-1)
        indices, values = mpix_sparse.topk_select(mine, 2.0)
        self.assertTrue(numpy.array_equal(indices, numpy.flatnonzero(numpy.abs(flat) >= 2)))
        self.assertTrue(numpy.array_equal(values, flat[indices]))
        indices, values = mpix_sparse.topk_select(mine, 0.0, capacity=10, index_dtype="uint32")
        self.assertEqual(indices.dtype, numpy.uint32)
        self.assertTrue(numpy.array_equal(indices, numpy.sort(numpy.argsort(-numpy.abs(flat))[:10])))
        out = numpy.zeros(12, "uint32"), numpy.zeros(10)
        again = mpix_sparse.topk_select(mine, 0.0, out=out)
        self.assertTrue(numpy.array_equal(again, (indices, values)))
        self.assertTrue(numpy.shares_memory(again[1], out[1]))

    def test_steps(self):
        random = draw(4, mpix_sparse.rank())
        velocity, residual = numpy.zeros(2000), numpy.zeros(2000)
        u, v = velocity.copy(), residual.copy()
        for step in range(5):
            gradient = random.normal(size=2000)
            group = group_of_all() if step > 2 else None
            how = {
                "momentum": 0.5,
                "scale": 0.25,
                "sample": 1,
                "seed": step,
                "masking": True,
                "capacity": 2000,
                "group": group,
            }
            indices, values = mpix_sparse.dgc_step(gradient, velocity, residual, 0.02, **how)
            u = 0.5 * u + 0.25 * gradient
            v = v + u
            chosen = numpy.flatnonzero(numpy.abs(v) >= kth(gathered(v) if group else v, 0.02))
            self.assertTrue(numpy.array_equal(indices, chosen))
            self.assertTrue(numpy.array_equal(values, v[chosen]))
            u[chosen] = v[chosen] = 0
            self.assertTrue(numpy.array_equal(velocity, u) and numpy.array_equal(residual, v))

    def test_wrong(self):
        mine = numpy.ones(10, numpy.float32)
        with self.assertRaisesRegex(mpix_sparse.Error, "argument ratio is 2"):
            mpix_sparse.topk_threshold(mine, 2)
        with self.assertRaisesRegex(mpix_sparse.Error, "argument threshold is -1"):
            mpix_sparse.topk_select(mine, -1)
        with self.assertRaisesRegex(mpix_sparse.Error, "argument datatype is int32"):
            mpix_sparse.topk_threshold(mine.astype("int32"), 0.5)
        with self.assertRaisesRegex(mpix_sparse.Error, "argument momentum is 1"):
            mpix_sparse.dgc_step(mine, mine.copy(), mine.copy(), 0.5, momentum=1)
        with self.assertRaisesRegex(ValueError, "velocity has 9 x float32"):
            mpix_sparse.dgc_step(mine, mine[:9], mine.copy(), 0.5)
        with self.assertRaisesRegex(ValueError, "not contiguous"):
            mpix_sparse.dgc_step(mine, mine.copy(), numpy.ones(20, numpy.float32)[::2], 0.5)
        both = numpy.zeros(15, numpy.float32)
        with self.assertRaisesRegex(mpix_sparse.Error, "residual is overlapping another"):
            mpix_sparse.dgc_step(mine, both[:10], both[5:], 0.5)
        with self.assertRaisesRegex(mpix_sparse.Error, "residual is overlapping another"):
            mpix_sparse.dgc_step(mine, mine.copy(), mine, 0.5)
        for ratio in (float("nan"), 0, 1.5):
            with self.assertRaisesRegex(ValueError, f"ratio is {ratio}; it must be above 0"):
                mpix_sparse.dgc_step(mine, mine.copy(), mine.copy(), ratio)
        for out, sentence in (
            ((numpy.zeros(9, "int32"), numpy.zeros(9)), "out holds values of float64"),
            ((numpy.zeros((3, 3), "int32"), mine), "two arrays of one dimension"),
            ((numpy.zeros(9, "int32"), mine.tobytes()), "out is read-only"),
        ):
            with self.assertRaisesRegex((TypeError, ValueError), sentence):
                mpix_sparse.topk_select(mine, 1.0, out=out)
        steps = mine, mine.copy(), mine.copy()
        for error, sentence, call in (
            (ValueError, "capacity is -1", lambda: mpix_sparse.topk_select(mine, 1.0, capacity=-1)),
            (ValueError, "seed is .*32 bits", lambda: mpix_sparse.topk_threshold(mine, 0.5, seed=2**32)),
            (ValueError, "seed is .*32 bits", lambda: mpix_sparse.dgc_step(*steps, 0.5, seed=2**32)),
            (TypeError, "ratio is 'a'; it must be", lambda: mpix_sparse.topk_threshold(mine, "a")),
            (TypeError, "ratio is 'a'; it must be", lambda: mpix_sparse.dgc_step(*steps, "a")),
        ):
            with self.assertRaisesRegex(error, sentence):
                call()
        with self.assertRaisesRegex(TypeError, "needs a hint"):
            mpix_sparse.topk_threshold(mine.astype("float16"), 0.5)


if __name__ == "__main__":
    main()
