# SPDX-License-Identifier: BSD-3-Clause
"""Test errors of torch.distributed's functions and of SyncBatchNorm: they name both sides, or the rank whose
arguments are wrong."""

import re
import unittest

from common import main, need

torch = need("torch", "python3-torch")
need("torch.distributed.distributed_c10d", "python3-torch")

import mpix_sparse  # noqa: E402
import mpix_sparse.torch as hvd  # noqa: E402
from mpix_sparse.torch import _checked  # noqa: E402
from mpix_sparse.torch._tensors import sparse_of  # noqa: E402

dist = torch.distributed
dist.init_process_group("mpix_sparse", init_method="mpix://")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
LAST = SIZE - 1
ODD = RANK == LAST


@unittest.skipIf(SIZE == 1, "one rank has no other")
class Errors(unittest.TestCase):
    def tearDown(self):
        self.assertEqual(hvd.allreduce(torch.ones(3)).tolist(), [1.0] * 3)

    def differ(self, here, there, call):
        with self.assertRaisesRegex(ValueError, f"rank 0 calls {here}, and rank {LAST} calls {there}"):
            call()

    def test_coalesced(self):
        """Lists of different lengths."""
        for lengths, texts in (
            ((2, 3), (r"all_reduce_coalesced\(2 tensors\)", r"all_reduce_coalesced\(3 tensors\)")),
            ((2, 1), (r"all_reduce_coalesced\(2 tensors\)", r"allreduce\(Sum, float32 of 4 elements\)")),
            ((1, 2), (r"allreduce\(Sum, float32 of 4 elements\)", r"all_reduce_coalesced\(2 tensors\)")),
        ):
            tensors = [torch.ones(4) for _ in range(lengths[ODD])]
            self.differ(*texts, lambda tensors=tensors: dist.all_reduce_coalesced(tensors))
        tensors = [torch.ones(4), torch.ones(2)]
        dist.all_reduce_coalesced(tensors)
        self.assertEqual([each.tolist() for each in tensors], [[SIZE] * 4, [SIZE] * 2])

    def test_roots_of_reduce(self):
        for tensor in torch.ones(3), torch.ones(3).half(), torch.eye(3).to_sparse():
            call = lambda tensor=tensor: dist.reduce(tensor, 1 if ODD else 0)  # noqa: E731
            self.differ(r"reduce\(root 0, Sum, .*\)", r"reduce\(root 1, Sum, .*\)", call)
        mine = torch.ones(3)
        call = lambda: dist.reduce(mine, 0) if ODD else dist.all_reduce(mine)  # noqa: E731
        self.differ(r"allreduce\(Sum, .*\)", r"reduce\(root 0, Sum, .*\)", call)

    def test_messages(self):
        """The receiver compares type and size, also of messages that are longer than its tensor."""
        for sent, received in (
            (torch.ones(3), torch.ones(3, dtype=torch.int32)),
            (torch.ones(3), torch.ones(3, dtype=torch.float64)),
            (torch.ones(3, dtype=torch.float64), torch.ones(3)),
            (torch.ones(100000), torch.ones(3)),
            (torch.ones(3), torch.ones(4)),
        ):
            text = f"rank 0 sends {str(sent.dtype)[6:]} of {len(sent)} elements, and this rank receives "
            text += f"{str(received.dtype)[6:]} of {len(received)} elements"
            for source in 0, None:
                if RANK == 0:
                    dist.send(sent, LAST)
                elif ODD:
                    with self.assertRaisesRegex(ValueError, text):
                        dist.recv(received, source)
        good = torch.full((5,), float(RANK))
        if RANK == 0:
            dist.send(good, LAST, tag=7)
        elif ODD:
            dist.recv(good, None, tag=7)
            self.assertEqual(good.tolist(), [0.0] * 5)

    def test_without_dimensions(self):
        """Sparse tensors without sparse dimensions."""
        number = torch.tensor(1.0).to_sparse()
        for call in hvd.allreduce, dist.all_reduce, lambda tensor: dist.reduce(tensor, 0):
            with self.assertRaisesRegex(
                ValueError, "without sparse dimensions cannot be reduced; make it dense"
            ):
                call(number)
            with self.assertRaisesRegex(
                ValueError, "without sparse dimensions cannot be reduced; make it dense"
            ):
                call(number if ODD else torch.ones(1))

    def test_shapes(self):
        """Dense tensors of as many elements. torch.distributed compares their number only, as Gloo does."""
        calls = (
            hvd.allreduce,
            hvd.allreduce_,
            lambda tensor, **how: hvd.synchronize(hvd.allreduce_async(tensor, **how)),
            lambda tensor, **how: hvd.synchronize(hvd.allreduce_async_(tensor, **how)),
        )
        text = r"allreduce\({}, {} of {}\)"
        for shapes, sizes in (
            (((3, 2), (2, 3)), (r"shape \(3, 2\)", r"shape \(2, 3\)")),
            (((3, 2), (6,)), (r"shape \(3, 2\)", "6 elements")),
        ):
            for dtype in torch.float32, torch.bfloat16:
                for op in hvd.Sum, hvd.Average:
                    for call in calls:
                        tensor = torch.ones(shapes[ODD], dtype=dtype)
                        texts = [text.format(op.name, str(dtype)[6:], size) for size in sizes]
                        self.differ(*texts, lambda: call(tensor, op=op))  # noqa: B023
            tensor = torch.ones(shapes[ODD])
            dist.all_reduce(tensor)
            self.assertEqual(tensor.sum(), 6 * SIZE)
        self.assertEqual(hvd.allreduce(torch.ones(2, 3)).shape, (2, 3))

    def test_gradient_of_sparse(self):
        """The gradient of a sparse tensor is the allreduce of the gradient, as that of a dense one."""
        for shape in (6,), (3, 2):
            weight = torch.ones(shape, requires_grad=True)
            reduced = hvd.allreduce(weight.to_sparse(), op=hvd.Sum, prescale_factor=2.0)
            self.assertTrue(reduced.is_sparse and reduced.requires_grad)
            (reduced.to_dense() * (RANK + 1)).sum().backward()
            self.assertTrue(torch.equal(weight.grad, torch.full(shape, float(SIZE * (SIZE + 1)))))
            with self.assertRaisesRegex(RuntimeError, "op Max is not defined"):
                hvd.allreduce(weight.to_sparse(), op=hvd.Max).to_dense().sum().backward()
            with torch.no_grad():
                self.assertFalse(hvd.allreduce(weight.to_sparse()).requires_grad)

    def test_index_outside(self):
        """An index of a tensor with two sparse dimensions that is outside one of them. Its flat index may be
        that of another element."""
        sums = (
            lambda tensor: hvd.allreduce(tensor, op=hvd.Sum),
            lambda tensor: hvd.synchronize(hvd.allreduce_async(tensor, op=hvd.Sum)),
            lambda tensor: hvd.synchronize(hvd.sparse_allreduce_async(tensor, op=hvd.Sum)),
            dist.all_reduce,
        )
        shape, of = torch.Size((5, 5)), f"rank {LAST} has an error in its arguments: "
        for dimension, index in (1, 9), (1, -1), (0, 5), (0, -1):
            place = torch.tensor([[1], [1]])
            place[dimension] = index if ODD else 1
            text = ("" if ODD else of) + f"index {index} of dimension {dimension} is outside the sparse"
            for call in sums:
                with self.assertRaisesRegex(ValueError, re.escape(text)):
                    call(sparse_of(place, torch.ones(1), torch.ones(shape)))
            with self.assertRaises((mpix_sparse.Error, ValueError)):
                hvd.reducescatter(sparse_of(place, torch.ones(1), torch.ones(shape)), op=hvd.Sum)

    def test_batch_norm(self):
        """Wrong inputs, on all ranks and on the last one, and modules that differ."""
        of = f"rank {LAST} has an error in its arguments: "
        module = hvd.SyncBatchNorm(3)
        for wrong, error, text in (
            (torch.ones(4, 2), ValueError, "the input has 2 channels, and num_features is 3"),
            (torch.ones(4), ValueError, "the input has 1 dimensions; it needs 2 or more"),
            (None, TypeError, "a tensor is needed, not NoneType"),
        ):
            with self.assertRaisesRegex(error, text):
                module(wrong)
            with self.assertRaisesRegex(error if ODD else ValueError, text if ODD else of + text):
                module(wrong if ODD else torch.ones(4, 3))
        channels = 2 if ODD else 3
        call = lambda: hvd.SyncBatchNorm(channels)(torch.ones(4, channels))  # noqa: E731
        self.differ("SyncBatchNorm of 3 channels", "SyncBatchNorm of 2 channels", call)

    def test_steps(self):
        """Starts of plans have the name of the function that starts them."""
        found = _checked._of_torch("MPIX_Sparse_allreduce on rank 0 and MPIX_Sparse_plan_start_coo on rank 1")
        self.assertRegex(found, "on rank 0 and a step of DistributedOptimizer or ddp_comm_hook on rank 1$")

    def test_objects(self):
        """The text names the function that the program has called, not only the one that it calls."""
        mine, caller = torch.ones(5), r"broadcast\(.*\) in broadcast_object\(\)"
        call = lambda: hvd.allreduce(mine) if ODD else hvd.broadcast_object(3, 0)  # noqa: E731
        self.differ(caller, "allreduce", call)


if __name__ == "__main__":
    main()
