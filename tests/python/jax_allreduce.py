# SPDX-License-Identifier: BSD-3-Clause
"""Test mpix_sparse.jax: compilation, gradients, vmap, types, order of calls, BCOO, errors on all ranks."""

import os
import re
import unittest
import unittest.mock

import numpy
from common import main, need, skip_file

os.environ["JAX_PLATFORMS"] = "cpu"
jax = need("jax", "none; pip install jax")
need("jax.ffi", "none; pip install 'jax>=0.5'")

import jax.numpy as jnp  # noqa: E402
from jax.experimental.sparse import BCOO, BCSR  # noqa: E402

import mpix_sparse  # noqa: E402
import mpix_sparse.jax as mpx  # noqa: E402
from mpix_sparse.jax import _calls, _ffi  # noqa: E402

jax.config.update("jax_enable_x64", True)
RANK, SIZE = mpx.rank(), mpx.size()
RANKS = SIZE * (SIZE - 1) // 2  # the sum of all ranks
if SIZE > 3:
    skip_file("XLA compiles everything on every rank, which takes minutes on more than 3")
FAILURE = jax.errors.JaxRuntimeError
X = jnp.arange(6, dtype="float32").reshape(2, 3) + RANK
SUM = SIZE * numpy.arange(6).reshape(2, 3) + RANKS
FLOATS = "float16", "bfloat16", "float32", "float64"
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


class Recorded:
    """Records the sizes of dense calls in the order in which they run."""

    def __enter__(self):
        self.plain, self.sizes = _calls.KINDS["allreduce"], []

        def record(prepared, *arguments):
            self.sizes.append(prepared.call.numbers)
            self.plain(prepared, *arguments)

        _calls.KINDS["allreduce"] = record
        return self.sizes

    def __exit__(self, *unused):
        jax.effects_barrier()
        _calls.KINDS["allreduce"] = self.plain


class Dense(unittest.TestCase):
    def equal(self, found, expected):
        numpy.testing.assert_array_equal(numpy.asarray(found), expected)

    def test_jit(self):
        self.equal(mpx.allreduce(X), SUM)
        self.equal(jax.jit(lambda x: mpx.allreduce(2 * x) + 1)(X), 2 * SUM + 1)
        with jax.disable_jit():
            self.equal(mpx.allreduce(X), SUM)

    def test_ops(self):
        self.equal(jax.jit(lambda x: mpx.allreduce(x, "max"))(X), X - RANK + SIZE - 1)
        self.equal(jax.jit(lambda x: mpx.allreduce(x, "min"))(X), X - RANK)
        bits = jnp.array([1 << RANK, 7], "uint32")
        self.equal(jax.jit(lambda x: mpx.allreduce(x, "bor"))(bits), [(1 << SIZE) - 1, 7])

    def test_types(self):
        for name in FLOATS + INTEGERS + ("complex64", "complex128"):
            found = jax.jit(mpx.allreduce)(jnp.array([RANK, 0, 2], name))
            self.assertEqual(found.dtype, name)
            self.equal(found.astype("complex64"), [RANKS, 0, 2 * SIZE])
        found = mpx.allreduce(jnp.array([RANK == 0, False]), "lor")
        self.equal(found, [True, False])

    def test_large_halves(self):
        for name in ("float16", "bfloat16"):
            self.equal(mpx.allreduce(jnp.zeros(30000, name).at[RANK].set(0.5)).sum(), 0.5 * SIZE)

    def test_shapes(self):
        self.equal(jax.jit(mpx.allreduce)(3.0), 3 * SIZE)
        self.assertEqual(mpx.allreduce(jnp.zeros((3, 0))).shape, (3, 0))
        self.equal(jax.jit(mpx.allreduce)(X.T), SUM.T)

    def test_settings(self):
        mpx.set_info(scheme="balanced")
        jax.jit(lambda x: mpx.allreduce_coo([RANK], x, 1000))(jnp.ones(1, "bfloat16"))
        self.assertEqual(mpx.report("bfloat16").scheme, "balanced")
        mpx.set_info(scheme="auto")
        with self.assertRaisesRegex(ValueError, "element"):
            mpx.set_info(element="fp16")

    def test_persistent_text(self):
        text = jax.jit(lambda x: mpx.allreduce(x)).lower(X).as_text()
        self.assertIn("'allreduce', 'sum', 0, 'float32', (2, 3)", text)


class Gradients(unittest.TestCase):
    equal = Dense.equal

    def test_reverse(self):
        for wrap in (lambda f: f, jax.jit):
            found = wrap(jax.grad(lambda x: (mpx.allreduce(x) ** 2).sum() / SIZE))(X)
            self.equal(found, 2 * SUM)
        # The gradient of a function that differs between ranks is the sum over ranks.
        self.equal(jax.grad(lambda x: RANK * mpx.allreduce(x).sum())(X), numpy.full((2, 3), RANKS))

    def test_forward(self):
        value, tangent = jax.jit(lambda x: jax.jvp(mpx.allreduce, (x,), (jnp.ones_like(x),)))(X)
        self.equal(value, SUM)
        self.equal(tangent, numpy.full((2, 3), SIZE))
        self.equal(jax.linear_transpose(mpx.allreduce, X)(X)[0], SUM)

    def test_second(self):
        cube = jax.hessian(lambda x: (mpx.allreduce(x) ** 3).sum())
        total = RANKS + SIZE
        self.equal(cube(jnp.ones(1) + RANK), [[6 * total * SIZE**2]])

    def test_loops(self):
        def function(x):
            return jax.lax.scan(lambda c, _: (mpx.allreduce(c), 0), x, None, length=3)[0].sum()

        self.equal(jax.jit(jax.grad(function))(X), numpy.full((2, 3), SIZE**3))

    def test_checkpoint(self):
        function = jax.checkpoint(lambda x: (jnp.sin(mpx.allreduce(x)) ** 2).sum())
        expected = SIZE * numpy.sin(2 * SUM.astype("float32"))
        numpy.testing.assert_allclose(jax.jit(jax.grad(function))(X), expected, rtol=1e-4)

    def test_undefined(self):
        with self.assertRaisesRegex(NotImplementedError, "op 'max' is not defined"):
            jax.grad(lambda x: mpx.allreduce(x, "max").sum())(X)
        with self.assertRaisesRegex(NotImplementedError, "op 'max' is not defined"):
            jax.grad(lambda v: mpx.allreduce_coo([0, 1], v, 9, "max").values.sum())(X[0, :2])

    def test_vmap(self):
        with Recorded() as sizes:
            self.equal(jax.jit(jax.vmap(mpx.allreduce, in_axes=1, out_axes=1))(X), SUM)
        self.assertEqual(sizes, [6])
        with self.assertRaisesRegex(NotImplementedError, "allreduce_coo has no vmap"):
            jax.vmap(lambda v: mpx.allreduce_coo([0, 1, 2], v, 9).values)(X)

    def test_coordinates(self):
        indices, values = jnp.array([7, RANK, 10, 7]), jnp.array([1.0, 2.0, 3.0, 4.0])

        def function(values):
            found = mpx.allreduce_coo(indices, values, 10, capacity=6)
            return (found.values**2).sum() / SIZE

        self.equal(jax.jit(jax.grad(function))(values), [10 * SIZE, 4, 0, 10 * SIZE])
        _, tangent = jax.jvp(function, (values,), (jnp.ones(4),))
        self.equal(tangent, (2 * 5 * 2 * SIZE**2 + 4 * SIZE) / SIZE)


class Order(unittest.TestCase):
    equal = Dense.equal

    def test_program_order(self):
        """Calls on independent arrays, some of whose results are unused."""
        sizes = list(numpy.random.default_rng(1).permutation(40) + 1)

        @jax.jit
        def program(x):
            return [mpx.allreduce(x[:size]) for size in sizes][RANK].sum()

        with Recorded() as found:
            self.assertEqual(program(jnp.ones(40)), SIZE * sizes[RANK])
        self.assertEqual(found, sizes)

    def test_between_functions(self):
        slow = jax.jit(lambda x: mpx.allreduce((x @ x @ x)[0]))
        fast = jax.jit(mpx.allreduce)
        with Recorded() as found:
            for _ in range(5):
                slow(jnp.ones((500, 500)))
                fast(jnp.ones(3))
        self.assertEqual(found, 5 * [500, 3])

    def test_loops(self):
        def body(carry, _):
            first, second = mpx.allreduce(carry) / SIZE, mpx.allreduce(jnp.ones(2))
            return first, second[0]

        with Recorded() as found:
            last, seconds = jax.jit(lambda x: jax.lax.scan(body, x, None, length=100))(X)
            loop = jax.jit(lambda x: jax.lax.fori_loop(0, 100, lambda i, c: mpx.allreduce(c) / SIZE, x))
            self.equal(loop(X), numpy.asarray(last))
        numpy.testing.assert_allclose(last, SUM / SIZE, rtol=1e-5)
        self.equal(seconds, numpy.full(100, SIZE))
        self.assertEqual(found, 100 * [6, 2] + 100 * [6])

    def test_branches(self):
        function = jax.jit(lambda x: jax.lax.cond(x[0, 0] >= 0, mpx.allreduce, lambda x: x, x))
        self.equal(function(X), SUM)
        counted = jax.jit(lambda x: jax.lax.while_loop(lambda c: c[0] < 9, lambda c: mpx.allreduce(c) + 1, x))
        expected = 1
        while expected < 9:
            expected = SIZE * expected + 1
        self.equal(counted(jnp.ones(1)), [expected])

    def test_tokens(self):
        @jax.jit
        def program(x):
            first, token = mpx.allreduce(x, token=mpx.create_token())
            (indices, values, nnz), token = mpx.allreduce_coo([RANK], x[0, :1], 9, token=token)
            last, token = mpx.allreduce(x, "max", token=token)
            return first, indices, last, token

        first, indices, last, token = program(X)
        self.equal(first, SUM)
        self.equal(indices, range(SIZE))
        self.equal(last, X - RANK + SIZE - 1)
        self.assertEqual(token, 0)
        with self.assertRaisesRegex(TypeError, "token must be None"):
            mpx.allreduce(X, token=1.0)
        gradient = jax.grad(lambda x: mpx.allreduce(x, token=mpx.create_token())[0].sum())
        self.equal(gradient(X), numpy.full((2, 3), SIZE))

    def test_barrier(self):
        found = jax.jit(lambda x: mpx.allreduce(x @ x))(jnp.ones((400, 400)))
        mpx.barrier()
        self.equal(mpix_sparse.allreduce(numpy.asarray(found[0, :3])), 3 * [400 * SIZE**2])


class Coordinates(unittest.TestCase):
    equal = Dense.equal

    def test_types(self):
        pairs = [(index_type, "float32") for index_type in ("int32", "int64", "uint32", "uint64")]
        for index_type, name in pairs + [("int32", name) for name in FLOATS + INTEGERS]:
            indices, values = jnp.array([7, 2, 2], index_type), jnp.array([RANK, 1, 3], name)
            found = mpx.allreduce_coo(indices, values, 9, capacity=4)
            self.assertEqual((found.indices.dtype, found.values.dtype), (index_type, name))
            self.equal(found.indices, [2, 7, 9, 9])
            self.equal(found.values.astype("float32"), [4 * SIZE, RANKS, 0, 0])
            self.assertEqual(found.nnz, 2)

    def test_rows_and_padding(self):
        indices = jnp.array([9, 5, 9, RANK])
        found = mpx.allreduce_coo(indices, jnp.ones((4, 2, 3), "bfloat16"), 9)
        self.assertEqual(found.values.shape, (min(4 * SIZE, 9), 2, 3))
        self.equal(found.indices[: SIZE + 1], [*range(SIZE), 5])
        self.equal(found.values[:, 1, 2].astype("float32").sum(), 2 * SIZE)
        again = mpx.allreduce_coo(found.indices, found.values, 9, "max", capacity=SIZE + 1)
        self.equal(again.indices, [*range(SIZE), 5])

    def test_no_elements(self):
        here = 0 if RANK else 2
        found = mpx.allreduce_coo(jnp.arange(here), jnp.ones(here), 9, capacity=3)
        self.equal(found.indices, [0, 1, 9])
        self.assertEqual(mpx.allreduce_coo(jnp.array([9]), jnp.ones(1), 9).nnz, 0)

    def test_bcoo(self):
        indices = jnp.array([[0, 1], [RANK, 2], [4, 3]])
        matrix = BCOO((jnp.array([1.0, 2.0, 5.0]), indices), shape=(4, 3))
        found = jax.jit(mpx.allreduce)(matrix)
        dense = numpy.zeros((4, 3))
        dense[:SIZE, 2], dense[0, 1] = 2, SIZE
        self.equal(found.todense(), dense)
        self.assertEqual(found.nse, min(3 * SIZE, 12))
        self.equal(jax.jit(lambda m: mpx.allreduce(m, capacity=5) @ jnp.ones(3))(matrix), dense.sum(1))

    def test_bcoo_rows(self):
        matrix = BCOO((jnp.ones((2, 5)), jnp.array([[RANK], [8]])), shape=(9, 5))
        self.equal(mpx.allreduce(matrix).todense()[8], 5 * [SIZE])

        def function(data):
            reduced = mpx.allreduce(BCOO((data, matrix.indices), shape=(9, 5)))
            return (reduced.todense() ** 2).sum() / SIZE

        self.equal(jax.jit(jax.grad(function))(matrix.data), [5 * [2], 5 * [2 * SIZE]])


class Errors(unittest.TestCase):
    equal = Dense.equal

    def tearDown(self):
        mpx.barrier()
        self.equal(mpx.allreduce(X), SUM)
        self.assertEqual(mpx.allreduce_coo([3], [1.0], 9, capacity=2).nnz, 1)

    def mismatch(self, first, second, function, *arguments):
        """The calls of rank 0 and of the next one differ; the error describes both on all ranks."""
        if SIZE == 1:
            self.skipTest("takes two ranks")
        sentence = f"calls of ranks differ: {first} on rank 0, and {second} on rank 1"
        with self.assertRaisesRegex(FAILURE, re.escape(sentence)):
            jax.block_until_ready(jax.jit(function)(*arguments))

    def test_capacity(self):
        call = jax.jit(lambda i: mpx.allreduce_coo(i, jnp.ones(2), 100, capacity=SIZE))
        with self.assertRaisesRegex(FAILURE, f"has {SIZE + 1} elements, and capacity is {SIZE}"):
            jax.block_until_ready(call(jnp.array([RANK, 50])))
        self.equal(call(jnp.array([RANK, 100])).indices, range(SIZE))

    def test_index(self):
        call = jax.jit(lambda i: mpx.allreduce_coo(i, jnp.ones(2), 100, capacity=5))
        with self.assertRaisesRegex(FAILURE, "argument indices holds 101"):
            jax.block_until_ready(call(jnp.array([3, 101 if RANK == SIZE - 1 else 4])))
        self.assertEqual(call(jnp.array([3, 4])).nnz, 2)

    def test_mismatch(self):
        dense, coordinates = "allreduce({}, {!r})".format, "allreduce_coo(int64 indices, {})".format
        matrix, vector = "float32[2, 3]", "float32[3]"
        self.mismatch(
            dense(matrix, "sum"),
            dense(matrix, "max"),
            lambda x: mpx.allreduce(x, "max" if RANK else "sum"),
            X,
        )
        sizes = dense("float32[4]", "sum"), dense(vector, "sum")
        self.mismatch(*sizes, mpx.allreduce, jnp.ones(3 + (RANK == 0), "float32"))
        types = dense("int32[3]", "sum"), dense(vector, "sum")
        self.mismatch(*types, mpx.allreduce, jnp.ones(3, "float32" if RANK else "int32"))
        elements = "float32[] elements, 9, 'sum', capacity={}".format
        one = jnp.ones(1, "float32")
        self.mismatch(
            coordinates(elements(2)),
            coordinates(elements(3)),
            lambda x: mpx.allreduce_coo([RANK], x, 9, capacity=2 + RANK),
            one,
        )
        self.mismatch(
            dense("float32[1]", "sum"),
            coordinates(elements(SIZE)),
            lambda x: mpx.allreduce_coo([0], x, 9) if RANK else mpx.allreduce(x),
            one,
        )

    def test_asynchronous(self):
        """The error of a call that XLA runs later."""
        sizes = "allreduce(float32[640000], 'sum')", "allreduce(float32[639999], 'sum')"
        self.mismatch(
            *sizes, lambda x: mpx.allreduce((x @ x).ravel()[RANK:]), jnp.ones((800, 800), "float32")
        )

    def test_rest_of_function(self):
        """Calls after one that fails do not run."""

        @jax.jit
        def program(x):
            found = mpx.allreduce_coo([RANK, 50], x[0, :2], 100, capacity=SIZE)
            return found.values, mpx.allreduce(x), mpx.allreduce(x[0])

        with Recorded() as sizes:
            with self.assertRaisesRegex(FAILURE, "capacity"):
                jax.block_until_ready(program(X))
            mpx.barrier()
        self.assertEqual(sizes, [])

    def test_exception_on_one_rank(self):
        if SIZE == 1:
            self.skipTest("takes two ranks")
        plain = _calls._without_padding
        if RANK == 0:
            _calls._without_padding = None
        with self.assertRaisesRegex(FAILURE, "NoneType" if RANK == 0 else "rank 0 has .*NoneType"):
            jax.block_until_ready(mpx.allreduce_coo([3], [1.0], 9))
        _calls._without_padding = plain

    def test_arguments(self):
        values = jnp.ones(2)
        for error, sentence, call in (
            (ValueError, "op is 'mean'", lambda: mpx.allreduce(X, "mean")),
            (TypeError, "x holds complex64: op 'max'", lambda: mpx.allreduce(X + 0j, "max")),
            (TypeError, "x holds float8_e5m2", lambda: mpx.allreduce(X.astype("float8_e5m2"))),
            (ValueError, "capacity is for BCOO", lambda: mpx.allreduce(X, capacity=3)),
            (TypeError, "comm must be None", lambda: mpx.allreduce(X, comm=3)),
            (ValueError, "2 indices, and values", lambda: mpx.allreduce_coo([1, 2], [1.0], 9)),
            (ValueError, "2 dimensions", lambda: mpx.allreduce_coo([[1, 2]], [1.0], 9)),
            (TypeError, "indices hold float", lambda: mpx.allreduce_coo(values, values, 9)),
            (TypeError, "complex", lambda: mpx.allreduce_coo([1, 2], values + 0j, 9)),
            (ValueError, "count is 0", lambda: mpx.allreduce_coo([1, 2], values, 0)),
            (TypeError, "count is 9.5", lambda: mpx.allreduce_coo([1, 2], values, 9.5)),
            (ValueError, "capacity is 0", lambda: mpx.allreduce_coo([1, 2], values, 9, capacity=0)),
            (ValueError, "batch dim", lambda: mpx.allreduce(BCOO.fromdense(X, n_batch=1))),
            (
                TypeError,
                "x is a dict; an array or a BCOO is taken; jax.tree.map",
                lambda: mpx.allreduce({"w": X}),
            ),
            (TypeError, "x is a tuple; .* jax.tree.map", lambda: jax.jit(mpx.allreduce)((X, X))),
            (TypeError, "x is a NoneType; .* jax.tree.map", lambda: mpx.allreduce(None)),
            (TypeError, "x is a BCSR; .* BCOO.from_bcsr", lambda: mpx.allreduce(BCSR.fromdense(X))),
            (TypeError, "x is a str; an array or a BCOO", lambda: mpx.allreduce("weights")),
            (
                TypeError,
                "indices is a BCOO; an array",
                lambda: mpx.allreduce_coo(BCOO.fromdense(X), values, 9),
            ),
            (TypeError, "op is \\['sum'\\]; it must be a name", lambda: mpx.allreduce(X, ["sum"])),
        ):
            with self.assertRaisesRegex(error, sentence):
                call()

    def test_thread_level(self):
        with unittest.mock.patch("mpix_sparse._mpi.allows_threads", lambda: False):
            with unittest.mock.patch("mpix_sparse.jax._world._worlds", []):
                with self.assertRaisesRegex(mpix_sparse.Error, "without MPI_THREAD_MULTIPLE"):
                    mpx.allreduce(X)

    def test_device(self):
        import jax.export

        exported = jax.export.export(jax.jit(lambda x: mpx.allreduce(x)), platforms=["rocm"])
        with self.assertRaisesRegex(NotImplementedError, "on the CPU or CUDA, and this program is for rocm"):
            exported(X)

    def test_versions(self):
        header = "#define XLA_FFI_API_MAJOR {}\n#define XLA_FFI_API_MINOR 7\n"
        self.assertEqual(_ffi.api_version(header.format(0)), (0, 7))
        with self.assertRaisesRegex(ImportError, "version 1.7 of XLA's FFI, and mpix_sparse.jax knows 0.x"):
            _ffi.api_version(header.format(1))


if __name__ == "__main__":
    main()
