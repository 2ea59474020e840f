# SPDX-License-Identifier: BSD-3-Clause
"""Test plans: repeated starts, fused starts, new elements for each start, 16-bit floats, and lifetimes."""

import gc
import itertools
import unittest
import warnings

import numpy
from common import draw, main, whole

import mpix_sparse

RANK, SIZE = mpix_sparse.rank(), mpix_sparse.size()
COUNT = 30000


class Plans(unittest.TestCase):
    def test_dense(self):
        source, out = numpy.empty(COUNT, "float64"), numpy.empty(COUNT)
        with mpix_sparse.Plan(source, out=out, hints={"scheme": "balanced"}) as plan:
            for step in range(20):
                source[:] = whole(COUNT, 0.01, "float64", RANK, step)
                self.assertIs(plan.start().wait(), out)
                numpy.testing.assert_array_equal(
                    out, sum(whole(COUNT, 0.01, "float64", rank, step) for rank in range(SIZE))
                )
            self.assertEqual(mpix_sparse.report().scheme, "balanced")
        with self.assertRaisesRegex(mpix_sparse.Error, "start of a plan: the plan has been freed"):
            plan.start()

    def test_dropped_handle(self):
        """The next start, or free(), waits for a call that nobody else can wait for."""
        source = whole(COUNT, 0.01, "float64", RANK)
        plan, coo = mpix_sparse.Plan(source), mpix_sparse.CooPlan(1000, "float32")
        one = numpy.ones(1, "float32")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            for _ in range(3):
                plan.start()
                coo.start([RANK], one)
                mpix_sparse.plan_start_all([plan])
            total = sum(whole(COUNT, 0.01, "float64", rank) for rank in range(SIZE))
            numpy.testing.assert_array_equal(plan.start().wait(), total)
            self.assertEqual(coo.start([RANK], one).wait().nnz, SIZE)
            last = plan.start()
            with self.assertRaisesRegex(mpix_sparse.Error, "in use"):
                plan.start()
            del last  # still the last call, since the one after it has not started
            plan.start()
            plan.free()

    def test_start_all(self):
        layers = [numpy.empty(1000 + 37 * i, "float32") for i in range(12)]
        plans = [mpix_sparse.Plan(layer, out=layer) for layer in layers]
        for step in range(10):
            for i, layer in enumerate(layers):
                layer[:] = whole(len(layer), 0.05, "float32", RANK, 100 * step + i)
            for i, out in enumerate(mpix_sparse.wait_all(mpix_sparse.plan_start_all(plans)[::-1])[::-1]):
                self.assertIs(out, layers[i])
                mine = [whole(len(out), 0.05, "float32", rank, 100 * step + i) for rank in range(SIZE)]
                numpy.testing.assert_array_equal(out, sum(mine))
        with self.assertRaises(mpix_sparse.Error):
            mpix_sparse.plan_start_all([plans[0], plans[0]])

    def test_wrong_list(self):
        """A list that is wrong on one rank is an exception on all, and the next calls succeed."""
        source = numpy.ones(3, "float32")
        for hints in {}, {"fuse": 0}:
            plans = [mpix_sparse.Plan(source, hints=hints) for _ in range(4)]
            freed, coo = mpix_sparse.Plan(source, hints=hints), mpix_sparse.CooPlan(9, "float32")
            freed.free()
            wrong = (freed, "freed"), (coo, "dense arrays"), (None, "dense arrays"), (plans[1], "in use")
            for (bad, text), bad_rank in itertools.product(wrong, range(SIZE)):
                if bad_rank == RANK:
                    with self.assertRaisesRegex((mpix_sparse.Error, TypeError), text):
                        mpix_sparse.plan_start_all([*plans[:3], bad])
                else:
                    for handle in mpix_sparse.plan_start_all(plans):
                        with self.assertRaisesRegex(mpix_sparse.Error, "that rank names|in use"):
                            handle.wait()
                for out in mpix_sparse.wait_all(mpix_sparse.plan_start_all(plans)):
                    self.assertEqual(out.tolist(), 3 * [SIZE])

    def test_unchecked(self):
        """Where starts are not checked, an error is an exception on its rank, which makes no call."""
        source = numpy.ones(3, "float32")
        plan = mpix_sparse.Plan(source, hints={"check_starts": "off"})
        freed = mpix_sparse.Plan(source, hints={"check_starts": False})
        freed.free()
        if RANK == 0:
            for start in freed.start, lambda: mpix_sparse.plan_start_all([plan, freed]):
                with self.assertRaises(mpix_sparse.Error):
                    start()
        self.assertEqual(plan.start().wait().tolist(), 3 * [SIZE])
        self.assertEqual(mpix_sparse.allreduce(source).tolist(), 3 * [SIZE])

    def test_coo(self):
        plan = mpix_sparse.CooPlan(COUNT, "float32", row=4)
        result = None
        for step in range(20):
            total = numpy.zeros((COUNT, 4), "float32")
            for rank in range(SIZE):
                random = draw(step, rank)
                rows = random.integers(0, COUNT, 50 * (rank + step % 3))
                values = random.integers(1, 9, (len(rows), 4)).astype("float32")
                numpy.add.at(total, rows, values)
                if rank == RANK:
                    handle = plan.start(rows, values, reuse=result)
            result = handle.wait()
            numpy.testing.assert_array_equal(result.dense(), total)

    def test_coo_wrong(self):
        plan = mpix_sparse.CooPlan(COUNT, numpy.float32, index_dtype="int32")
        good = numpy.array([1], "int32"), numpy.array([2], "float32")
        wrong = [("indices are int64", [1], good[1]), ("1 x float64", good[0], [2.0])]
        for sentence, indices, values in wrong:
            with self.assertRaisesRegex(ValueError, sentence):
                plan.start(indices, values).wait()
        self.assertEqual(list(plan.start(*good).wait().values), [2 * SIZE])

    def test_coo_halves(self):
        """A reduce_scatter and an allgather of its elements give the sum."""
        scatter = mpix_sparse.ReduceScatterCooPlan(COUNT, 7, "float32", "max", row=2)
        gather = mpix_sparse.AllgatherCooPlan(COUNT, "float32", row=2)
        mine = total = None
        for step in range(20):
            parts = [whole(2 * COUNT, 0.01, "float32", rank, step).reshape(COUNT, 2) for rank in range(SIZE)]
            rows = [numpy.flatnonzero(part.any(1)) for part in parts]
            mine = scatter.start(rows[RANK], parts[RANK][rows[RANK]], reuse=mine).wait()
            self.assertTrue((mine.indices // 7 % SIZE == RANK).all())
            total = gather.start(mine.indices, mine.values, reuse=total).wait()
            numpy.testing.assert_array_equal(total.indices, numpy.unique(numpy.concatenate(rows)))
            numpy.testing.assert_array_equal(total.dense(), numpy.max(parts, 0))
        with self.assertRaisesRegex(mpix_sparse.Error, "block is 0"):
            mpix_sparse.ReduceScatterCooPlan(COUNT, 0, "float32")
        with self.assertRaisesRegex(ValueError, "op 'sum' is not for bool"):
            mpix_sparse.ReduceScatterCooPlan(COUNT, 1, "bool")
        self.assertEqual(len(mpix_sparse.AllgatherCooPlan(9, "bool").start([RANK], [True]).wait()), SIZE)

    def test_only_dense_ones_together(self):
        plan = mpix_sparse.Plan(numpy.ones(3, "float32"))
        with self.assertRaisesRegex(TypeError, "not CooPlan"):
            mpix_sparse.plan_start_all([plan, mpix_sparse.CooPlan(10, "float32")])
        self.assertEqual(mpix_sparse.plan_start_all([plan])[0].wait()[0], SIZE)

    def test_halves(self):
        for name, one in (("float16", 0x3C00), ("bfloat16", 0x3F80)):
            plan = mpix_sparse.CooPlan(10, name)
            values = numpy.array([1], "float16") if name == "float16" else Bfloat(one)
            result = plan.start([3], values).wait()
            power = {1: 0, 2: 1, 4: 2}.get(SIZE)
            if power is not None:
                bits = one + (power << (10 if name == "float16" else 7))
                self.assertEqual(list(numpy.asarray(result.values).view("uint16")), [bits])

    def test_dropped_in_flight(self):
        source = whole(COUNT, 0.01, "float32", RANK)
        handle = mpix_sparse.Plan(source).start()
        gc.collect()
        total = sum(whole(COUNT, 0.01, "float32", rank) for rank in range(SIZE))
        numpy.testing.assert_array_equal(handle.wait(), total)

    @unittest.skipIf(SIZE == 1, "one rank has no other")
    def test_start_that_fails_on_one_rank(self):
        """It fails on all: of a plan that is freed, and of one whose last call is not complete."""
        is_wrong, one = RANK == SIZE - 1, numpy.ones(1, "float32")
        source = whole(COUNT, 0.01, "float64", RANK)
        for plan, start in (
            (mpix_sparse.Plan(source), lambda plan: plan.start()),
            (mpix_sparse.CooPlan(10, "float32"), lambda plan: plan.start([3], one)),
        ):
            for _ in range(8):  # until a scheme is chosen
                start(plan).wait()
            last = start(plan)
            if not is_wrong:
                last.wait()
            for _ in range(2):
                with self.assertRaises(mpix_sparse.Error):
                    start(plan).wait()
                last.wait()
                self.assertEqual(mpix_sparse.allreduce(one)[0], SIZE)
                if is_wrong:
                    plan.free()

    def test_one_call_at_a_time(self):
        plan = mpix_sparse.Plan(whole(COUNT, 0.01, "float32", RANK))
        handle = plan.start()
        with self.assertRaisesRegex(mpix_sparse.Error, "in use"):
            plan.start()
        with self.assertRaisesRegex(mpix_sparse.Error, "in use"):
            plan.free()
        handle.wait()
        plan.free()
        plan.free()


class Bfloat(mpix_sparse._arrays.Array):
    """A bfloat16 number, a type that NumPy lacks support for."""

    def __init__(self, bits):
        memory = numpy.array([bits], "uint16")
        super().__init__(memory, memory.ctypes.data, "bfloat16", (1,), True, True, False)


if __name__ == "__main__":
    main()
