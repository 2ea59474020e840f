# SPDX-License-Identifier: BSD-3-Clause
"""A program for Horovod, whose import line is all that differs: a classifier of texts, whose embedding has
sparse gradients, learns which half of the vocabulary a text is from.

    mpiexec -n 2 python3 horovod_style.py

Output; the losses depend on the version of PyTorch:

    step 20: loss 0...
    step 40: loss 0...
    step 60: loss 0...
    the loss fell on 2 ranks
"""

import torch

import mpix_sparse.torch as hvd  # with Horovod: import horovod.torch as hvd

WORDS, LENGTH, BATCH = 10_000, 20, 64

hvd.init()
torch.manual_seed(hvd.rank())  # each rank has texts of its own
model = torch.nn.Sequential(torch.nn.EmbeddingBag(WORDS, 16, sparse=True), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=20.0)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
losses = []
for step in range(60):
    labels = torch.randint(2, (BATCH, 1))
    texts = (labels + torch.rand(BATCH, LENGTH) ** 3) * WORDS / 2
    optimizer.zero_grad()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(model(texts.long()), labels.float())
    loss.backward()  # starts the sums of gradients; the embedding's are sent as rows
    optimizer.step()
    losses.append(hvd.allreduce(loss.detach()).item())
    if hvd.rank() == 0 and step % 20 == 19:
        print(f"step {step + 1}: loss {sum(losses[-20:]) / 20:.3f}")
if hvd.rank() == 0 and sum(losses[-20:]) < 0.8 * sum(losses[:20]):
    print(f"the loss fell on {hvd.size()} ranks")
