# SPDX-License-Identifier: BSD-3-Clause
"""Test elastic: states, the sampler, and run() after errors that all ranks got. tests/python/process has an
error on one rank."""

import unittest

from common import main, need

torch = need("torch", "python3-torch")

import mpix_sparse  # noqa: E402
import mpix_sparse.torch as hvd  # noqa: E402
from mpix_sparse.torch import _world, elastic  # noqa: E402

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
STEPS = 8


def make_model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Embedding(20, 4, sparse=True), torch.nn.Linear(4, 2))


def loss_of(model, step, rank):
    words = torch.tensor([step, 2 * step + rank, rank])
    return torch.nn.functional.cross_entropy(model(words), torch.tensor([0, 1, rank % 2]))


def train_alone():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(STEPS):
        optimizer.zero_grad()
        sum(loss_of(model, step, rank) for rank in range(SIZE)).div(SIZE).backward()
        optimizer.step()
    return model


class States(unittest.TestCase):
    def test_object_state(self):
        state = elastic.ObjectState(hvd.broadcast_object, hvd.rank, epoch=0, names=["a"])
        state.epoch = 3 + RANK
        state.restore()
        self.assertEqual(state.epoch, 0)
        state.epoch, state.names = 5 + RANK, ["b"]
        state.commit()
        state.epoch = 9
        state.restore()
        self.assertEqual((state.epoch, state.names), (5 + RANK, ["b"]))
        state.sync()
        self.assertEqual(state.epoch, 5)
        for call in (elastic.State().save, elastic.State().restore, elastic.State().sync):
            with self.assertRaisesRegex(NotImplementedError, "State has no"):
                call()

    def test_torch_state(self):
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
        state = elastic.TorchState(model=model, optimizer=optimizer, batch=0, other=torch.nn.Linear(1, 1))
        self.assertIs(state.model, model)
        kept = [parameter.detach().clone() for parameter in model.parameters()]
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"], state.batch = 7.0, 3
        state.restore()
        self.assertTrue(all(map(torch.equal, model.parameters(), kept)))
        self.assertEqual((optimizer.param_groups[0]["lr"], state.batch), (0.5, 0))
        self.assertEqual(optimizer.state_dict()["state"], {})
        state.commit()
        state.sync()
        for other in hvd.allgather_object(model.weight.tolist()):
            self.assertEqual(other, model.weight.tolist())
        state.restore()  # to what sync() has copied
        self.assertEqual(hvd.broadcast_object(model.weight.tolist()), model.weight.tolist())

    def test_sampler(self):
        """Each sample is drawn once in an epoch, also if the sampler is restored in between."""
        sampler = elastic.ElasticSampler(range(8 * SIZE), seed=3)
        first = list(sampler)[:2]
        sampler.record_batch(0, 2)
        state = elastic.TorchState(sampler=sampler)
        sampler.record_batch(1, 2)
        state.restore()
        rest = list(sampler)
        self.assertEqual(len(sampler), 6)
        drawn = sorted(sum(hvd.allgather_object(first + rest), []))
        self.assertEqual(drawn, list(range(8 * SIZE)))
        sampler.set_epoch(1)
        self.assertEqual(len(list(sampler)), 8)
        self.assertNotEqual(list(sampler), first + rest)
        few = elastic.ElasticSampler(range(1), shuffle=False)
        self.assertEqual(list(few), [0])


class Run(unittest.TestCase):
    def setUp(self):
        self.calls, self.resets = 0, 0

    def train(self, fail, commit_every=2):
        """Train, with a function that is called in each step and may raise; returns the model."""
        model = make_model()
        base = torch.optim.SGD(model.parameters(), lr=0.5)
        optimizer = hvd.DistributedOptimizer(base, named_parameters=model.named_parameters())
        state = elastic.TorchState(model=model, optimizer=optimizer, step=0)
        state.register_reset_callbacks([self.count_reset])

        @elastic.run
        def train(state):
            self.calls += 1
            while state.step < STEPS:
                state.optimizer.zero_grad()
                loss_of(state.model, state.step, RANK).backward()
                fail(state)
                state.optimizer.step()
                state.step += 1
                if state.step % commit_every == 0:
                    state.commit()
            return "ready"

        self.assertEqual(train(state), "ready")
        return model

    def count_reset(self):
        self.resets += 1

    def same_as_alone(self, model):
        for mine, wanted in zip(model.parameters(), train_alone().parameters()):
            torch.testing.assert_close(mine, wanted)

    def test_without_errors(self):
        self.same_as_alone(self.train(lambda state: None))
        self.assertEqual((self.calls, self.resets), (1, 0))

    def test_error_that_all_ranks_raise(self):
        """Between backward() and step(), with gradients in flight."""

        def fail(state):
            if (self.calls, state.step) in ((1, 3), (2, 6), (3, 7)):
                raise hvd.HorovodInternalError("lost")

        self.same_as_alone(self.train(fail))
        self.assertEqual((self.calls, self.resets), (4, 3))

    def test_error_of_the_library(self):
        """The last rank's tensor has another size; all ranks get the library's error."""
        if SIZE == 1:
            self.skipTest("one rank has nothing to disagree with")
        mpix_sparse.set_info(_world.world().plain, forward=0)

        def fail(state):
            if self.calls == 1 and state.step == 3:
                hvd.allreduce(torch.ones(1000 + (RANK == SIZE - 1)), op=hvd.Sum)

        self.same_as_alone(self.train(fail))
        self.assertEqual((self.calls, self.resets), (2, 1))
        mpix_sparse.set_info(_world.world().plain, forward=63)

    def test_error_that_comes_again(self):
        """Without a commit in between, run() gives up."""

        def fail(state):
            if state.step == 3:
                raise hvd.HorovodInternalError("lost again")

        with self.assertRaisesRegex(mpix_sparse.Error, "lost again"):
            self.train(fail)
        self.assertEqual(self.calls, elastic.MAX_RETRIES + 1)

    def test_hosts_updated(self):
        """The function is called again without a restore."""

        def fail(state):
            if (self.calls, state.step) in ((1, 2), (2, 4)):
                state.optimizer.step()
                state.step += 1
                raise hvd.HostsUpdatedInterrupt(self.calls == 1)

        self.same_as_alone(self.train(fail))
        self.assertEqual((self.calls, self.resets), (3, 2))

    def test_different_exceptions(self):
        if SIZE == 1:
            self.skipTest("one rank has no others")

        @elastic.run
        def train(state):
            raise hvd.HorovodInternalError("here") if RANK == 0 else hvd.HostsUpdatedInterrupt()

        with self.assertRaisesRegex(mpix_sparse.Error, "cannot go on: ranks got different exceptions"):
            train(elastic.ObjectState(step=0))

    def test_other_exceptions(self):
        @elastic.run
        def train(state):
            raise KeyError("a mistake of the program")

        with self.assertRaises(KeyError):
            train(elastic.ObjectState(step=0))


if __name__ == "__main__":
    main()
