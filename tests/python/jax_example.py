# SPDX-License-Identifier: BSD-3-Clause
"""Test that examples/jax learns, with the same weights on all ranks, as one process does with all samples."""

import contextlib
import io
import os
import sys

import numpy
from common import need

os.environ["JAX_PLATFORMS"] = "cpu"
jax = need("jax", "none; pip install jax")
need("jax.ffi", "none; pip install 'jax>=0.5'")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/jax"))

import train  # noqa: E402

import mpix_sparse  # noqa: E402

STEPS = 20


def train_alone():
    """The weights after training without communication, on all samples."""
    features, labels = train.make_samples(0, 1)
    weights = jax.numpy.zeros(train.FEATURES)
    gradient = jax.jit(jax.grad(lambda weights: train.loss(weights[features], labels)))
    for _ in range(STEPS):
        weights = weights - train.RATE * gradient(weights)
    return weights


with contextlib.redirect_stdout(io.StringIO()) as printed:
    weights, losses = train.main(STEPS)
assert len(losses) == STEPS and losses[-1] < 0.7 * losses[0], losses
assert (printed.getvalue().count("loss") == 2) == (mpix_sparse.rank() == 0), printed.getvalue()
weights = numpy.asarray(weights)
assert (mpix_sparse.allreduce(weights, "max") == mpix_sparse.allreduce(weights, "min")).all()
numpy.testing.assert_allclose(weights, train_alone(), rtol=1e-3, atol=1e-5)
