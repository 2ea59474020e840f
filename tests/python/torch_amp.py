# SPDX-License-Identifier: BSD-3-Clause
"""Test training in mixed precision: autocast, and a gradient scaler with infinities on one rank."""

import unittest

from common import main, need

torch = need("torch", "python3-torch")

import mpix_sparse.torch as hvd  # noqa: E402

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
HAS_SCALER = hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler")


def make_model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))


def batch(step, rank=RANK):
    generator = torch.Generator().manual_seed(10 * step + rank)
    inputs = torch.randn(8, 6, generator=generator)
    return inputs, (inputs.sum(1) > 0).long()


def loss_of(model, step, rank=RANK):
    inputs, targets = batch(step, rank)
    return torch.nn.functional.cross_entropy(model(inputs), targets)


class Autocast(unittest.TestCase):
    def test_bfloat16(self):
        """Forward passes in bfloat16, gradients in 32 bits; the model learns, the same on all ranks."""
        for compression in (hvd.Compression.none, hvd.Compression.bf16):
            model = make_model()
            base = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.5)
            optimizer = hvd.DistributedOptimizer(base, compression=compression)
            losses = []
            for step in range(30):
                optimizer.zero_grad()
                inputs, targets = batch(step)
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    outputs = model(inputs)
                self.assertEqual(outputs.dtype, torch.bfloat16)
                loss = torch.nn.functional.cross_entropy(outputs.float(), targets)
                loss.backward()
                optimizer.step()
                losses.append(float(hvd.allreduce(loss.detach())))
            self.assertLess(sum(losses[-5:]), 0.6 * sum(losses[:5]))
            mine = [parameter.tolist() for parameter in model.parameters()]
            self.assertTrue(all(other == mine for other in hvd.allgather_object(mine)))
            del optimizer

    def test_batch_norm(self):
        """SyncBatchNorm gets bfloat16 from the layer before it."""
        model = torch.nn.Sequential(torch.nn.Linear(6, 4), hvd.SyncBatchNorm(4), torch.nn.Linear(4, 2))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            outputs = model(batch(0)[0])
        outputs.float().sum().backward()
        self.assertTrue(all(parameter.grad.isfinite().all() for parameter in model.parameters()))


@unittest.skipUnless(HAS_SCALER, f"PyTorch {torch.__version__} has no GradScaler for the CPU")
class Scaler(unittest.TestCase):
    STEPS, INFINITE = 6, (0, 3)  # in these steps the last rank has infinite gradients

    def train(self, step_with):
        """Train with a scaler; returns the model and the scales after the steps."""
        model = make_model()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.5))
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
        scales = []
        for step in range(self.STEPS):
            optimizer.zero_grad()
            loss = loss_of(model, step)
            if step in self.INFINITE and RANK == SIZE - 1:
                loss = loss * float("inf")
            scaler.scale(loss).backward()
            step_with(scaler, optimizer, model)
            scaler.update()
            scales.append(scaler.get_scale())
        return model, scales

    def check(self, model, scales):
        """The steps with infinities are skipped on all ranks, and the scale is halved on all."""
        alone = make_model()
        optimizer = torch.optim.SGD(alone.parameters(), lr=0.5)
        for step in range(self.STEPS):
            if step not in self.INFINITE:
                optimizer.zero_grad()
                sum(loss_of(alone, step, rank) for rank in range(SIZE)).div(SIZE).backward()
                optimizer.step()
        for mine, wanted in zip(model.parameters(), alone.parameters()):
            torch.testing.assert_close(mine, wanted)
        self.assertEqual(scales, [512.0, 512.0, 1024.0, 512.0, 512.0, 1024.0])

    def test_as_in_horovod(self):
        """synchronize() before unscale_(), then a step without another."""

        def step_with(scaler, optimizer, model):
            optimizer.synchronize()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1e6)
            with optimizer.skip_synchronize():
                scaler.step(optimizer)

        self.check(*self.train(step_with))

    def test_step_alone(self):
        self.check(*self.train(lambda scaler, optimizer, model: scaler.step(optimizer)))

    def test_step_after_synchronize(self):
        def step_with(scaler, optimizer, model):
            optimizer.synchronize()
            scaler.step(optimizer)

        self.check(*self.train(step_with))

    def test_adasum(self):
        """Ranks would wait for the one that skips its step."""
        model = make_model()
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.5), op=hvd.Adasum)
        scaler = torch.amp.GradScaler("cpu")
        scaler.scale(loss_of(model, 0)).backward()
        with self.assertRaisesRegex(RuntimeError, "GradScaler is not for Adasum"):
            scaler.step(optimizer)


if __name__ == "__main__":
    main()
