# SPDX-License-Identifier: BSD-3-Clause
"""Test broadcasts of a new version of an array, and of coordinates."""

import unittest

import numpy
from common import draw, main

import mpix_sparse


class Bcast(unittest.TestCase):
    def versions(self, dtype, count=5000):
        """Make the old and the new version: equal on all ranks."""
        old = draw(1, 0).normal(size=count).astype(dtype)
        new = old.copy()
        new[draw(2, 0).integers(0, count, count // 50)] += 1
        return old, new

    def test_in_place(self):
        for dtype in ("float16", "float32", "float64", "int8"):
            old, new = self.versions(dtype)
            if mpix_sparse.rank() == 0:
                self.assertIs(mpix_sparse.bcast_delta(old, new), new)
            else:
                self.assertIs(mpix_sparse.bcast_delta(old), old)
                self.assertTrue(numpy.array_equal(old.view("uint8"), new.view("uint8")))

    def test_out_of_place(self):
        root = mpix_sparse.size() - 1
        old, new = self.versions("float32")
        got = new.copy() if mpix_sparse.rank() == root else numpy.zeros_like(new)
        mpix_sparse.bcast_delta(old, got, root=root)
        self.assertTrue(numpy.array_equal(got, new))

    def test_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("no PyTorch")
        old = torch.arange(1000, dtype=torch.float32)
        new = old.clone()
        new[7] = -1
        if mpix_sparse.rank() == 0:
            mpix_sparse.bcast_delta(old, new)
        else:
            mpix_sparse.bcast_delta(old)
            self.assertTrue(torch.equal(old, new))

    def test_stale(self):
        old, new = self.versions("int32", 100)
        new[5] = old[5] + 1
        last = mpix_sparse.size() - 1
        if mpix_sparse.rank() == 0:
            mpix_sparse.bcast_delta(old, new)
        elif mpix_sparse.rank() == last:
            old[5] += 1
            with self.assertRaisesRegex(mpix_sparse.Error, "argument old is not"):
                mpix_sparse.bcast_delta(old)
        else:
            mpix_sparse.bcast_delta(old)

    def test_refused(self):
        with self.assertRaises(TypeError):
            mpix_sparse.bcast_delta(numpy.zeros(3), numpy.zeros(4))
        is_root = mpix_sparse.rank() == 0
        with self.assertRaisesRegex(ValueError if is_root else mpix_sparse.Error, "rank 0, has no new"):
            mpix_sparse.bcast_delta(numpy.zeros(3))
        with self.assertRaisesRegex(mpix_sparse.Error, "root is"):
            mpix_sparse.bcast_delta(numpy.zeros(3), root=mpix_sparse.size())

    def test_coo(self):
        indices, values = numpy.array([7, 3, 7]), numpy.array([[1.0, 2], [3, 4], [5, 6]])
        if mpix_sparse.rank() > 0:
            indices, values = indices[:0], values[:0]
        result = mpix_sparse.bcast_coo(indices, values, 10)
        self.assertEqual(list(result.indices), [3, 7])
        self.assertTrue(numpy.array_equal(result.values, [[3, 4], [5, 6]]))


if __name__ == "__main__":
    main()
