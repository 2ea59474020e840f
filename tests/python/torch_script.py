# SPDX-License-Identifier: BSD-3-Clause
"""A script as in Horovod's documentation; only the import line names this package."""

import os

from common import need

torch = need("torch", "python3-torch")

import mpix_sparse.torch as hvd  # noqa: E402

hvd.init()
torch.manual_seed(42 + hvd.rank())
torch.set_num_threads(1)
if torch.cuda.is_available():
    torch.cuda.set_device(hvd.local_rank())

SAMPLES, FEATURES, BATCH, EPOCHS = 512, 20, 8, 4
generator = torch.Generator().manual_seed(1)
inputs = torch.randn(SAMPLES, FEATURES, generator=generator)
targets = (inputs @ torch.randn(FEATURES, 3, generator=generator)).argmax(1)
dataset = torch.utils.data.TensorDataset(inputs, targets)
sampler = torch.utils.data.distributed.DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank())
loader = torch.utils.data.DataLoader(dataset, batch_size=BATCH, sampler=sampler, drop_last=True)

model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05 * hvd.size(), momentum=0.5)

# Only rank 0 knows the epoch to resume from.
resume_from_epoch = hvd.broadcast(
    torch.tensor(0 if hvd.rank() == 0 else -1), root_rank=0, name="resume"
).item()
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
optimizer = hvd.DistributedOptimizer(
    optimizer,
    named_parameters=model.named_parameters(),
    compression=hvd.Compression.fp16,
    backward_passes_per_step=2,
    op=hvd.Average,
    gradient_predivide_factor=1.0,
    num_groups=2,
)


class Metric:
    """A running mean over all ranks."""

    def __init__(self, name):
        self.name, self.sum, self.n = name, torch.tensor(0.0), torch.tensor(0.0)

    def update(self, value):
        self.sum += hvd.allreduce(value.detach().cpu(), name=self.name)
        self.n += 1

    @property
    def avg(self):
        return (self.sum / self.n).item()


def train(epoch):
    sampler.set_epoch(epoch)
    metric = Metric("train_loss")
    for data, target in loader:
        optimizer.zero_grad()
        for i in range(0, BATCH, BATCH // 2):
            output = model(data[i : i + BATCH // 2])
            loss = torch.nn.functional.cross_entropy(output, target[i : i + BATCH // 2]) / 2
            loss.backward()
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        with optimizer.skip_synchronize():
            optimizer.step()
        metric.update(2 * loss)
    return metric.avg


losses = [train(epoch) for epoch in range(resume_from_epoch, EPOCHS)]
if hvd.rank() == 0:
    print("losses:", *(f"{loss:.3f}" for loss in losses))
assert losses[-1] < 0.6 * losses[0], losses

# Ranks with fewer batches join.
for data, target in list(loader)[: 3 + hvd.rank()]:
    optimizer.zero_grad()
    for _ in range(2):
        torch.nn.functional.cross_entropy(model(data), target).backward()
    optimizer.step()
hvd.broadcast_parameters(model.state_dict(), root_rank=hvd.join())

# Combine the results of all ranks.
correct = hvd.allgather(
    (model(inputs[hvd.rank() :: hvd.size()]).argmax(1) == targets[hvd.rank() :: hvd.size()])
)
assert len(correct) == SAMPLES and correct.float().mean() > 0.8, correct.float().mean()
handles = [hvd.allreduce_async(torch.ones(3), op=hvd.Sum, name=f"handle.{i}") for i in range(3)]
while not hvd.poll(handles[-1]):
    pass
assert all((hvd.synchronize(handle) == hvd.size()).all() for handle in handles)
assert hvd.allgather_object(os.getpid())[hvd.rank()] == os.getpid()
hvd.shutdown()
