# SPDX-License-Identifier: BSD-3-Clause
"""Test PyTorch's own hooks of DistributedDataParallel on the backend mpix_sparse: training equals training
with Gloo. Several buckets are in flight at a time; with Gloo one is, since Gloo has no order for calls that
callbacks start."""

import os
import unittest
import unittest.mock

from common import main, need

torch = need("torch", "python3-torch")
need("torch.distributed.distributed_c10d", "python3-torch")
hooks = need("torch.distributed.algorithms.ddp_comm_hooks", "python3-torch")

import mpix_sparse.torch  # noqa: E402, F401
from torch.distributed.algorithms.ddp_comm_hooks import (  # noqa: E402
    default_hooks,
    post_localSGD_hook,
    powerSGD_hook,
    quantization_hooks,
)
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

dist = torch.distributed
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
dist.init_process_group("mpix_sparse", init_method="mpix://")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
GLOO = dist.new_group(backend="gloo")
STEPS, WIDTH = 6, 48
EXACT, SUMMED, LOW_RANK, HALF = 0, 1e-6, 1e-4, 3e-3  # largest differences of parameters, which are below 2


def subgroups(backend):
    """The group of the first two ranks, or of one of the others: the one that has this rank."""
    made = [dist.new_group([0, 1][:SIZE], backend=backend)]
    made += [dist.new_group([rank], backend=backend) for rank in range(2, SIZE)]
    return made[max(RANK - 1, 0)]


OURS_SUBGROUP, GLOO_SUBGROUP = subgroups("mpix_sparse"), subgroups("gloo")


def make_model():
    """A model of 5 buckets."""
    torch.manual_seed(3)
    layers = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(5)]
    return torch.nn.Sequential(*[part for layer in layers for part in (layer, torch.nn.Tanh())])


def untrained():
    return [parameter.detach() for parameter in make_model().parameters()]


def one_at_a_time(hook):
    """The hook, whose future is complete when it returns."""

    def waits(state, bucket):
        future = torch.futures.Future()
        future.set_result(hook(state, bucket).wait())
        return future

    return waits


def train(make_state, hook, group):
    """The parameters after some steps, each with other data on each rank."""
    torch.manual_seed(5)
    model = make_model()
    wrapped = DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.01)
    wrapped.register_comm_hook(make_state(group), hook if group is None else one_at_a_time(hook))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(100 * step + RANK)
        optimizer.zero_grad()
        wrapped(torch.randn(8, WIDTH, generator=generator)).pow(2).sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


def low_rank(group):
    """The state of PowerSGD, which starts in the third step, with error feedback and a warm start."""
    return powerSGD_hook.PowerSGDState(group, matrix_approximation_rank=2, start_powerSGD_iter=2)


def local(group):
    """The state of post-local SGD, which averages over subgroups from the third step on."""
    return post_localSGD_hook.PostLocalSGDState(
        group, OURS_SUBGROUP if group is None else GLOO_SUBGROUP, start_localSGD_iter=2
    )


def itself(group):
    return group


def bf16(state, bucket):
    """bf16_compress_hook under another name, since PyTorch 1.13 refuses that one without CUDA."""
    return default_hooks.bf16_compress_hook(state, bucket)


class Hooks(unittest.TestCase):
    def near(self, ours, theirs, tolerance):
        for mine, other in zip(ours, theirs):
            self.assertLessEqual(float((mine - other).abs().max()), tolerance)

    def same(self, make_state, hook, tolerance):
        """Check that training gives the parameters that training with Gloo gives, and changes them."""
        ours = train(make_state, hook, None)
        self.near(ours, train(make_state, hook, GLOO), tolerance)
        self.assertRaises(AssertionError, self.near, ours, untrained(), 3 * HALF)
        return ours

    def test_allreduce(self):
        self.same(itself, default_hooks.allreduce_hook, SUMMED)

    def test_fp16(self):
        ours = self.same(itself, default_hooks.fp16_compress_hook, HALF)
        self.near(ours, train(itself, default_hooks.allreduce_hook, GLOO), HALF)

    def test_bf16(self):
        ours = train(itself, bf16, None)
        self.near(ours, train(itself, default_hooks.allreduce_hook, GLOO), HALF)
        try:
            dist.all_reduce(torch.ones(2, dtype=torch.bfloat16), group=GLOO)
        except RuntimeError as reason:
            self.skipTest(f"compared with float32 alone; Gloo here: {reason}")
        self.near(ours, train(itself, bf16, GLOO), HALF)

    def test_powersgd(self):
        self.same(low_rank, powerSGD_hook.powerSGD_hook, LOW_RANK)

    def test_powersgd_again_and_again(self):
        """The order of calls that callbacks start does not depend on the time; that of sums may."""
        first = train(low_rank, powerSGD_hook.powerSGD_hook, None)
        for _ in range(4):
            self.near(train(low_rank, powerSGD_hook.powerSGD_hook, None), first, SUMMED)

    def test_batched_powersgd(self):
        """The hook of PyTorch 1.13 to 2.15 passes one matrix where a batch of them is needed, and fails with
        every backend."""
        plain = powerSGD_hook._orthogonalize
        batch = lambda found, epsilon=0: plain(found.view(-1, *found.shape[-2:]), epsilon)  # noqa: E731
        with unittest.mock.patch.object(powerSGD_hook, "_orthogonalize", batch):
            self.same(low_rank, powerSGD_hook.batched_powerSGD_hook, LOW_RANK)

    def test_wrapped(self):
        for wrapper in (default_hooks.fp16_compress_wrapper, default_hooks.bf16_compress_wrapper):
            hook = wrapper(default_hooks.allreduce_hook)
            ours = train(itself, lambda state, bucket, hook=hook: hook(state, bucket), None)
            self.near(ours, train(itself, default_hooks.allreduce_hook, GLOO), HALF)

    def test_post_local_sgd(self):
        self.same(local, post_localSGD_hook.post_localSGD_hook, SUMMED)

    def quantized(self, hook):
        if not hasattr(quantization_hooks, "_quantize_per_tensor_backend"):
            self.skipTest(f"the quantization hooks of PyTorch {torch.__version__} are for CUDA only")
        self.same(lambda group: group or dist.group.WORLD, hook, EXACT)

    def test_quantization_per_tensor(self):
        self.quantized(quantization_hooks.quantization_pertensor_hook)

    def test_quantization_per_channel(self):
        self.quantized(quantization_hooks.quantization_perchannel_hook)


if __name__ == "__main__":
    main()
