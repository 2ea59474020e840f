# SPDX-License-Identifier: BSD-3-Clause
"""Test PyTorch's sharded training over the backend mpix_sparse: a transformer trains as over Gloo with FSDP,
FSDP2, ZeroRedundancyOptimizer and DistributedDataParallel."""

import os
import socket
import unittest
import warnings

from common import main, need

torch = need("torch", "python3-torch")

import mpix_sparse.torch as hvd  # noqa: E402

dist = torch.distributed
need("torch.distributed.distributed_c10d", "python3-torch")
from torch.distributed.optim import ZeroRedundancyOptimizer  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

warnings.simplefilter("ignore")  # PyTorch's, about versions to come
os.environ["GLOO_SOCKET_IFNAME"] = "lo"


def start():
    global GLOO
    dist.init_process_group("mpix_sparse", init_method="mpix://")
    GLOO = dist.new_group(backend="gloo")


start()
RANK, SIZE = dist.get_rank(), dist.get_world_size()
WORDS, WIDTH, STEPS = 50, 16, 20


class Transformer(torch.nn.Module):
    """A language model of two layers."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        layer = dict(nhead=2, dim_feedforward=32, dropout=0.0, batch_first=True)
        self.layers = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(WIDTH, **layer) for _ in range(2))
        self.output = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, text):
        hidden = self.words(text)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.output(hidden)


def make_model():
    """In 64 bits: Adam enlarges the rounding of gradients that are zero but for rounding."""
    torch.manual_seed(3)
    return Transformer().double()


def batch(step):
    """Sentences of this rank, each word of which gives the next one."""
    generator = torch.Generator().manual_seed(1000 * step + RANK)
    text = [torch.randint(0, WORDS, (4, 1), generator=generator)]
    for _ in range(8):
        text.append((3 * text[-1] + 1) % WORDS)
    return torch.cat(text, 1)


def train(model, optimizer):
    """The losses of some steps."""
    losses = []
    for step in range(STEPS):
        text = batch(step)
        scores = model(text[:, :-1]).flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(scores, text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=0.01)


def fsdp1(group, **how):
    from torch.distributed.fsdp import FullyShardedDataParallel

    model = make_model()
    model.layers = torch.nn.ModuleList(
        FullyShardedDataParallel(layer, process_group=group, device_id=torch.device("cpu"), **how)
        for layer in model.layers
    )
    model = FullyShardedDataParallel(model, process_group=group, device_id=torch.device("cpu"), **how)
    return train(model, adam(model))


def fsdp2(mesh, **how):
    from torch.distributed.fsdp import fully_shard

    model = make_model()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh, **how)
    fully_shard(model, mesh=mesh, **how)
    return train(model, adam(model)) + norms(model)


def norms(model):
    """The norms of the gradients and of the parameters, which every rank gets."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).full_tensor()
    state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    return [norm.item(), *(value.norm().item() for value in state.values())]


def zero(group):
    model = DistributedDataParallel(make_model(), process_group=group)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, process_group=group, lr=0.01)
    losses = train(model, optimizer)
    optimizer.consolidate_state_dict(to=0)
    return losses


def script(backend):
    dist.destroy_process_group()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = hvd.broadcast_object(free.getsockname()[1], 0)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(RANK), WORLD_SIZE=str(SIZE))
    dist.init_process_group(backend)
    model = DistributedDataParallel(make_model())
    losses = train(model, adam(model))
    dist.destroy_process_group()
    start()
    return losses


class Sharded(unittest.TestCase):
    def same(self, ours, theirs, tolerance=1e-6):
        self.assertGreaterEqual(len(ours), STEPS)
        for step, (mine, other) in enumerate(zip(ours, theirs)):
            self.assertLessEqual(abs(mine - other), tolerance * max(1, abs(other)), f"step {step}")
        self.assertLess(ours[STEPS - 1], ours[0])

    def need(self, name):
        """Skip a test if this PyTorch lacks a function, or cannot import it with this Python."""
        try:
            from torch.distributed import fsdp

            getattr(fsdp, name)
        except (ImportError, AttributeError, ValueError) as reason:
            self.skipTest(f"torch.distributed.fsdp.{name} cannot be imported: {reason}")

    def test_script(self):
        """A program changes the name of its backend only."""
        ours, theirs = (script(backend) for backend in ("mpix_sparse", "gloo"))
        self.same(ours, theirs)

    def test_zero(self):
        self.same(zero(None), zero(GLOO))

    def test_fsdp(self):
        self.need("FullyShardedDataParallel")
        from torch.distributed.fsdp import ShardingStrategy

        theirs = fsdp1(GLOO)
        for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP):
            self.same(fsdp1(None, sharding_strategy=strategy), theirs)

    def test_fsdp2(self):
        self.need("fully_shard")
        theirs = dist.device_mesh.DeviceMesh.from_group(GLOO, "cpu")
        self.same(fsdp2(None), fsdp2(theirs))
        self.same(fsdp2(None, reshard_after_forward=False), fsdp2(theirs))

    def test_fsdp2_with_half_gradients(self):
        """Losses with gradients of 16 bits are near those of 32 bits."""
        self.need("fully_shard")
        from torch.distributed.fsdp import MixedPrecisionPolicy

        halves = MixedPrecisionPolicy(param_dtype=torch.float32, reduce_dtype=torch.bfloat16)
        self.same(fsdp2(None, mp_policy=halves)[:STEPS], fsdp2(None)[:STEPS], 0.1)


if __name__ == "__main__":
    main()
