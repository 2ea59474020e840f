# SPDX-License-Identifier: BSD-3-Clause
"""Test coordinates: types, rows, duplicates, empty ranks, and the memory of results."""

import gc
import unittest

import numpy
from common import draw, main

import mpix_sparse

RANK, SIZE = mpix_sparse.rank(), mpix_sparse.size()
COUNT = 50000
VALUE_TYPES = "float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()


def elements(rank, value_type="float32", index_type="int64", row=()):
    """Unsorted indices, some repeated, and integral values."""
    random = draw(3, rank)
    indices = random.integers(0, COUNT, 300 + 100 * rank)
    return indices.astype(index_type), random.integers(1, 9, (len(indices), *row)).astype(value_type)


def expected(**how):
    """The dense sum of all ranks' elements."""
    total = numpy.zeros((COUNT, *how.get("row", ())), how.get("value_type", "float32"))
    for rank in range(SIZE):
        numpy.add.at(total, *elements(rank, **how))
    return total


class Coo(unittest.TestCase):
    def look(self, result, total):
        self.assertEqual(result.count, COUNT)
        numpy.testing.assert_array_equal(
            result.indices, numpy.flatnonzero(total.reshape(COUNT, -1).any(axis=1))
        )
        numpy.testing.assert_array_equal(result.values, total[result.indices])
        numpy.testing.assert_array_equal(result.dense(), total)
        self.assertEqual((len(result), result.nnz), (len(result.indices), len(result.values)))

    def test_types(self):
        for index_type in ("int32", "int64", "uint32", "uint64"):
            for value_type in VALUE_TYPES:
                how = {"index_type": index_type, "value_type": value_type}
                with self.subTest(**how):
                    result = mpix_sparse.allreduce_coo(*elements(RANK, **how), COUNT)
                    self.assertEqual((result.indices.dtype, result.values.dtype), (index_type, value_type))
                    self.look(result, expected(**how))

    def test_rows(self):
        for row in ((1,), (5,), (2, 3)):
            result = mpix_sparse.allreduce_coo(*elements(RANK, row=row), COUNT)
            self.look(result, expected(row=row))

    def test_empty(self):
        nothing = numpy.empty(0, "int64"), numpy.empty(0, "float32")
        result = mpix_sparse.allreduce_coo(*nothing, COUNT)
        self.assertEqual((result.nnz, len(result.indices), len(result.values)), (0, 0, 0))
        mine = ([9], numpy.array([2], "float32")) if RANK == SIZE - 1 else ([], nothing[1])
        result = mpix_sparse.allreduce_coo(*mine, COUNT)
        self.assertEqual((list(result.indices), list(result.values)), ([9], [2]))
        self.assertEqual(mpix_sparse.allreduce_coo(*nothing, 0).nnz, 0)

    def test_lists_and_zeros(self):
        result = mpix_sparse.allreduce_coo([3, 1], [0.0, -0.0], 10, "max")
        self.assertEqual(list(result.indices), [1, 3])
        self.assertEqual(result.values.dtype, "float64")

    def test_ops(self):
        for op, outcome in (("sum", SIZE * (SIZE + 1) // 2), ("max", SIZE), ("min", 1)):
            result = mpix_sparse.allreduce_coo([4], numpy.array([RANK + 1], "int32"), 10, op)
            self.assertEqual(list(result.values), [outcome])

    def test_ops_on_bits(self):
        mine = [1 << RANK % 8, 0xF0 | RANK % 2, 0]
        for op, function in (
            ("band", numpy.bitwise_and),
            ("bor", numpy.bitwise_or),
            ("bxor", numpy.bitwise_xor),
            ("land", numpy.logical_and),
            ("lor", numpy.logical_or),
            ("lxor", numpy.logical_xor),
        ):
            ranks = numpy.array([[1 << rank % 8, 0xF0 | rank % 2, 0] for rank in range(SIZE)], "uint8")
            outcome = function.reduce(ranks, axis=0).astype("uint8" if op[0] == "b" else "bool")
            result = mpix_sparse.allreduce_coo([1, 4, 7], numpy.array(mine, "uint8"), 10, op)
            self.assertEqual(list(result.values), list(outcome))

    def test_bool(self):
        for op, outcome in (("lor", True), ("land", SIZE == 1), ("lxor", True)):
            result = mpix_sparse.allreduce_coo([4, 2], numpy.array([RANK == 0, False]), 10, op)
            self.assertEqual(result.values.dtype, "bool")
            self.assertEqual(list(result.values), [False, outcome])
        with self.assertRaisesRegex(ValueError, "op 'sum' is not for bool"):
            mpix_sparse.allreduce_coo([4], numpy.array([True]), 10, "sum")

    def test_arrays_outlive_the_result(self):
        result = mpix_sparse.allreduce_coo(*elements(RANK), COUNT)
        indices, values, total = result.indices, result.values[1:], expected()
        del result
        gc.collect()
        mpix_sparse.allreduce_coo(*elements(RANK), COUNT)
        numpy.testing.assert_array_equal(values, total[indices[1:]])
        self.assertFalse(indices.flags.writeable)

    def test_views(self):
        """Arrays over a result share its memory, which nobody can write, and count as one use of it."""
        result = mpix_sparse.allreduce_coo(*elements(RANK, row=(2, 3)), COUNT)
        indices, values, again = result.indices, result.values, result.values
        self.assertIs(type(values), numpy.ndarray)
        self.assertEqual((values.shape, values.ctypes.data), ((len(indices), 2, 3), again.ctypes.data))
        for array in indices, values, values[1:]:
            with self.assertRaises(ValueError):
                array.flags.writeable = True
        part = values[1:].reshape(-1)
        del values, again, indices
        with self.assertRaisesRegex(BufferError, "still in use"):
            result.free()
        del part, array
        result.free()
        with self.assertRaisesRegex(mpix_sparse.Error, "result is null"):
            result.nnz

    def test_reuse_of_no_result(self):
        with self.assertRaisesRegex(TypeError, "reuse must be a Result, not int"):
            mpix_sparse.allreduce_coo(*elements(RANK), COUNT, reuse=3)

    def test_reuse(self):
        first = mpix_sparse.allreduce_coo(*elements(RANK), COUNT)
        indices = first.indices
        with self.assertRaisesRegex(BufferError, "still in use"):
            mpix_sparse.allreduce_coo(*elements(RANK), COUNT, reuse=first)
        with self.assertRaises(BufferError):
            first.free()
        del indices
        second = mpix_sparse.allreduce_coo(*elements(RANK), COUNT, reuse=first)
        self.look(second, expected())
        with self.assertRaisesRegex(mpix_sparse.Error, "result is null"):
            first.indices
        second.free()
        self.assertIn("Result", repr(second))

    def test_dense_out(self):
        result = mpix_sparse.allreduce_coo(*elements(RANK), COUNT)
        out = numpy.full(COUNT, 7, "float32")
        self.assertIs(result.dense(out), out)
        numpy.testing.assert_array_equal(out, expected())
        with self.assertRaisesRegex(ValueError, f"{COUNT} are needed"):
            result.dense(numpy.empty(3, "float32"))
        with self.assertRaisesRegex(TypeError, "float64"):
            result.dense(numpy.empty(COUNT))


if __name__ == "__main__":
    main()
