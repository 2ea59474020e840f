# SPDX-License-Identifier: BSD-3-Clause
"""DistributedDataParallel on the backend of this library: a classifier of texts, whose embedding has sparse
gradients, learns which half of the vocabulary a text is from.

    mpiexec -n 2 python3 ddp.py

Output; the losses depend on the version of PyTorch:

    step 20: loss 0...
    step 40: loss 0...
    step 60: loss 0...
    the loss fell on 2 ranks
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import mpix_sparse.torch  # registers the backend  # noqa: F401

WORDS, LENGTH, BATCH = 10_000, 20, 64

dist.init_process_group("mpix_sparse", init_method="mpix://")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
model = DistributedDataParallel(
    torch.nn.Sequential(torch.nn.EmbeddingBag(WORDS, 16, sparse=True), torch.nn.Linear(16, 1))
)
optimizer = torch.optim.SGD(model.parameters(), lr=20.0)
random = torch.Generator().manual_seed(rank)  # each rank has texts of its own
losses = []
for step in range(60):
    labels = torch.randint(2, (BATCH, 1), generator=random)
    texts = (labels + torch.rand(BATCH, LENGTH, generator=random) ** 3) * WORDS / 2
    optimizer.zero_grad()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(model(texts.long()), labels.float())
    loss.backward()  # sums the gradients of all ranks; the embedding's as rows
    optimizer.step()
    losses.append(loss.item())
    if rank == 0 and step % 20 == 19:
        print(f"step {step + 1}: loss {sum(losses[-20:]) / 20:.3f}")
if rank == 0 and sum(losses[-20:]) < 0.8 * sum(losses[:20]):
    print(f"the loss fell on {ranks} ranks")
dist.destroy_process_group()
