# SPDX-License-Identifier: BSD-3-Clause
"""Test process sets: every collective call on some of the ranks, while others make other calls."""

import unittest

from common import main, need

torch = need("torch", "python3-torch")

import mpix_sparse  # noqa: E402
import mpix_sparse.torch as hvd  # noqa: E402

LAST = mpix_sparse.size() - 1
FIRST = hvd.ProcessSet([0])
hvd.init(process_sets=[FIRST] if LAST else "dynamic")
RANK, SIZE = hvd.rank(), hvd.size()
ENDS = sorted({0, LAST})


class ProcessSets(unittest.TestCase):
    def add(self, ranks):
        """The process set of some ranks, and whether it includes this one."""
        made = hvd.global_process_set if ranks == list(range(SIZE)) else hvd.add_process_set(ranks)
        self.addCleanup(hvd.remove_process_set, made)
        return made, made.included()

    def skip_if_alone(self):
        if SIZE == 1:
            self.skipTest("one rank has no process set but that of all ranks")

    def test_attributes(self):
        world = hvd.global_process_set
        self.assertEqual((world.ranks, world.process_set_id), (list(range(SIZE)), 0))
        if SIZE == 1:
            return
        self.assertEqual((FIRST.ranks, FIRST.size(), FIRST.included()), ([0], 1, RANK == 0))
        self.assertEqual(FIRST.rank(), 0 if RANK == 0 else None)
        made = hvd.add_process_set(hvd.ProcessSet([LAST]))
        self.assertGreater(made.process_set_id, FIRST.process_set_id)
        self.assertTrue(hvd.remove_process_set(made))
        self.assertEqual((made.process_set_id, made.size(), made.rank()), (None, None, None))
        self.assertFalse(hvd.remove_process_set(made) or hvd.remove_process_set(world))

    def test_collectives(self):
        """On the first and the last rank, of which the last is the root."""
        ends, included = self.add(ENDS)
        if not included:
            return
        total, ones = sum(rank + 1.0 for rank in ENDS), torch.full((len(ENDS), 2), RANK + 1.0)
        how = {"process_set": ends}
        for out in (
            hvd.allreduce(ones, op=hvd.Sum, **how),
            hvd.allreduce_(ones.clone(), op=hvd.Sum, **how),
            hvd.synchronize(hvd.allreduce_async(ones, op=hvd.Sum, **how)),
            hvd.grouped_allreduce([ones], op=hvd.Sum, **how)[0],
            hvd.grouped_allreduce_([ones.clone()], op=hvd.Sum, **how)[0],
            hvd.synchronize(hvd.sparse_allreduce_async(ones.to_sparse(), op=hvd.Sum, **how)).to_dense(),
            hvd.allreduce(ones.bfloat16(), op=hvd.Sum, **how),
            hvd.reducescatter(ones, op=hvd.Sum, **how),
            hvd.grouped_reducescatter([ones], op=hvd.Sum, **how)[0],
        ):
            self.assertTrue((out == total).all(), out)
        self.assertTrue((hvd.allreduce(ones, **how) == total / len(ENDS)).all())
        numbers = torch.tensor([rank + 1.0 for rank in ENDS])
        for out in (
            hvd.allgather(ones[:1, 0], **how),
            hvd.grouped_allgather([ones[:1, 0]], **how)[0],
            hvd.alltoall(ones[:, 0].contiguous(), **how),
        ):
            self.assertTrue(torch.equal(out, numbers), out)
        self.assertEqual(hvd.allgather_object(RANK, **how), ENDS)
        self.assertTrue((hvd.broadcast(ones, LAST, **how) == LAST + 1).all())
        self.assertTrue((hvd.broadcast_(ones.clone(), LAST, **how) == LAST + 1).all())
        self.assertEqual(hvd.broadcast_object(RANK, LAST, **how), LAST)
        hvd.barrier(**how)

    def test_gradients(self):
        ends, included = self.add(ENDS)
        if not included:
            return
        how, mean = {"process_set": ends}, sum(rank + 1.0 for rank in ENDS) / len(ENDS)
        for call, wanted in (
            (lambda x: hvd.allreduce(x, **how), mean),
            (lambda x: hvd.grouped_allreduce([x], **how)[0], mean),
            (lambda x: hvd.allgather(x, **how), mean),
            (lambda x: hvd.broadcast(x, LAST, **how), mean if RANK == LAST else 0),
        ):
            mine = torch.ones(3, requires_grad=True)
            (call(mine) * (RANK + 1)).sum().backward()
            self.assertTrue((mine.grad == wanted).all(), mine.grad)

    def test_at_the_same_time(self):
        """Calls on a set and on all ranks may be in flight together."""
        ends, included = self.add(ENDS)
        everyone = hvd.allreduce_async(torch.full((3,), RANK + 1.0), op=hvd.Sum)
        if included:
            some = hvd.allreduce(torch.full((3,), RANK + 1.0), op=hvd.Sum, process_set=ends)
            self.assertTrue((some == sum(rank + 1 for rank in ENDS)).all())
        self.assertTrue((hvd.synchronize(everyone) == SIZE * (SIZE + 1) / 2).all())

    def test_optimizer(self):
        """The ranks of the set train together, and the others each alone."""
        ends, included = self.add(ENDS)
        for sparse in (False, True):
            torch.manual_seed(1)
            models = [torch.nn.Embedding(9, 4, sparse=sparse) for _ in range(2)]
            models[1].load_state_dict(models[0].state_dict())
            base, alone = (torch.optim.SGD(model.parameters(), lr=0.5) for model in models)
            optimizer = hvd.DistributedOptimizer(base, process_set=ends)

            def loss(model, rank, step):
                return (model(torch.tensor([rank, step])) * (rank + 1)).sum()

            for step in range(3):
                optimizer.zero_grad()
                loss(models[0], RANK, step).backward()
                if step == 1:
                    optimizer.synchronize()
                optimizer.step()
                alone.zero_grad()
                ranks = ENDS if included else [RANK]
                sum(loss(models[1], rank, step) for rank in ranks).div(len(ranks)).backward()
                alone.step()
            torch.testing.assert_close(models[0].weight, models[1].weight)
            del optimizer

    def test_optimizer_with_other_parameters(self):
        ends, included = self.add(ENDS)
        if not included or SIZE == 1:
            return
        model = torch.nn.Linear(3, 2 + (RANK == LAST))
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), process_set=ends)
        model(torch.ones(1, 3)).sum().backward()
        with self.assertRaisesRegex(ValueError, f"and .* on rank ({LAST}|0)"):
            optimizer.step()

    def test_refused(self):
        """An error on one rank is an exception on all ranks."""
        self.skip_if_alone()
        last = RANK == LAST
        for sentence, ranks in (
            ("there are ranks 0 to", [0, SIZE]),
            ("of ranks .* already", [0]),
            ("is global_process_set", list(range(SIZE))),
            ("different ranks, not", [0, 0]),
            ("different ranks, not", []),
            ("different ranks, not", 3),
        ):
            with self.subTest(sentence), self.assertRaisesRegex(ValueError, sentence):
                hvd.add_process_set(ranks)
            with self.subTest(sentence), self.assertRaisesRegex(ValueError, f"{sentence}|rank {LAST} has"):
                hvd.add_process_set(ranks if last else [1])
        hvd.remove_process_set(FIRST)
        with self.assertRaisesRegex(
            ValueError, "rank 0 calls add_process_set.*, and rank . calls add_process_set"
        ):
            hvd.add_process_set([1] if last else [0])
        hvd.add_process_set(FIRST)

    def test_init_with_ranks(self):
        """Initialise on some of the ranks, and on all again."""
        hvd.shutdown()
        hvd.init([RANK])
        self.assertEqual((hvd.size(), hvd.rank(), hvd.cross_size()), (1, 0, 1))
        self.assertTrue((hvd.allreduce(torch.ones(3), op=hvd.Sum) == 1).all())
        hvd.shutdown()
        hvd.init(process_sets=[FIRST] if SIZE > 1 else None)
        self.assertEqual((hvd.size(), hvd.rank()), (SIZE, RANK))

    def test_refused_calls(self):
        self.skip_if_alone()
        with self.assertRaisesRegex(ValueError, "must be None or a ProcessSet"):
            hvd.allreduce(torch.ones(3), process_set=3)
        with self.assertRaisesRegex(ValueError, "has not been added"):
            hvd.allreduce(torch.ones(3), process_set=hvd.ProcessSet([0]))
        if RANK != 0:
            with self.assertRaisesRegex(ValueError, f"rank {RANK}, which is this process, is not in"):
                hvd.allreduce(torch.ones(3), process_set=FIRST)
        else:
            with self.assertRaisesRegex(ValueError, "root_rank is 1, which is not in"):
                hvd.broadcast(torch.ones(3), 1, process_set=FIRST)
        communicator = type("Comm", (), {"Get_rank": lambda self: 0})()
        with self.assertRaisesRegex(NotImplementedError, "not from a communicator"):
            hvd.ProcessSet(communicator)
        base = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=1.0)
        for how in ({"op": hvd.Adasum}, {"compression": hvd.Compression.dgc()}):
            with self.assertRaisesRegex(NotImplementedError, "is for all ranks"):
                hvd.DistributedOptimizer(base, process_set=FIRST, **how)

    @unittest.skipIf(SIZE < 3, "a process set of all ranks has their numbers")
    def test_process_set(self):
        """Errors have the numbers that ranks have outside the set."""
        some = hvd.add_process_set([0, SIZE - 1])
        if some.included():
            with self.assertRaisesRegex(
                ValueError, f"rank 0 calls .* 3 el.*, and rank {SIZE - 1} calls .* 4 el"
            ):
                hvd.allreduce(torch.ones(4 if RANK == SIZE - 1 else 3), process_set=some)
        hvd.remove_process_set(some)


if __name__ == "__main__":
    main()
