# SPDX-License-Identifier: BSD-3-Clause
"""Functions shared by the tests. Every rank runs the same tests. A failure on one rank aborts all ranks,
which would hang otherwise."""

import io
import os
import sys
import unittest

import numpy

import mpix_sparse

SKIP = 77


def skip_file(reason):
    """Skip this test program, because a requirement is missing."""
    print(f"SKIP: {reason}")
    sys.exit(SKIP)


def need(name, package):
    """Import a module, or skip this test program."""
    try:
        return need_here(name, package)
    except unittest.SkipTest as reason:
        skip_file(reason)


def need_here(name, package):
    """Import a module, or skip the test that calls this function."""
    try:
        return __import__(name, fromlist=["_"])
    except ImportError as reason:
        raise unittest.SkipTest(f"no {name} for {sys.executable} (Debian: {package}): {reason}") from None


def draw(seed, rank=None):
    """A random generator: equal on all ranks, or different on each."""
    return numpy.random.default_rng([seed, 0 if rank is None else rank + 1])


def whole(count, density, dtype, rank, seed=1):
    """A vector of small integers, mostly zero, so that every order of additions gives the same bits."""
    random = draw(seed, rank)
    values = random.integers(1, 9, count)
    return numpy.where(random.random(count) < density, values, 0).astype(dtype)


def main():
    """Run the tests of the program and exit. Ranks other than the first print only failures."""
    mpix_sparse.init()
    first = mpix_sparse.rank() == 0
    heard = sys.stderr if first else io.StringIO()
    runner = unittest.TextTestRunner(heard, failfast=True, verbosity=2 if first else 0)
    program = unittest.main(exit=False, testRunner=runner, argv=sys.argv[:1])
    if not program.result.wasSuccessful():
        sys.stderr.write("" if first else heard.getvalue())
        sys.stderr.flush()
        os._exit(1)
