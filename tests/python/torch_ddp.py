# SPDX-License-Identifier: BSD-3-Clause
"""Test DistributedDataParallel over this library, by its backend or by the hook. Training equals training on
the joined batch, for ranks without gradients, ranks with different numbers of batches, and ranks with
errors."""

import os
import socket
import unittest

from common import main, need

torch = need("torch", "python3-torch")

import mpix_sparse.torch as hvd  # noqa: E402
from mpix_sparse.torch._tensors import sparse_of  # noqa: E402

dist = torch.distributed
need("torch.distributed.distributed_c10d", "python3-torch")
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

os.environ["GLOO_SOCKET_IFNAME"] = "lo"
os.environ.setdefault("GLOG_minloglevel", "2")
hvd.init()
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    PORT = hvd.broadcast_object(free.getsockname()[1], 0)
os.environ.update(
    MASTER_ADDR="127.0.0.1", MASTER_PORT=str(PORT), RANK=str(hvd.rank()), WORLD_SIZE=str(hvd.size())
)
dist.init_process_group("mpix_sparse")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
GLOO = dist.new_group(backend="gloo")
WORDS, WIDTH, STEPS = 200, 6, 5


class Model(torch.nn.Module):
    """An embedding with sparse gradients, layers of several buckets, and a layer that only rank 0 uses."""

    def __init__(self, sparse):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH, sparse=sparse)
        self.inner = torch.nn.Linear(WIDTH, 200)
        self.extra = torch.nn.Linear(200, 200)
        self.outer = torch.nn.Linear(200, 3)

    def forward(self, text, use_extra=False):
        hidden = torch.tanh(self.inner(self.words(text).mean(1)))
        return self.outer(self.extra(hidden) if use_extra else hidden)


def make_model(sparse=True):
    torch.manual_seed(7)
    return Model(sparse).double()


def loss_of(model, step, rank, extra):
    """Sentences of a length that depends on the rank; all ranks use the layer `extra`, or only the first."""
    generator = torch.Generator().manual_seed(100 * step + rank)
    text = torch.randint(0, WORDS, (6, 5 + rank), generator=generator)
    classes = torch.randint(0, 3, (6,), generator=generator)
    return torch.nn.functional.cross_entropy(model(text, extra == "all" or rank == 0), classes)


def train_alone(extra="all", steps=lambda rank: STEPS):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(steps(SIZE - 1)):
        optimizer.zero_grad()
        losses = [loss_of(model, step, rank, extra) for rank in range(SIZE) if step < steps(rank)]
        sum(losses).div(SIZE).backward()
        optimizer.step()
    return model


def train_together(state=None, group=None, extra="all", steps=lambda rank: STEPS, sparse=True, **how):
    model = make_model(sparse)
    wrapped = DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.05, **how)
    if state is not None:
        wrapped.register_comm_hook(state, hvd.ddp_comm_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with wrapped.join(enable=steps(0) != steps(1)):
        for step in range(steps(RANK)):
            optimizer.zero_grad()
            loss_of(wrapped, step, RANK, extra).backward()
            optimizer.step()
    return model


class Parallel(unittest.TestCase):
    def same(self, ours, theirs, tolerance=1e-12):
        for (name, mine), (_, other) in zip(ours.named_parameters(), theirs.named_parameters()):
            self.assertLessEqual(float((mine - other).detach().abs().max()), tolerance, name)

    def test_like_the_joined_batch(self):
        alone = train_alone()
        for how in ({}, {"static_graph": True}, {"gradient_as_bucket_view": True}):
            for state in (None, hvd.DdpState()):
                with self.subTest(how=how, state=state):
                    self.same(train_together(state, **how), alone)

    def test_hook_beside_gloo(self):
        self.same(train_together(hvd.DdpState(), GLOO), train_alone())

    def test_part_of_the_ranks(self):
        """The group may have any backend, and any order of ranks."""
        some = sorted({0, SIZE - 1})
        for backend in "mpix_sparse", "gloo":
            group = dist.new_group(some, backend=backend)
            if RANK in some:
                state = hvd.DdpState(process_group=group)
                self.assertIs(state._ranks, hvd.DdpState(process_group=group)._ranks)
                self.same(train_together(state, group), train_together(group=group))
        dist.barrier()

    def test_half_parameters(self):
        model = DistributedDataParallel(torch.nn.Linear(300, 20).bfloat16())
        model.register_comm_hook(hvd.DdpState(), hvd.ddp_comm_hook)
        model(torch.full((1, 300), RANK + 1.0, dtype=torch.bfloat16)).sum().backward()
        self.assertTrue((model.module.weight.grad == (SIZE + 1) / 2).all())

    def test_one_rank_has_no_gradient(self):
        alone = train_alone("first")
        for state in (None, hvd.DdpState()):
            self.same(train_together(state, extra="first", find_unused_parameters=True), alone)

    def test_other_numbers_of_batches(self):
        """Later ranks have more batches; ranks that are done keep joining."""
        more = lambda rank: 2 + rank  # noqa: E731
        alone = train_alone(steps=more)
        # Without the hook a rank passes coordinates in place of rows, which the others refuse.
        self.same(train_together(steps=more, sparse=False), alone)
        for sparse in (False, True):
            self.same(train_together(hvd.DdpState(), steps=more, sparse=sparse), alone)

    def test_compression_and_op(self):
        alone = train_alone()
        self.same(train_together(hvd.DdpState(hvd.Compression.bf16)), alone, 1e-12)  # 64 bits: uncompressed
        summed = train_together(hvd.DdpState(op=hvd.Sum))
        self.same(summed, alone) if SIZE == 1 else self.assertRaises(AssertionError, self.same, summed, alone)

    def test_wrong_on_one_rank(self):
        def spoil(gradient):
            bad = torch.full_like(gradient._indices(), WORDS if RANK == SIZE - 1 else 0)
            return sparse_of(bad, gradient._values(), gradient)

        for state in (None, hvd.DdpState()):
            model = make_model()
            model.words.weight.register_hook(spoil)
            wrapped = DistributedDataParallel(model)
            if state is not None:
                wrapped.register_comm_hook(state, hvd.ddp_comm_hook)
            with self.assertRaisesRegex(RuntimeError, f"indices holds {WORDS}"):
                loss_of(wrapped, 0, RANK, "all").backward()

    def test_wrong_state(self):
        with self.assertRaisesRegex(ValueError, "takes none, bf16 or fp16"):
            hvd.DdpState("largest")
        wrapped = DistributedDataParallel(make_model())
        wrapped.register_comm_hook(None, hvd.ddp_comm_hook)
        with self.assertRaisesRegex((TypeError, RuntimeError), "must be a DdpState"):
            loss_of(wrapped, 0, RANK, "all").backward()


if __name__ == "__main__":
    main()
