# SPDX-License-Identifier: BSD-3-Clause
"""Test broadcasts of parameters that differ between ranks: all ranks get an exception that names one."""

import unittest

from common import main, need

torch = need("torch", "python3-torch")
import mpix_sparse.torch as hvd  # noqa: E402

hvd.init()
LAST, SIZE = hvd.rank() == hvd.size() - 1, hvd.size()


class Parameters(unittest.TestCase):
    def differs(self, sentence, mine, others):
        """Check that all ranks get the sentence if the last rank has other parameters."""
        if SIZE == 1:
            self.skipTest("takes two ranks")
        with self.assertRaisesRegex(ValueError, sentence):
            hvd.broadcast_parameters(mine if LAST else others)
        tensor = torch.full((3,), float(hvd.rank()))
        hvd.broadcast_parameters({"a": tensor}, root_rank=SIZE - 1)
        self.assertTrue((tensor == SIZE - 1).all())

    def test_shape(self):
        model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 4 if LAST else 5))
        where = rf"\(5,\) on rank 0, and .* \(4,\) on rank {SIZE - 1}"
        parameters = model.state_dict()
        self.differs(f"parameter '1.bias' is float32 of shape {where}", parameters, parameters)

    def test_type(self):
        sentence = "parameter 'b' is float64 of shape .2,. on rank 0, and float32"
        self.differs(
            sentence,
            {"a": torch.ones(1), "b": torch.ones(2)},
            {"a": torch.ones(1), "b": torch.ones(2).double()},
        )

    def test_missing(self):
        sentence = f"parameter 'b' is float32 of shape .* on rank 0, and missing on rank {SIZE - 1}"
        self.differs(sentence, {"a": torch.ones(1)}, {"a": torch.ones(1), "b": torch.ones(2)})
        sentence = f"parameter 'b' is missing on rank 0, and float32 .* on rank {SIZE - 1}"
        self.differs(sentence, {"a": torch.ones(1), "b": torch.ones(2)}, {"a": torch.ones(1)})

    def test_name(self):
        sentence = f"parameter 0 is 'a' on rank 0, and 'b' on rank {SIZE - 1}"
        self.differs(sentence, {"b": torch.ones(1)}, {"a": torch.ones(1)})

    def test_layout(self):
        sparse = {"a": torch.eye(2).to_sparse()}
        sentence = "parameter 'a' is .*on rank 0, and .* in layout torch.sparse_coo"
        self.differs(sentence, sparse, {"a": torch.eye(2)})


if __name__ == "__main__":
    main()
