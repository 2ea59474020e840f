# SPDX-License-Identifier: BSD-3-Clause
"""Test dense arrays: every type and op against NumPy, in place and not, with rows, and matrices of
scipy.sparse."""

import functools
import math
import threading
import unittest

import numpy
from common import main, need_here, whole

import mpix_sparse
from mpix_sparse import _dense

RANK, SIZE = mpix_sparse.rank(), mpix_sparse.size()
COUNT = 20000
WIDEST = (1 << 30) - 1  # columns of two rows that are numbered by 32 bits
FUNCTIONS = {"sum": numpy.add, "prod": numpy.multiply, "max": numpy.maximum, "min": numpy.minimum}
BITS = {"band": numpy.bitwise_and, "bor": numpy.bitwise_or, "bxor": numpy.bitwise_xor}


def expected(function, make):
    """The reduction of all ranks' arrays."""
    return functools.reduce(function, [make(rank) for rank in range(SIZE)])


class Dense(unittest.TestCase):
    def test_types_and_ops(self):
        for dtype in (
            "float32",
            "float64",
            "int32",
            "int64",
            "uint32",
            "uint64",
            "int8",
            "uint16",
            "complex64",
        ):
            for op in ("sum", "prod") if dtype.startswith("complex") else FUNCTIONS:
                make = functools.partial(whole, COUNT, 0.01, dtype)
                with self.subTest(dtype=dtype, op=op):
                    out = mpix_sparse.allreduce(make(RANK), op)
                    self.assertEqual(out.dtype, dtype)
                    numpy.testing.assert_array_equal(out, expected(FUNCTIONS[op], make))

    def test_bits_and_logicals(self):
        for op, function in BITS.items():
            make = functools.partial(whole, COUNT, 0.5, "uint64")
            numpy.testing.assert_array_equal(mpix_sparse.allreduce(make(RANK), op), expected(function, make))
        flags = numpy.arange(COUNT) % SIZE == RANK
        self.assertTrue(mpix_sparse.allreduce(flags, "lor").all())
        self.assertEqual(mpix_sparse.allreduce(flags, "land").any(), SIZE == 1)

    def test_sizes_and_shapes(self):
        for shape in ((), (0,), (1,), (7,), (3, 5, 7), (100003,)):
            mine = numpy.full(shape, RANK + 1, "float32")
            out = mpix_sparse.allreduce(mine)
            self.assertEqual(out.shape, shape)
            self.assertTrue((out == SIZE * (SIZE + 1) / 2).all())
            self.assertTrue((mine == RANK + 1).all())

    def test_in_place_and_out(self):
        make = functools.partial(whole, COUNT, 0.01, "float32")
        mine, out = make(RANK), numpy.empty(COUNT, "float32")
        self.assertIs(mpix_sparse.allreduce(mine, out=out), out)
        self.assertIs(mpix_sparse.allreduce(mine, out=mine), mine)
        numpy.testing.assert_array_equal(out, expected(numpy.add, make))
        numpy.testing.assert_array_equal(mine, out)

    def test_direct(self):
        """Contiguous arrays of NumPy take a shorter way than others, with the same results."""
        for dtype in "float32", "bool", "int8", "uint64", "float64", "complex128":
            op = "lor" if dtype == "bool" else "sum"
            mine = whole(60, 0.5, dtype, RANK).reshape(6, 10)
            locked = mine.copy()
            locked.flags.writeable = False
            others = numpy.asfortranarray(mine), locked, mine.view(numpy.matrix), memoryview(mine)
            ways = [type(_dense._arguments(each, op, None, None, 1)) for each in (mine, *others)]
            self.assertEqual(ways, [_dense.DirectArguments] + [_dense.DenseArguments] * len(others))
            wanted = expected(numpy.add, lambda rank: whole(60, 0.5, dtype, rank).reshape(6, 10))
            for each in mine, *others:
                out = numpy.empty(60, dtype)
                mpix_sparse.allreduce(each, op, out=out)
                numpy.testing.assert_array_equal(out.reshape(6, 10), wanted)
                numpy.testing.assert_array_equal(mpix_sparse.allreduce(each, op), wanted)
                numpy.testing.assert_array_equal(mpix_sparse.iallreduce(each, op).wait(), wanted)
            halves = mine.view("uint8").reshape(2, -1)
            self.assertIs(mpix_sparse.allreduce(halves[0], "max", out=halves[1]).base, halves.base)
            self.assertIs(mpix_sparse.allreduce(mine, op, out=mine), mine)

    def test_rows(self):
        table = numpy.zeros((5000, 16), "float32")
        table[RANK::97] = RANK + 1
        total = numpy.zeros_like(table)
        for rank in range(SIZE):
            total[rank::97] += rank + 1
        numpy.testing.assert_array_equal(mpix_sparse.allreduce(table, row=16), total)
        self.assertEqual(mpix_sparse.report().row, 16)

    def test_scipy(self):
        try:
            import scipy.sparse
        except ImportError:
            self.skipTest("no scipy (Debian: python3-scipy)")
        for shape in ((1, 30000), (30000, 1), (300, 70)):
            dense = [whole(shape[0] * shape[1], 0.01, "float64", rank).reshape(shape) for rank in range(SIZE)]
            for kind in (scipy.sparse.csr_matrix, scipy.sparse.csc_matrix, scipy.sparse.coo_matrix):
                out = mpix_sparse.allreduce(kind(dense[RANK]))
                self.assertIs(type(out), kind)
                numpy.testing.assert_array_equal(out.toarray(), sum(dense))

    def test_scipy_rows(self):
        """CSR matrices that are empty, large, or not sorted, with indices of 32 bits, as they had."""
        sparse = need_here("scipy.sparse", "python3-scipy")
        for kind in {sparse.csr_matrix, getattr(sparse, "csr_array", sparse.csr_matrix)}:
            for shape in (0, 4), (4, 0), (6, 5), (70000, 70000):
                height, width = min(shape[0], 6), min(shape[1], 5)
                parts = [whole(height * width, 0.5, "float32", rank) for rank in range(SIZE)]
                parts = [sparse.coo_matrix(part.reshape(height, width)) for part in parts]
                parts = [kind((part.data, (part.row, part.col)), shape=shape) for part in parts]
                found = mpix_sparse.allreduce(parts[RANK])
                self.assertEqual((type(found), found.shape, found.dtype), (kind, shape, "float32"))
                self.assertEqual((found.indices.dtype, found.indptr.dtype), ("int32", "int32"))
                self.assertEqual((found != sum(parts[1:], parts[0])).nnz, 0)
                found.check_format()
                self.assertTrue(found.has_canonical_format)
            wide = kind((numpy.ones(2), ([0, 1], [RANK, WIDEST - 1])), shape=(2, WIDEST))
            found = mpix_sparse.allreduce(wide)
            self.assertEqual(found.indices.tolist(), [*range(SIZE), WIDEST - 1])
            self.assertEqual((found.indptr.tolist(), found[1, WIDEST - 1]), ([0, SIZE, SIZE + 1], SIZE))
            unsorted = kind((numpy.array([1.0, 2, 4, 8]), [4, 1, 4, 0], [0, 3, 4]), shape=(2, 5))
            wanted = numpy.array([[0, 2, 0, 0, 5], [8, 0, 0, 0, 0]]) * SIZE
            numpy.testing.assert_array_equal(mpix_sparse.allreduce(unsorted).toarray(), wanted)

    def test_scipy_class(self):
        """The result is of the matrix's class, made by its constructor if it has attributes of its own."""
        sparse = need_here("scipy.sparse", "python3-scipy")

        class Counted(sparse.csr_matrix):
            def __init__(self, *given, **named):
                super().__init__(*given, **named)
                self.made = True

        mine = Counted(numpy.eye(3))
        found = mpix_sparse.allreduce(mine)
        self.assertIs(type(found), Counted)
        self.assertTrue(found.made)
        numpy.testing.assert_array_equal(found.toarray(), SIZE * numpy.eye(3))
        numpy.testing.assert_array_equal(mine.toarray(), numpy.eye(3))

    def test_scipy_shapes(self):
        """Matrices of as many elements, and other shapes."""
        sparse, odd = need_here("scipy.sparse", "python3-scipy"), RANK == SIZE - 1
        if SIZE == 1:
            self.skipTest("one rank has no other")
        for kind in sparse.csr_matrix, sparse.coo_matrix:
            text = "the number of rows differs between ranks: 4 .*on rank .* and 6 .*on rank"
            with self.assertRaisesRegex(mpix_sparse.Error, text):
                mpix_sparse.allreduce(kind(numpy.ones((4, 6) if odd else (6, 4))))
            self.assertEqual(mpix_sparse.allreduce(kind(numpy.ones((4, 6)))).sum(), 24 * SIZE)

    def test_scipy_bool(self):
        sparse = need_here("scipy.sparse", "python3-scipy")
        mine = sparse.csr_matrix(numpy.arange(12).reshape(3, 4) % 5 == RANK)
        union = sum(numpy.arange(12).reshape(3, 4) % 5 == rank for rank in range(SIZE)) > 0
        found = mpix_sparse.allreduce(mine, "lor")
        self.assertEqual((found.dtype, found.format), (bool, "csr"))
        numpy.testing.assert_array_equal(found.toarray(), union)
        with self.assertRaisesRegex(ValueError, "op 'sum' is not for bool; land, lor, lxor are"):
            mpix_sparse.allreduce(mine)

    def test_scipy_refused(self):
        matrix = need_here("scipy.sparse", "python3-scipy").eye(3, format="csr")
        calls = mpix_sparse.iallreduce, mpix_sparse.Plan, mpix_sparse.profile
        for call in (*calls, lambda given: mpix_sparse.allreduce_coo(given, [1.0], 9)):
            with self.assertRaisesRegex(TypeError, "csr_matrix is a sparse matrix, which only allreduce"):
                call(matrix)

    def test_scipy_malformed(self):
        """A matrix that is changed on the last rank after it was made: an exception on all ranks."""
        sparse, odd = need_here("scipy.sparse", "python3-scipy"), RANK == SIZE - 1

        def change(name, place, value):
            def changed(matrix):
                attribute = numpy.array(getattr(matrix, name))
                if place is None:
                    attribute = value(attribute)
                else:
                    attribute[place] = value
                setattr(matrix, name, attribute)

            return changed

        wrong = [
            ("csr", "index 7 in a dimension of 3", change("indices", 0, 7)),
            ("csr", "index -1 in a dimension of 3", change("indices", 1, -1)),
            ("csr", "indices of the matrix are of type float", change("indices", None, numpy.float64)),
            ("csr", "indptr of the matrix descends", change("indptr", 1, -5)),
            ("csr", "indptr of the matrix does not fit", change("indptr", -1, 9)),
            ("csr", "indptr of the matrix does not fit", change("indptr", None, lambda a: a[:2])),
            ("csr", "indptr of the matrix does not fit", change("data", None, lambda a: a[:2])),
            ("coo", "index 5 in a dimension of 3", change("col", 0, 5)),
            ("coo", "index -1 in a dimension of 3", change("col", 2, -1)),
        ]
        for kind, text, spoil in wrong:
            calls = [mpix_sparse.allreduce]
            calls += [mpix_sparse.reduce_scatter] if kind == "coo" else []
            for call in calls:
                matrix = sparse.eye(3 * SIZE, 3, format=kind)
                if odd:
                    spoil(matrix)
                with self.subTest(text=text, call=call.__name__), self.assertRaisesRegex(Exception, text):
                    call(matrix)
                self.assertEqual(mpix_sparse.allreduce(numpy.ones(1))[0], SIZE)

    def test_scipy_room(self):
        """Indices and data may be longer than a matrix needs."""
        matrix = need_here("scipy.sparse", "python3-scipy").eye(3, format="csr")
        matrix.indices, matrix.data = numpy.append(matrix.indices, 9), numpy.append(matrix.data, 5)
        numpy.testing.assert_array_equal(mpix_sparse.allreduce(matrix).toarray(), SIZE * numpy.eye(3))

    def test_scipy_dimensions(self):
        sparse = need_here("scipy.sparse", "python3-scipy")
        for shape in (12,), (2, 3, 4), (3, 4), (0, 4), (0,):
            dense = [whole(math.prod(shape), 0.5, "float32", rank).reshape(shape) for rank in range(SIZE)]
            try:
                mine = sparse.coo_array(dense[RANK])
                mine.toarray()
            except (AttributeError, TypeError, ValueError):
                continue  # this version has matrices only
            if mine.shape == shape:
                found = mpix_sparse.allreduce(mine)
                self.assertEqual((found.shape, type(found)), (shape, type(mine)))
                numpy.testing.assert_array_equal(found.toarray(), sum(dense))

    def test_wrong(self):
        array = numpy.zeros(10, "float32")
        read_only = numpy.zeros(10, "float32")
        read_only.flags.writeable = False
        wrong = [
            (TypeError, "count is 2.5; it must be", lambda: mpix_sparse.allreduce_coo([1], [1.0], 2.5)),
            (ValueError, "must fit 64 bits", lambda: mpix_sparse.allreduce_coo([1], [1.0], 2**64 + 10)),
            (ValueError, "must fit 64 bits", lambda: mpix_sparse.CooPlan(2**64 + 10, "float32")),
            (ValueError, "row is 4294967297;", lambda: mpix_sparse.CooPlan(9, "float32", row=2**32 + 1)),
            (TypeError, "row is 'a'; it must be", lambda: mpix_sparse.allreduce(array, row="a")),
            (TypeError, "has a mask", lambda: mpix_sparse.allreduce(numpy.ma.masked_equal(array, 0))),
            (ValueError, "op is 'mean'", lambda: mpix_sparse.allreduce(array, "mean")),
            (TypeError, "'band' is not for float32", lambda: mpix_sparse.allreduce(array, "band")),
            (ValueError, "read-only", lambda: mpix_sparse.allreduce(array, out=read_only)),
            (ValueError, "out has 9", lambda: mpix_sparse.allreduce(array, out=numpy.zeros(9, "float32"))),
            (ValueError, "rows of 3", lambda: mpix_sparse.allreduce(array, row=3)),
            (TypeError, "out holds float64", lambda: mpix_sparse.allreduce(array, out=numpy.zeros(10))),
            (TypeError, "not a list", lambda: mpix_sparse.allreduce(array, out=[0] * 10)),
            (TypeError, "datetime64", lambda: mpix_sparse.allreduce(array.astype("datetime64[s]"))),
            (TypeError, "byte order", lambda: mpix_sparse.allreduce(array.astype(">f4"))),
            (TypeError, "no array", lambda: mpix_sparse.allreduce(object())),
            (TypeError, "type void64 cannot be", lambda: mpix_sparse.allreduce(numpy.zeros(3, "i4,f4"))),
            (TypeError, "'max' is not for bool", lambda: mpix_sparse.allreduce(array.astype(bool), "max")),
            (TypeError, "'min' is not for complex64", lambda: mpix_sparse.allreduce(array * 1j, "min")),
            (ValueError, "overlap", lambda: mpix_sparse.allreduce(array[:4], out=array[2:6])),
            (ValueError, "overlap", lambda: mpix_sparse.allreduce(array[2:6], out=array[:4])),
            (ValueError, "overlap", lambda: mpix_sparse.Plan(array[:4], out=array[3:7])),
            (TypeError, "comm must be", lambda: mpix_sparse.allreduce(array, comm=3)),
            (TypeError, "a type is needed, not None", lambda: mpix_sparse.CooPlan(9, None)),
            (TypeError, "complex numbers are reduced", lambda: mpix_sparse.allreduce_coo([1], [1j], 9)),
            (TypeError, "indices are of type bool", lambda: mpix_sparse.allreduce_coo([True], [1.0], 9)),
        ]
        neighbours = numpy.ones(8, "float32")
        mpix_sparse.allreduce(neighbours[:4], out=neighbours[4:])
        self.assertEqual(list(neighbours), 4 * [1] + 4 * [SIZE])
        for error, sentence, call in wrong:
            with self.subTest(sentence), self.assertRaisesRegex(error, sentence):
                call()

    def test_threads(self):
        """Calls of several threads are made one after the other, the first ones too."""
        self.right = []
        for count in 50, 20000:
            threads = [threading.Thread(target=self.call, args=(count,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(self.right.count(count), 4)

    def call(self, count):
        wanted = numpy.full(count, SIZE)
        found = [mpix_sparse.allreduce(numpy.ones(count)) for _ in range(50)]
        found += [mpix_sparse.iallreduce(numpy.ones(count)).wait() for _ in range(50)]
        if all((one == wanted).all() for one in found):
            self.right.append(count)


if __name__ == "__main__":
    main()
