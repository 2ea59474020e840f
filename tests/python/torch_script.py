# SPDX-License-Identifier: BSD-3-Clause
"""A script as Horovod's documentation has its users write them; the import line is all that names this
package."""

from common import need

torch = need("torch", "python3-torch")

import mpix_sparse.torch as hvd  # noqa: E402

hvd.init()
torch.manual_seed(42 + hvd.rank())
if torch.cuda.is_available():
    torch.cuda.set_device(hvd.local_rank())

SAMPLES, FEATURES, BATCH, EPOCHS = 512, 20, 8, 4
generator = torch.Generator().manual_seed(1)
inputs = torch.randn(SAMPLES, FEATURES, generator=generator)
targets = (inputs @ torch.randn(FEATURES, 3, generator=generator)).argmax(1)
dataset = torch.utils.data.TensorDataset(inputs, targets)
sampler = torch.utils.data.distributed.DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank())
loader = torch.utils.data.DataLoader(dataset, batch_size=BATCH, sampler=sampler)

model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05 * hvd.size(), momentum=0.5)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
optimizer = hvd.DistributedOptimizer(
    optimizer,
    named_parameters=model.named_parameters(),
    compression=hvd.Compression.fp16,
    op=hvd.Average,
    gradient_predivide_factor=1.0,
)


def metric_average(value, name):
    """The mean over all ranks."""
    return hvd.allreduce(torch.tensor(value), name=name).item()


losses = []
for epoch in range(EPOCHS):
    sampler.set_epoch(epoch)
    total = 0.0
    for data, target in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
        total += loss.item()
    losses.append(metric_average(total / len(loader), "loss"))
    if hvd.rank() == 0:
        print(f"epoch {epoch}: loss {losses[-1]:.4f}")
assert losses[-1] < 0.6 * losses[0], losses
hvd.shutdown()
