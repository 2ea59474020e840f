# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of torch.distributed share: the process group, tensors of each pair of ranks, a comparison.
The import skips the test program if there is no torch.distributed."""

import os
import unittest
import warnings

from common import need

torch = need("torch", "python3-torch")
need("torch.distributed.distributed_c10d", "python3-torch")

import mpix_sparse.torch  # noqa: E402, F401

dist = torch.distributed
warnings.simplefilter("ignore")  # PyTorch's, about versions to come
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
dist.init_process_group("mpix_sparse", init_method="mpix://")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
RANKS = range(SIZE)
NEW = hasattr(dist, "device_mesh")  # backends in Python, and so groups with names


def tensor(source, target, shape=(5, 3), dtype=torch.float32):
    """Small integers that a rank has for another."""
    generator = torch.Generator().manual_seed(100 * source + target)
    return torch.randint(-4, 5, shape, generator=generator).to(dtype)


class Collectives(unittest.TestCase):
    """A test that compares tensors, dense or sparse."""

    def equal(self, ours, theirs):
        self.assertTrue(torch.equal(ours.to_dense(), theirs.to_dense()), f"{ours} is not {theirs}")
