# SPDX-License-Identifier: BSD-3-Clause
"""Test that programs for Horovod run with another import line, examples/horovod, and that they train."""

import contextlib
import io
import pathlib
import sys
import unittest

from common import main, need

torch = need("torch", "python3-torch")

import mpix_sparse.torch as hvd  # noqa: E402

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "horovod"
sys.path.insert(0, str(EXAMPLES))

import benchmark  # noqa: E402
import embeddings  # noqa: E402

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
SMALL = "--batch-size 4 --num-warmup-batches 1 --num-batches-per-iter 2 --num-iters 2 --no-cuda".split()


class Scripts(unittest.TestCase):
    def same_on_all_ranks(self, model):
        mine = [parameter.tolist() for parameter in model.parameters()]
        for rank, theirs in enumerate(hvd.allgather_object(mine)):
            self.assertEqual(theirs, mine, f"rank {rank} has another model")

    def test_only_the_import_line(self):
        for path in sorted(EXAMPLES.glob("*.py")):
            lines = [line for line in path.read_text(encoding="utf-8").splitlines() if "mpix" in line]
            self.assertEqual(lines, ["import mpix_sparse.torch as hvd"], path.name)

    def test_benchmark(self):
        adasum = ["--use-adasum"] if SIZE & (SIZE - 1) == 0 else []
        for options in ([], ["--fp16-allreduce"], adasum):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                model, rates = benchmark.main([*SMALL, *options])
            self.assertEqual(len(rates), 2)
            self.assertEqual(f"total of {SIZE} ranks" in printed.getvalue(), RANK == 0)
            self.same_on_all_ranks(model)

    def test_embeddings(self):
        """The classifier learns; the embeddings' gradients stay sparse."""
        for options in ([], ["--fp16-allreduce", "--gradient-predivide-factor", "2"]):
            with contextlib.redirect_stdout(io.StringIO()):
                model, accuracies = embeddings.main(options)
            self.assertGreater(accuracies[-1], 0.7, accuracies)
            self.assertEqual(len(set(hvd.allgather_object(accuracies[-1]))), 1)
            self.assertTrue(model.embedding.weight.grad.is_sparse)
            self.same_on_all_ranks(model)


if __name__ == "__main__":
    main()
