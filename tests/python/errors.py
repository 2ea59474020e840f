# SPDX-License-Identifier: BSD-3-Clause
"""Test errors on one rank: all ranks get an exception soon, and the next call works."""

import unittest

import numpy
from common import main

import mpix_sparse
from mpix_sparse import _hints

RANK, SIZE = mpix_sparse.rank(), mpix_sparse.size()
INDICES, VALUES = numpy.array([5, 3, 99]), numpy.array([1, 2, 3], "float32")


class Errors(unittest.TestCase):
    def tearDown(self):
        self.assertEqual(mpix_sparse.allreduce_coo(INDICES, VALUES, 100).nnz, 3)

    def fails(self, error, sentence, call, others=""):
        """Check that `call` fails with its own error on the last rank, which is at fault, and with `others`
        on the other ranks, by default with the same sentence and the rank."""
        theirs = others or f"rank {SIZE - 1} has an error in its arguments: .*{sentence}"
        mine = (error, sentence) if RANK == SIZE - 1 else (mpix_sparse.Error, theirs)
        with self.assertRaisesRegex(*mine):
            call(RANK == SIZE - 1)

    def test_index(self):
        bad = numpy.array([5, 100, 99])
        self.fails(
            mpix_sparse.Error,
            "argument indices holds 100.*on rank",
            lambda here: mpix_sparse.allreduce_coo(bad if here else INDICES, VALUES, 100),
            "argument indices holds 100.*on rank",
        )

    def test_lengths(self):
        def call(here):
            return mpix_sparse.allreduce_coo(INDICES[:2] if here else INDICES, VALUES, 100)

        self.fails(ValueError, "there are 2 indices, and values of shape", call)

    def test_halves(self):
        """Test the halves of an allreduce, and a broadcast."""
        for function in mpix_sparse.allgather_coo, lambda *how: mpix_sparse.reduce_scatter_coo(*how, 1):
            call = lambda here, of=function: of(INDICES[:2] if here else INDICES, VALUES, 100)  # noqa: E731
            self.fails(ValueError, "there are 2 indices, and values of shape", call)
        if SIZE > 1:
            call = lambda here: mpix_sparse.reduce_scatter(numpy.ones(SIZE + here))  # noqa: E731
            self.fails(
                ValueError, f"whose first dimension {SIZE} ranks cannot share", call, "an error in its"
            )

    def test_lengths_in_flight(self):
        def call(here):
            handle = mpix_sparse.iallreduce_coo(INDICES[:2] if here else INDICES, VALUES, 100)
            return handle.wait()

        self.fails(
            ValueError,
            "2 indices, and values of shape",
            call,
            "nnz is -1, .*on rank .*; the exception of that",
        )

    def test_op(self):
        """Test an op that the values' type does not have: the error names both."""
        truths = VALUES > 1

        def call(here):
            return mpix_sparse.allreduce_coo(INDICES, truths, 100, "sum" if here else "lor")

        def start(here):
            return mpix_sparse.iallreduce_coo(INDICES, truths, 100, "sum" if here else "lor").wait()

        def plan(here):
            return mpix_sparse.CooPlan(100, "bool", "sum" if here else "lor")

        self.fails(ValueError, "op 'sum' is not for bool; land, lor, lxor are", call)
        self.fails(ValueError, "op 'sum' is not for bool; land, lor, lxor are", start, "nnz is -1")
        self.fails(ValueError, "op 'sum' is not for bool; land, lor, lxor are", plan, "argument op differs")
        with self.assertRaisesRegex(ValueError, "op 'bor' is not for float32; sum, max, min, prod are"):
            mpix_sparse.allreduce_coo(INDICES, VALUES, 100, "bor")

    def test_mismatch(self):
        if SIZE == 1:
            self.skipTest("takes two ranks")
        with self.assertRaisesRegex(mpix_sparse.Error, "count") as caught:
            mpix_sparse.allreduce_coo(INDICES, VALUES, 100 + (RANK == 0))
        self.assertNotEqual(caught.exception.code, 0)

    def test_index_type(self):
        with self.assertRaisesRegex(mpix_sparse.Error, "indextype"):
            mpix_sparse.allreduce_coo(INDICES.astype("float32"), VALUES, 100)

    def test_hints(self):
        with self.assertRaisesRegex(mpix_sparse.Error, "no_such_scheme"):
            mpix_sparse.set_info(scheme="no_such_scheme")
        with self.assertRaisesRegex(mpix_sparse.Error, f"names 'none', which .* .on rank {SIZE - 1}"):
            mpix_sparse.set_info(scheme="none" if RANK == SIZE - 1 else "auto")
        with self.assertRaisesRegex(mpix_sparse.Error, f"segment is 'x'; .* .on rank {SIZE - 1}"):
            mpix_sparse.Plan(VALUES, hints={"segment": "x" if RANK == SIZE - 1 else 1000})
        mpix_sparse.set_info(scheme="balanced")
        self.assertEqual(mpix_sparse.get_info()["scheme"], "balanced")
        mpix_sparse.allreduce_coo(INDICES, VALUES, 100)
        self.assertEqual(mpix_sparse.report().scheme, "balanced")
        mpix_sparse.set_info(scheme="auto")

    def test_unknown_hints(self):
        """Test misspelt names of hints: the error names the nearest, and no hint changes."""
        before = mpix_sparse.get_info()
        self.fails(
            ValueError,
            "no hint 'sheme'; did you mean 'scheme'?",
            lambda here: mpix_sparse.set_info(**{"sheme" if here else "scheme": "balanced", "fuse": 0}),
        )
        self.fails(
            ValueError,
            "no hint 'mpix_sparse_elements'; did you mean 'element'?",
            lambda here: mpix_sparse.Plan(VALUES, hints={"mpix_sparse_elements": "fp16"} if here else {}),
        )
        self.fails(
            ValueError,
            "no hint 'zzz'; the hints are alpha,",
            lambda here: mpix_sparse.CooPlan(9, "float32", hints={"zzz": 1} if here else {}),
        )
        self.assertEqual(mpix_sparse.get_info(), before)

    def test_names_of_hints(self):
        """Test that the package knows the settings of the C library, and takes them with their prefix."""
        mpix_sparse.set_info(mpix_sparse_explain=False)
        self.assertEqual(_hints.NAMES, {*mpix_sparse.get_info(), "stream"})

    def test_halves_need_a_hint(self):
        halves = VALUES.astype("float16")
        with self.assertRaisesRegex(TypeError, "element='fp16'"):
            mpix_sparse.allreduce_coo(INDICES, halves, 100)
        mpix_sparse.set_info(element="fp16")
        result = mpix_sparse.allreduce_coo(INDICES, halves, 100)
        self.assertEqual((result.values.dtype, list(result.values)), ("float16", [2 * SIZE, SIZE, 3 * SIZE]))
        dense = numpy.ones(30000, "float16")
        self.assertTrue((mpix_sparse.allreduce(dense) == SIZE).all())
        mpix_sparse.set_info(element="integer")


if __name__ == "__main__":
    main()
