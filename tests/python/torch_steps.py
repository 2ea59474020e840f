# SPDX-License-Identifier: BSD-3-Clause
"""Test DistributedOptimizer with steps that some ranks skip, with schedulers, and with steps of one rank
alone."""

import copy
import unittest
import unittest.mock
import weakref

from common import main, need
from torch_optimizer import RANK, SIZE, Trained, loss_of, make_model, train_alone

torch = need("torch", "python3-torch")

import mpix_sparse  # noqa: E402
import mpix_sparse.torch as hvd  # noqa: E402
from mpix_sparse.torch import _world  # noqa: E402


class Steps(Trained):
    def test_schedule_made_before(self):
        """A scheduler replaces its optimizer's step(); gradients are still reduced."""
        ours, theirs = make_model(), make_model()
        base, alone = (torch.optim.SGD(model.parameters(), lr=0.5) for model in (ours, theirs))
        schedules = [torch.optim.lr_scheduler.StepLR(each, 1, 0.5) for each in (base, alone)]
        optimizer = hvd.DistributedOptimizer(base)
        del base
        schedules.append(torch.optim.lr_scheduler.StepLR(optimizer, 3, 1.0))
        for step in range(4):
            for model in (ours, theirs):
                model.zero_grad(set_to_none=True)
            loss = loss_of(ours, step, RANK)
            optimizer.step(loss.backward) if step == 2 else (loss.backward(), optimizer.step())
            sum(loss_of(theirs, step, rank) for rank in range(SIZE)).div(SIZE).backward()
            alone.step()
            for schedule in schedules:
                schedule.step()
        self.same(ours, theirs)
        self.assertAlmostEqual(optimizer.param_groups[0]["lr"], 0.5**5)
        self.assertGreater(optimizer.communication_seconds, 0)
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        self.assertIs(optimizer.param_groups, schedules[0].optimizer.param_groups)

    def test_synchronized_and_not_stepped(self):
        """Skip a step, as a test of the gradients' norm may do."""
        ours, theirs = make_model(False), make_model(False)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(ours.parameters(), lr=0.5))
        alone = torch.optim.SGD(theirs.parameters(), lr=0.5)
        for step in range(4):
            # Only rank 0 has gradients in the second step.
            gone = step == 1 and RANK > 0
            optimizer.zero_grad(set_to_none=True)
            if not gone:
                loss_of(ours, step, RANK).backward()
            if step == 0:
                optimizer.synchronize()
                continue
            optimizer.step()
            alone.zero_grad()
            sum(loss_of(theirs, step, rank) for rank in range(1 if step == 1 else SIZE)).div(SIZE).backward()
            alone.step()
        self.same(ours, theirs)

    def test_synchronized_and_left_out_by_the_model(self):
        """The model drops its gradients without notice to its optimizer. Then only rank 0 has gradients, and
        makes one step more than the others."""
        for forward, sparse in ((63, False), (0, False), (63, True), (0, True)):
            mpix_sparse.set_info(_world.world().plain, forward=forward)
            self.leave_out_by_the_model(make_model(sparse), make_model(sparse))
        mpix_sparse.set_info(_world.world().plain, forward=63)

    def leave_out_by_the_model(self, ours, theirs):
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(ours.parameters(), lr=0.5))
        alone = torch.optim.SGD(theirs.parameters(), lr=0.5)
        for step in range(3 if RANK == 0 else 2):
            loss_of(ours, step, RANK).backward()
            optimizer.synchronize()
            ours.zero_grad(set_to_none=True)
            if RANK == 0:
                loss_of(ours, step, RANK).backward()
            optimizer.step()
            ours.zero_grad(set_to_none=True)
            optimizer.synchronize()
            optimizer.step()
        self.assertEqual(hvd.join(), 0)
        hvd.broadcast_parameters(ours.state_dict(), 0)
        for step in range(3):
            alone.zero_grad()
            loss_of(theirs, step, 0).div(SIZE).backward()
            alone.step()
        self.same(ours, theirs)

    def test_wrapped_twice(self):
        """Consecutive optimizers work, and two at a time are refused."""
        ours = make_model(False)
        base = torch.optim.SGD(ours.parameters(), lr=0.5)
        schedule = torch.optim.lr_scheduler.StepLR(base, 1, 1.0)
        for step in range(2):
            optimizer = hvd.DistributedOptimizer(base)
            with self.assertRaisesRegex(ValueError, "has a DistributedOptimizer"):
                hvd.DistributedOptimizer(base)
            ours.zero_grad(set_to_none=True)
            loss_of(ours, step, RANK).backward()
            optimizer.step()
            schedule.step()
            del optimizer
        self.same(ours, train_alone(make_model(False), 2))

    def test_join(self):
        """Later ranks have more batches; the last rank's model equals that of all batches. Also with a
        consistency check for every call, where no rank waits inside MPI."""
        for forward in (63, 0, 63):
            mpix_sparse.set_info(_world.world().plain, forward=forward)
            self.join_after_batches()

    def join_after_batches(self):
        ours, theirs = make_model(), make_model()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(ours.parameters(), lr=0.5))
        for step in range(1 + RANK):
            optimizer.zero_grad()
            loss_of(ours, step, RANK).backward()
            optimizer.step()
        last = hvd.join()
        self.assertEqual(last, SIZE - 1)
        hvd.broadcast_parameters(ours.state_dict(), last)
        alone = torch.optim.SGD(theirs.parameters(), lr=0.5)
        for step in range(SIZE):
            alone.zero_grad()
            sum(loss_of(theirs, step, rank) for rank in range(step, SIZE)).div(SIZE).backward()
            alone.step()
        self.same(ours, theirs)
        self.assertEqual(hvd.join(), SIZE - 1)

    def test_join_without_the_optimizer(self):
        """An optimizer local to a function is freed at the function's return."""
        ours = make_model()

        def train(steps):
            optimizer = hvd.DistributedOptimizer(torch.optim.SGD(ours.parameters(), lr=0.5))
            for step in range(steps):
                optimizer.zero_grad()
                loss_of(ours, step, RANK).backward()
                optimizer.step()
            return weakref.ref(optimizer._reducer)

        reducer = train(1 + RANK)
        self.assertEqual(hvd.join(), SIZE - 1)
        self.assertIsNone(reducer())

    def test_join_with_another_optimizer(self):
        """A new optimizer while other ranks use the old one, or have none yet: an error with a message."""
        gone = hvd.DistributedOptimizer(torch.optim.SGD(make_model().parameters(), lr=0.5))
        number = gone._reducer._number
        del gone
        hvd.DistributedOptimizer(torch.optim.SGD(make_model().parameters(), lr=0.5))
        for each in (number, number + 2):
            word = unittest.mock.Mock(wait=lambda each=each: 2 * each + 1)
            with unittest.mock.patch("mpix_sparse.torch._join.StepCode", return_value=word):
                with self.assertRaisesRegex(RuntimeError, f"DistributedOptimizer {each}, which this rank"):
                    hvd.join()

    def test_state_of_no_optimizer(self):
        with self.assertRaisesRegex(TypeError, "an optimizer is needed, not NoneType"):
            hvd.broadcast_optimizer_state(None)

    @unittest.skipIf(SIZE == 1, "one rank has no other")
    def test_state_of_another_optimizer(self):
        """The state of another number of parameters, or of another class, fits no optimizer."""
        odd = RANK == SIZE - 1
        for sizes, classes, text in (
            ((2, 3), ("SGD", "SGD"), "the groups of the optimizer have .3. parameters"),
            ((2, 2), ("SGD", "Adam"), "the optimizers differ: rank 0's has no .*betas"),
        ):
            weights = [torch.nn.Parameter(torch.ones(3)) for _ in range(sizes[odd])]
            optimizer = getattr(torch.optim, classes[odd])(weights, 0.1)
            known = text if odd else f"^rank {SIZE - 1} has an error in its arguments: .*{text}"
            with self.assertRaisesRegex(ValueError, known):
                hvd.broadcast_optimizer_state(optimizer)

    @unittest.skipIf(SIZE == 1, "one rank has no other")
    def test_steps_of_different_optimizers(self):
        """One rank makes the steps of two optimizers in another order: an error on all ranks."""
        for before in (0, 1):
            for sparse in (False, True):
                self.steps_in_other_order(before, sparse, list(range(SIZE)))

    @unittest.skipIf(SIZE < 3, "no set has two ranks of more")
    def test_steps_of_different_optimizers_of_some_ranks(self):
        ranks = [SIZE - 2, SIZE - 1]
        process_set = hvd.add_process_set(ranks)
        if RANK in ranks:
            self.steps_in_other_order(1, False, ranks, process_set=process_set)
        hvd.barrier()
        hvd.remove_process_set(process_set)

    @unittest.skipIf(SIZE == 1, "one rank has no other options")
    def test_options_differ(self):
        cases = [
            ({"compression": hvd.Compression.dgc(ratio=0.1)}, {}, "compression Dgc"),
            *(
                ({"compression": hvd.Compression.dgc(momentum=each)}, {}, f"momentum={each}")
                for each in (0.0, 0.5)
            ),
            ({"compression": hvd.Compression.fp16}, {}, "compression fp16"),
            (
                {"gradient_predivide_factor": 2.0},
                {"gradient_predivide_factor": 4.0},
                "factor 2.0, .*factor 4.0",
            ),
            ({"backward_passes_per_step": 2}, {}, "backward_passes_per_step 2"),
            ({"sparse_as_dense": True}, {}, "sparse_as_dense"),
        ]
        for ours, theirs, text in cases:
            model = make_model(False)
            how = theirs if RANK == SIZE - 1 else ours
            optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.5), **how)
            for _ in range(how.get("backward_passes_per_step", 1)):
                loss_of(model, 0, RANK).backward()
            with self.subTest(text), self.assertRaisesRegex(
                ValueError, f"a step of DistributedOptimizer with .*{text}"
            ):
                optimizer.step()
            del optimizer
        self.assertEqual(hvd.allreduce(torch.ones(3), op=hvd.Sum).tolist(), [SIZE] * 3)

    def steps_in_other_order(self, before, sparse, ranks, **how):
        models = [make_model(sparse), make_model(sparse)]
        bases = [torch.optim.SGD(model.parameters(), lr=0.5) for model in models]
        optimizers = [hvd.DistributedOptimizer(base, **how) for base in bases]
        low, high = (optimizer._reducer._number for optimizer in optimizers)

        def step(i, number):
            optimizers[i].zero_grad()
            loss_of(models[i], number, RANK).backward()
            optimizers[i].step()

        for number in range(before):
            step(0, number)
            step(1, number)
        with self.assertRaisesRegex(mpix_sparse.Error, f"of DistributedOptimizer {low}, .* of {high}$"):
            step(RANK == ranks[-1], before)


if __name__ == "__main__":
    main()
