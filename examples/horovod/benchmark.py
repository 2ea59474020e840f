# SPDX-License-Identifier: BSD-3-Clause
"""Measure how many samples a second a model trains with, on invented data: a program for Horovod, of which
only the import line has changed.

    mpiexec -n 4 python3 benchmark.py --batch-size 64
"""

import argparse
import timeit

import torch

import mpix_sparse.torch as hvd


def parse(arguments=None):
    parser = argparse.ArgumentParser(description="Measure training on invented data.")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--num-warmup-batches", type=int, default=5)
    parser.add_argument("--num-batches-per-iter", type=int, default=5)
    parser.add_argument("--num-iters", type=int, default=4)
    parser.add_argument("--fp16-allreduce", action="store_true", help="send gradients as 16 bits")
    parser.add_argument("--use-adasum", action="store_true")
    parser.add_argument("--no-cuda", action="store_true")
    return parser.parse_args(arguments)


def make_model():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2),
        hvd.SyncBatchNorm(8),
        torch.nn.ReLU(),
        torch.nn.Conv2d(8, 16, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(16 * 7 * 7, 10),
    )


def log(text):
    if hvd.rank() == 0:
        print(text)


def main(arguments=None):
    args = parse(arguments)
    hvd.init()
    cuda = not args.no_cuda and torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(hvd.local_rank())
    torch.manual_seed(hvd.rank())
    model = make_model()
    lr_scaler = 1 if args.use_adasum else hvd.size()
    if cuda:
        model.cuda()
        if args.use_adasum and hvd.nccl_built():
            lr_scaler = hvd.local_size()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * lr_scaler)
    optimizer = hvd.DistributedOptimizer(
        optimizer,
        named_parameters=model.named_parameters(),
        compression=hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none,
        op=hvd.Adasum if args.use_adasum else hvd.Average,
    )
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    data, target = torch.randn(args.batch_size, 3, 32, 32), torch.randint(10, (args.batch_size,))
    if cuda:
        data, target = data.cuda(), target.cuda()

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(data), target).backward()
        optimizer.step()

    timeit.timeit(step, number=args.num_warmup_batches)
    rates = []
    for i in range(args.num_iters):
        seconds = timeit.timeit(step, number=args.num_batches_per_iter)
        rates.append(args.batch_size * args.num_batches_per_iter / seconds)
        log(f"iteration {i}: {rates[-1]:.1f} samples/s on rank 0")
    total = hvd.size() * sum(rates) / len(rates)
    log(f"total of {hvd.size()} ranks: {total:.1f} samples/s")
    return model, rates


if __name__ == "__main__":
    main()
