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

    def test_unknown_op(self):
        """Test an op, arrays and a count that no call takes: an exception on all ranks, of every function."""
        m, op, like = mpix_sparse, ("sum", "summ"), VALUES.astype
        calls = {
            "op is 'summ'; it must be one of": [
                lambda here: m.allreduce(VALUES, op[here]),
                lambda here: m.allreduce_coo(INDICES, VALUES, 100, op[here]),
                lambda here: m.reduce_scatter(numpy.ones(SIZE), op[here]),
                lambda here: m.reduce_scatter_coo(INDICES, VALUES, 100, 1, op[here]),
                lambda here: m.Plan(VALUES, op[here]),
                lambda here: m.CooPlan(100, "float32", op[here]),
            ],
            "out holds float64 and the array float32": [
                lambda here: m.allreduce(VALUES, out=like("float64" if here else "float32")),
                lambda here: m.Plan(VALUES, out=like("float64" if here else "float32")),
            ],
            "out has 4 numbers and the array 3": [
                lambda here: m.allreduce(VALUES, out=numpy.ones(3 + here, "float32")),
            ],
            "count": [
                lambda here: m.allreduce_coo(INDICES, VALUES, "x" if here else 100),
                lambda here: m.allgather_coo([RANK], VALUES[:1], "x" if here else 100),
                lambda here: m.bcast_coo(INDICES, VALUES, "x" if here else 100),
            ],
            "old": [lambda here: m.bcast_delta(VALUES.copy(), numpy.zeros(3 + here, "float32"))],
        }
        for text, functions in calls.items():
            for function in functions:
                self.fails((TypeError, ValueError), text, function)

    def test_unknown_op_in_flight(self):
        for function, more in (
            (mpix_sparse.iallreduce, (VALUES,)),
            (mpix_sparse.iallreduce_coo, (INDICES, VALUES, 100)),
            (mpix_sparse.ireduce_scatter, (numpy.ones(SIZE),)),
            (mpix_sparse.ireduce_scatter_coo, (INDICES, VALUES, 100, 1)),
        ):

            def call(here, of=function, how=more):
                return of(*how, "summ" if here else "sum").wait()

            self.fails(ValueError, "op is 'summ'; it must be", call, "nnz is -1, .*; the exception of that")

    def test_names_of_arguments(self):
        """Test a misspelt, a missing or an extra argument, of every function."""
        m, ones, coo = mpix_sparse, numpy.ones(SIZE), (INDICES, VALUES, 100)
        plan, coo_plan = m.Plan(ones), m.CooPlan(100, "float32")
        calls = (
            (m.allreduce, ones),
            (m.allreduce_coo, *coo),
            (m.reduce_scatter, ones),
            (m.reduce_scatter_coo, *coo, 1),
            (m.allgather_coo, [RANK], VALUES[:1], 100),
            (m.bcast_coo, *coo),
            (m.profile, ones),
            (m.barrier,),
            (m.Plan, ones),
            (m.CooPlan, 100, "float32"),
            (m.ReduceScatterCooPlan, 100, 1, "float32"),
            (m.AllgatherCooPlan, 100, "float32"),
        )
        for function, *given in calls:
            call = lambda here: function(*given, **{"opp": 1} if here else {})  # noqa: E731, B023
            self.fails(TypeError, "got an unexpected keyword argument 'opp'", call)
            if len(given) > 1:
                call = lambda here: function(*given[:1] if here else given)  # noqa: E731, B023
                self.fails(TypeError, "missing .* required positional argument", call)
        call = lambda here: m.bcast_delta(ones.copy(), ones, **{"opp": 1} if here else {})  # noqa: E731
        self.fails(TypeError, "got an unexpected keyword argument 'opp'", call)
        self.fails(TypeError, "takes from 0 to 1 positional", lambda here: m.set_info(*[None] * 2 * here))
        starts = (
            (m.iallreduce, ones),
            (m.iallreduce_coo, *coo),
            (m.ireduce_scatter, ones),
            (m.ireduce_scatter_coo, *coo, 1),
            (m.iallgather_coo, [RANK], VALUES[:1], 100),
            (plan.start,),
            (coo_plan.start, INDICES, VALUES),
        )
        for function, *given in starts:
            call = lambda here: function(*given, **{"opp": 1} if here else {}).wait()  # noqa: E731, B023
            self.fails(TypeError, "keyword argument 'opp'", call, "nnz is -1, .*; the exception of that")

    def test_other_arguments(self):
        """Test arguments that functions convert before the call."""
        m = mpix_sparse
        for call in (
            lambda here: m.profile("x" if here else VALUES),
            lambda here: m.ReduceScatterCooPlan(100, "x" if here else 1, "float32"),
            lambda here: m.AllgatherCooPlan(100, "floot" if here else "float32"),
            lambda here: m.Plan(VALUES, hints=5 if here else {}),
            lambda here: m.CooPlan(9, "float32", hints=5 if here else {}),
        ):
            self.fails((TypeError, ValueError), "", call)

    def test_start_of_plan(self):
        """Test a start with values that no plan takes; then the plan works. Also a plan that is steady."""
        plan = mpix_sparse.CooPlan(100, "float32")
        for before in 0, 30:
            for _ in range(before):
                plan.start(INDICES, VALUES).wait()
            call = lambda here: plan.start(INDICES, ["a"] if here else VALUES).wait()  # noqa: E731
            others = "nnz is -1, .*; the exception of|another rank could not carry out"
            self.fails((TypeError, ValueError), "", call, others)
            self.assertEqual(plan.start(INDICES, VALUES).wait().nnz, 3)

    def test_mismatch(self):
        if SIZE == 1:
            self.skipTest("takes two ranks")
        with self.assertRaisesRegex(mpix_sparse.Error, "count") as caught:
            mpix_sparse.allreduce_coo(INDICES, VALUES, 100 + (RANK == 0))
        self.assertNotEqual(caught.exception.code, 0)

    def test_index_type(self):
        with self.assertRaisesRegex(mpix_sparse.Error, "type of argument indices is float"):
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
