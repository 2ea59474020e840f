#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Data-parallel logistic regression with jax: each sample has few features of many, so gradients are sparse.

    mpiexec -n 4 python3 examples/jax/train.py

All ranks reduce indices and values inside the compiled step, and so hold the same weights.
"""

import functools

import jax
import jax.numpy as jnp
import numpy

import mpix_sparse.jax as mpx

FEATURES, PRESENT, SAMPLES, RATE = 100_000, 20, 4096, 20.0


def make_samples(rank, size):
    """This rank's samples: features of shape (samples, PRESENT), the first ones more often, and labels."""
    random = numpy.random.default_rng(1)
    features = (FEATURES * random.random((SAMPLES, PRESENT)) ** 2).astype("int32")
    labels = random.standard_normal(FEATURES)[features].sum(1) > 0
    return jnp.asarray(features[rank::size]), jnp.asarray(labels[rank::size])


def loss(chosen, labels):
    """The mean loss over all ranks' samples, this rank's share; chosen: weights of its samples' features."""
    margin = jnp.where(labels, 1, -1) * chosen.sum(1)
    return jnp.logaddexp(0, -margin).sum() / SAMPLES


@functools.partial(jax.jit, donate_argnums=0)
def step(weights, features, labels):
    """One step of gradient descent; returns the new weights and the loss before it."""
    value, gradient = jax.value_and_grad(loss)(weights[features], labels)
    capacity = min(FEATURES, SAMPLES * PRESENT)
    total = mpx.allreduce_coo(features.ravel(), gradient.ravel(), FEATURES, capacity=capacity)
    # Padding has the index FEATURES, which is outside of the weights.
    return weights.at[total.indices].add(-RATE * total.values, mode="drop"), mpx.allreduce(value)


def main(steps=50):
    """Train; returns the weights and the losses of all steps."""
    features, labels = make_samples(mpx.rank(), mpx.size())
    weights, losses = jnp.zeros(FEATURES), []
    for number in range(steps):
        weights, value = step(weights, features, labels)
        losses.append(float(value))
        if mpx.rank() == 0 and number % 10 == 9:
            print(f"step {number + 1}: loss {losses[-1]:.4f}")
    return weights, losses


if __name__ == "__main__":
    main()
