# SPDX-License-Identifier: BSD-3-Clause
"""Test random sequences of calls of torch.distributed: their results equal Gloo's.

Each sequence has a seed, which is printed. All ranks make the calls of a sequence in one order, some of them
asynchronous, and wait for them in an order of their own.

    SAR_TEST_SEQUENCES    number of sequences            [40]
    SAR_TEST_SEED         seed of the first sequence     [1]
"""

import faulthandler
import os
import sys
import unittest

from common import draw, main, need

torch = need("torch", "python3-torch")
need("torch.distributed.distributed_c10d", "python3-torch")

import mpix_sparse.torch  # noqa: E402, F401

dist = torch.distributed
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
dist.init_process_group("mpix_sparse", init_method="mpix://")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
GLOO = dist.new_group(backend="gloo")
SEQUENCES = int(os.environ.get("SAR_TEST_SEQUENCES", "40"))
FIRST = int(os.environ.get("SAR_TEST_SEED", "1"))
SECONDS = 60  # for one sequence
COUNTS = 1, 2, 7, 255, 256, 257, 511, 513, 2049, 20000
TYPES = torch.float32, torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8, torch.float16
OPS = dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN, dist.ReduceOp.PRODUCT


class Step:
    """One call: its arguments, equal on all ranks, and this rank's tensor."""

    def __init__(self, seed, number):
        common, mine = draw(1000 * seed + number), draw(1000 * seed + number, RANK)
        pick = lambda items: items[common.integers(len(items))]  # noqa: E731
        self.call, self.op, self.later = pick(CALLS), pick(OPS), bool(common.integers(2))
        self.count, self.dtype = pick(COUNTS), pick(TYPES)
        self.root, self.peer = common.integers(SIZE), common.integers(SIZE)
        self.sparse = bool(common.integers(3) == 0) and self.call in SPARSE
        if self.sparse:
            self.op, self.dtype = dist.ReduceOp.SUM, torch.float32
        values = mine.integers(1, 3, self.count) * (mine.random(self.count) < pick((1.0, 0.3)))
        self.values = torch.from_numpy(values)

    def __str__(self):
        kind = "sparse" if self.sparse else "dense"
        how = f"{self.op}, root {self.root}, peer {self.peer}{', later' if self.later else ''}"
        return f"{self.call.__name__} of {self.count} x {self.dtype}, {kind}, {how}"

    def tensor(self, sparse=False):
        made = self.values.to(self.dtype)
        return made.to_sparse() if sparse else made

    def empty(self):
        return [torch.zeros(self.count, dtype=self.dtype) for _ in range(SIZE)]


def all_reduce(step, group, sparse):
    tensor = step.tensor(sparse)
    return dist.all_reduce(tensor, step.op, group, async_op=True), [tensor]


def reduce(step, group, sparse):
    tensor = step.tensor(sparse)
    work = dist.reduce(tensor, int(step.root), step.op, group, async_op=True)
    return work, [tensor] if step.root == RANK else []


def broadcast(step, group, sparse):
    tensor = step.tensor(sparse)
    return dist.broadcast(tensor, int(step.root), group, async_op=True), [tensor]


def all_gather(step, group, sparse):
    outputs = step.empty()
    if sparse:
        outputs = [output.to_sparse() for output in outputs]
    return dist.all_gather(outputs, step.tensor(sparse), group, async_op=True), outputs


def gather(step, group, sparse):
    outputs = step.empty() if step.root == RANK else None
    return dist.gather(step.tensor(), outputs, int(step.root), group, async_op=True), outputs or []


def scatter(step, group, sparse):
    output = step.empty()[0]
    inputs = [step.tensor() + rank for rank in range(SIZE)] if step.root == RANK else None
    return dist.scatter(output, inputs, int(step.root), group, async_op=True), [output]


def send(step, group, sparse):
    """A message from the root to the peer, or none."""
    output = step.tensor()
    if step.root != step.peer and RANK == step.root:
        return dist.isend(output, int(step.peer), group), []
    if step.root != step.peer and RANK == step.peer:
        return dist.irecv(output, int(step.root), group), [output]
    return None, []


def barrier(step, group, sparse):
    return dist.barrier(group, async_op=True), []


def then(step, group, sparse):
    """Two reductions, of which a callback starts the second. Gloo's callbacks have no order, so that the
    reference waits for the first."""
    work, (tensor,) = all_reduce(step, group, False)
    if group is not None:
        work.wait()
        return dist.all_reduce(tensor, group=group, async_op=True), [tensor]
    again = lambda future: dist.all_reduce(future.value()[0], async_op=True).get_future()  # noqa: E731
    return work.get_future().then(lambda future: again(future).wait()), [tensor]


def callback(step, group, sparse):
    """A reduction whose result a callback changes."""
    work, (tensor,) = all_reduce(step, group, False)
    if group is not None:
        work.wait()
        tensor += 1
        return None, [tensor]
    return work.get_future().then(lambda future: future.value()[0].add_(1)), [tensor]


CALLS = (
    all_reduce,
    all_reduce,
    reduce,
    broadcast,
    all_gather,
    gather,
    scatter,
    send,
    barrier,
    then,
    callback,
)
SPARSE = all_reduce, reduce, broadcast, all_gather


def run(steps, seed):
    """The results of the calls on this backend; asynchronous ones are waited for at the end."""
    results, waiting, order = [], [], draw(seed, RANK)
    for step in steps:
        work, outputs = step.call(step, None, step.sparse)
        results.append(outputs)
        waiting.append(work)
        if not step.later and work is not None:
            work.wait()
    for i in order.permutation(len(waiting)):
        if waiting[i] is not None:
            waiting[i].wait()
    return results


def expected(step):
    work, outputs = step.call(step, GLOO, False)
    if work is not None:
        work.wait()
    return outputs


class Sequences(unittest.TestCase):
    def test_sequences(self):
        for seed in range(FIRST, FIRST + SEQUENCES):
            steps = [Step(seed, number) for number in range(draw(seed).integers(2, 11))]
            if RANK == 0:
                print(f"seed {seed}: {len(steps)} calls", file=sys.stderr, flush=True)
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            for step, ours, theirs in zip(steps, run(steps, seed), map(expected, steps)):
                for mine, other in zip(ours, theirs):
                    same = torch.equal(mine.to_dense() if mine.is_sparse else mine, other)
                    self.assertTrue(same, f"seed {seed}: {step}: {mine} and not {other}")
            faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main()
