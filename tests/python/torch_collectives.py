# SPDX-License-Identifier: BSD-3-Clause
"""Test reduce_scatter and all_to_all of torch.distributed, dense and sparse, with splits and errors;
reductions with a factor, receives from any source, coalesced calls and barriers with a timeout."""

from datetime import timedelta

from common import main
from common_torch import NEW, RANK, RANKS, SIZE, Collectives, dist, tensor, torch
from mpix_sparse import _mpi

GLOO = dist.new_group(backend="gloo")


def sparse(source, target, shape=(40, 3), sparse_dim=1):
    """A sparse tensor that a rank has for another, not coalesced; empty for every fifth pair."""
    generator = torch.Generator().manual_seed(100 * source + target)
    nnz = 0 if (source + target) % 5 == 4 else 3 + source
    indices = torch.randint(0, min(shape[:sparse_dim]), (sparse_dim, nnz), generator=generator)
    values = torch.randint(1, 5, (nnz, *shape[sparse_dim:]), generator=generator).float()
    return torch.sparse_coo_tensor(indices, values, shape)


def empty_sparse(shape=(40, 3)):
    return torch.sparse_coo_tensor(shape, dtype=torch.float32)


class LikeGloo(Collectives):
    def like_gloo(self, call):
        """Check that `call` gives equal tensors with both backends; Gloo lacks calls in some versions."""
        ours = call(None)
        try:
            theirs = call(GLOO)
        except RuntimeError as reason:
            self.assertRegex(str(reason), "not support|Unsupported|not implemented")
            return ours
        for mine, other in zip(ours, theirs):
            self.equal(mine, other)
        return ours


class AllToAll(LikeGloo):
    def test_lists(self):
        for shape in ((5, 3), (), (0, 2)):
            for dtype in (torch.float32, torch.int64, torch.bfloat16, torch.bool, torch.complex64):

                def call(group, shape=shape, dtype=dtype):
                    outputs = [torch.empty(shape, dtype=dtype) for _ in RANKS]
                    dist.all_to_all(outputs, [tensor(RANK, to, shape, dtype) for to in RANKS], group=group)
                    return outputs

                for source, output in enumerate(self.like_gloo(call)):
                    self.equal(output, tensor(source, RANK, shape, dtype))

    def test_lists_of_several_sizes(self):
        """Also of 0 elements, and of tensors that are not contiguous."""
        size = lambda source, target: (3 * source + target, 2)  # noqa: E731

        outputs = [torch.empty(size(source, RANK)[::-1]).t() for source in RANKS]
        inputs = [tensor(RANK, to, size(RANK, to)).t().contiguous().t() for to in RANKS]
        dist.all_to_all(outputs, inputs)
        for source, output in enumerate(outputs):
            self.equal(output, tensor(source, RANK, size(source, RANK)))

    def test_single(self):
        def call(group):
            output = torch.empty(2 * SIZE, 3)
            dist.all_to_all_single(output, torch.cat([tensor(RANK, to, (2, 3)) for to in RANKS]), group=group)
            return [output]

        self.equal(self.like_gloo(call)[0], torch.cat([tensor(source, RANK, (2, 3)) for source in RANKS]))

    def test_single_in_place(self):
        values = torch.cat([tensor(RANK, to, (2, 3)) for to in RANKS])
        dist.all_to_all_single(values, values)
        self.equal(values, torch.cat([tensor(source, RANK, (2, 3)) for source in RANKS]))

    def test_single_with_splits(self):
        length = lambda source, target: (source + 2 * target) % 4  # noqa: E731

        def call(group):
            lengths = [[length(RANK, to) for to in RANKS], [length(source, RANK) for source in RANKS]]
            output = torch.empty(sum(lengths[1]), 3)
            values = torch.cat([tensor(RANK, to, (length(RANK, to), 3)) for to in RANKS])
            dist.all_to_all_single(output, values, lengths[1], lengths[0], group=group)
            return [output]

        expected = [tensor(source, RANK, (length(source, RANK), 3)) for source in RANKS]
        self.equal(self.like_gloo(call)[0], torch.cat(expected))

    def test_sparse(self):
        for shape, sparse_dim in (((40, 3), 1), ((40, 3), 2), ((7,), 1)):
            outputs = [empty_sparse(shape) for _ in RANKS]
            inputs = [sparse(RANK, to, shape, sparse_dim) for to in RANKS]
            work = dist.all_to_all(outputs, inputs, async_op=True)
            work.wait()
            for source, output in enumerate(outputs):
                self.equal(output, sparse(source, RANK, shape, sparse_dim))
                self.assertEqual(output.sparse_dim(), sparse_dim)

    def test_sparse_of_several_shapes(self):
        shape = lambda source, target: (10 + source, 2 + target)  # noqa: E731
        outputs = [empty_sparse(shape(source, RANK)) for source in RANKS]
        dist.all_to_all(outputs, [sparse(RANK, to, shape(RANK, to)) for to in RANKS])
        for source, output in enumerate(outputs):
            self.equal(output, sparse(source, RANK, shape(source, RANK)))

    def test_wrong_on_one_rank(self):
        """All ranks get an exception, and the next call works."""
        last = RANK == SIZE - 1
        full, short = [torch.ones(4) for _ in RANKS], [torch.ones(4) for _ in RANKS][1:]
        ints, thin = [torch.ones(4, dtype=torch.int32) for _ in RANKS], [torch.zeros(4, 1).to_sparse()] * SIZE
        calls = [
            lambda: dist.all_to_all([each.clone() for each in full], short if last else full),
            lambda: dist.all_to_all(short if last else [each.clone() for each in full], full),
            lambda: dist.all_to_all(thin if last else [each.clone() for each in full], full),
            lambda: dist.all_to_all_single(torch.ones(SIZE + (1 if last else 0)), torch.ones(SIZE)),
            lambda: dist.all_to_all_single(
                torch.ones(SIZE), torch.ones(SIZE), None, [2] * SIZE if last else None
            ),
        ]
        if SIZE > 1:
            calls += [
                lambda: dist.all_to_all(
                    ints if last else [each.clone() for each in full], ints if last else full
                ),
                lambda: dist.all_to_all(
                    thin if last else [each.clone() for each in full], thin if last else full
                ),
                lambda: dist.all_to_all([empty_sparse((9 if last else 4, 1)) for _ in RANKS], thin),
                lambda: dist.all_to_all_single(torch.ones(SIZE), torch.ones(2 * SIZE if last else SIZE)),
            ]
        for i, call in enumerate(calls):
            with self.subTest(call=i), self.assertRaises(ValueError):
                call()
        self.test_lists()


class ReduceScatter(LikeGloo):
    def test_lists(self):
        ops = dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN, dist.ReduceOp.PRODUCT
        for op in ops:
            for dtype in (torch.float32, torch.float64, torch.int64, torch.bfloat16):

                def call(group, op=op, dtype=dtype):
                    output = torch.empty(5, 3, dtype=dtype)
                    inputs = [tensor(RANK, to, dtype=dtype) for to in RANKS]
                    dist.reduce_scatter(output, inputs, op=op, group=group)
                    return [output]

                ours = self.like_gloo(call)[0]
                terms = torch.stack([tensor(source, RANK, dtype=torch.float64) for source in RANKS])
                expected = {ops[0]: terms.sum, ops[1]: terms.amax, ops[2]: terms.amin, ops[3]: terms.prod}[op]
                self.equal(ours, expected(0).to(dtype))

    def test_lists_of_several_sizes(self):
        output = torch.empty(RANK, 2)
        dist.reduce_scatter(output, [tensor(RANK, to, (to, 2)) for to in RANKS])
        self.equal(output, sum(tensor(source, RANK, (RANK, 2)) for source in RANKS))

    def test_tensor(self):
        function = getattr(dist, "reduce_scatter_tensor", dist._reduce_scatter_base)
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
            for dtype in (torch.float32, torch.float16):

                def call(group, op=op, dtype=dtype):
                    output = torch.empty(2, 3, dtype=dtype)
                    values = torch.cat([tensor(RANK, to, (2, 3), dtype) for to in RANKS])
                    function(output, values, op=op, group=group)
                    return [output]

                ours = call(None)[0] if op == dist.ReduceOp.AVG else self.like_gloo(call)[0]
                total = sum(tensor(source, RANK, (2, 3)) for source in RANKS)
                divisor = SIZE if op == dist.ReduceOp.AVG else 1
                self.equal(ours, (total / divisor).to(dtype))

    def test_tensor_in_place(self):
        values = torch.cat([tensor(RANK, to, (2, 3)) for to in RANKS])
        function = getattr(dist, "reduce_scatter_tensor", dist._reduce_scatter_base)
        function(values[2 * RANK : 2 * RANK + 2], values)
        self.equal(values[2 * RANK : 2 * RANK + 2], sum(tensor(source, RANK, (2, 3)) for source in RANKS))

    def test_sparse(self):
        for sparse_dim in (1, 2):
            shape, expected = (40, 3), sum(sparse(s, RANK, (40, 3), sparse_dim).to_dense() for s in RANKS)
            output = empty_sparse(shape)
            inputs = [sparse(RANK, to, shape, sparse_dim) for to in RANKS]
            dist.reduce_scatter(output, inputs)
            self.equal(output, expected)
            self.assertTrue(output.is_coalesced())
            output = empty_sparse(shape)
            function = getattr(dist, "reduce_scatter_tensor", dist._reduce_scatter_base)
            function(output, torch.cat(inputs))
            self.equal(output, expected)

    def test_wrong_on_one_rank(self):
        """All ranks get an exception, and the next call works."""
        last, output = RANK == SIZE - 1, torch.ones(4)
        full = [torch.ones(4) for _ in RANKS]
        function = getattr(dist, "reduce_scatter_tensor", dist._reduce_scatter_base)
        calls = [
            lambda: dist.reduce_scatter(output, full[1:] if last else full),
            lambda: dist.reduce_scatter(torch.ones(3) if last else output, full),
            lambda: dist.reduce_scatter(output, [each.to_sparse() for each in full] if last else full),
            lambda: function(output, torch.ones(4 * SIZE + (1 if last else 0))),
            lambda: function(torch.ones(4, dtype=torch.bool), torch.ones(4 * SIZE, dtype=torch.bool)),
        ]
        if SIZE > 1:
            sums = dist.ReduceOp.MAX if last else dist.ReduceOp.SUM
            calls += [
                lambda: function(torch.ones(3 if last else 4), torch.ones((3 if last else 4) * SIZE)),
                lambda: dist.reduce_scatter(output, full, op=sums),
            ]
        for i, call in enumerate(calls):
            with self.subTest(call=i), self.assertRaises(ValueError):
                call()
        self.test_lists()


class Others(LikeGloo):
    def test_too_many_elements(self):
        """Tensors without memory for their elements, which MPI could not count."""
        huge = torch.ones(1, dtype=torch.int8).expand(2**31)
        outputs, inputs = [huge] * SIZE, [huge] * SIZE
        function = getattr(dist, "reduce_scatter_tensor", dist._reduce_scatter_base)
        for call in (
            lambda: dist.all_to_all(outputs, inputs),
            lambda: dist.all_to_all_single(
                huge, huge, [0] * (SIZE - 1) + [2**31], [0] * (SIZE - 1) + [2**31]
            ),
            lambda: dist.reduce_scatter(huge, inputs),
            lambda: function(huge, torch.ones(1, dtype=torch.int8).expand(2**31 * SIZE)),
        ):
            with self.assertRaisesRegex(ValueError, "are too many for a call; at most 2147483647 fit"):
                call()

    def test_gradients_of_collectives(self):
        """Each rank multiplies what it gets by its number, counted from 1."""
        from torch.distributed.nn import functional

        group = dist.distributed_c10d._get_default_group()
        value = tensor(RANK, 0, (2 * SIZE, 3)).requires_grad_()
        all_ranks = torch.full((2 * SIZE, 3), SIZE * (SIZE + 1) / 2.0)
        one_rank_each = torch.cat([torch.full((2, 3), rank + 1.0) for rank in RANKS])
        room = [torch.empty(2, 3) for _ in RANKS]
        for call, expected in (
            (lambda: functional.all_reduce(value * 1, group=group), all_ranks),
            (lambda: torch.cat(functional.all_gather(value, group)), all_ranks),
            (
                lambda: functional.all_to_all_single(torch.empty(2 * SIZE, 3), value, group=group),
                one_rank_each,
            ),
            (lambda: torch.cat(functional.all_to_all(room, list(value.split(2)), group)), one_rank_each),
        ):
            value.grad = None
            (call() * (RANK + 1)).sum().backward()
            self.equal(value.grad, expected)

    def test_factor(self):
        """PREMUL_SUM multiplies before the sum; some versions do not tell the factor."""
        factor = 2.0 + RANK
        op = dist._make_nccl_premul_sum(factor)
        values, mine = tensor(RANK, 0), torch.empty(2, 3)
        if not NEW:
            with self.assertRaisesRegex(ValueError, "multiply and use SUM"):
                dist.all_reduce(values, op=op)
            return
        dist.all_reduce(values, op=op)
        self.equal(values, sum((2.0 + rank) * tensor(rank, 0) for rank in RANKS))
        dist.reduce_scatter_tensor(mine, torch.cat([tensor(RANK, to, (2, 3)) for to in RANKS]), op=op)
        self.equal(mine, sum((2.0 + rank) * tensor(rank, RANK, (2, 3)) for rank in RANKS))
        rows = sparse(RANK, 0)
        dist.all_reduce(rows, op=op)
        self.equal(rows, sum((2.0 + rank) * sparse(rank, 0).to_dense() for rank in RANKS))
        with self.assertRaisesRegex(ValueError, "no PREMUL_SUM of int64"):
            ints = torch.ones(SIZE, dtype=torch.int64)
            dist.reduce_scatter_tensor(ints[:1].clone(), ints, op=op)

    def test_allgather_into(self):
        function = getattr(dist, "all_gather_into_tensor", dist._all_gather_base)
        output = torch.zeros(2 * SIZE, 3)
        output[2 * RANK : 2 * RANK + 2] = tensor(RANK, 0, (2, 3))
        function(output, output[2 * RANK : 2 * RANK + 2])  # in place
        self.equal(output, torch.cat([tensor(rank, 0, (2, 3)) for rank in RANKS]))
        mine, gathered = sparse(RANK, 0), empty_sparse((40 * SIZE, 3))
        function(gathered, mine)
        self.equal(gathered, torch.cat([sparse(rank, 0).to_dense() for rank in RANKS]))
        self.equal(mine, sparse(RANK, 0))
        with self.assertRaisesRegex(ValueError, "needs to be sparse, with"):
            function(empty_sparse((40 * SIZE + (RANK == 0), 3)), mine)

    def test_any_source(self):
        if RANK > 0:
            dist.send(torch.full((3,), float(RANK)), 0, tag=5)
        else:
            found = torch.empty(3)
            sources = []
            for _ in RANKS[1:]:
                sources.append(dist.recv(found, tag=5))
                self.assertTrue((found == sources[-1]).all())
            self.assertEqual(sorted(sources), list(RANKS[1:]))
        dist.barrier()

    def test_no_message(self):
        """Ranks that do not exist, and tags that MPI does not take."""
        for call in dist.isend, dist.irecv:
            with self.assertRaisesRegex(ValueError, f"the other rank is {SIZE}, and ranks are 0 to"):
                call(torch.ones(3), SIZE)
        for tag in -1, _mpi.max_tag() + 1, 1 << 40:
            for call in (
                lambda: dist.isend(torch.ones(3), 0, tag=tag),
                lambda: dist.irecv(torch.ones(3), 0, tag=tag),
                lambda: dist.recv(torch.ones(3), tag=tag),
            ):
                with self.assertRaisesRegex(ValueError, f"the tag is {tag}; it must be"):
                    call()

    def test_batch(self):
        found = torch.empty(3)
        calls = [
            dist.P2POp(dist.isend, torch.full((3,), float(RANK)), (RANK + 1) % SIZE),
            dist.P2POp(dist.irecv, found, (RANK - 1) % SIZE),
        ]
        for work in dist.batch_isend_irecv(calls):
            work.wait()
        self.assertTrue((found == (RANK - 1) % SIZE).all())

    def test_coalescing(self):
        if not NEW:
            return
        tensors = [tensor(RANK, i) for i in range(3)]
        with dist._coalescing_manager(async_ops=True) as manager:
            for each in tensors:
                dist.all_reduce(each)
        manager.wait()
        with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
            for i, each in enumerate(tensors):
                dist.broadcast(each, i % SIZE)
        manager.wait()
        for i, each in enumerate(tensors):
            self.equal(each, sum(tensor(rank, i) for rank in RANKS))
        outputs = [torch.empty(2, 3) for _ in range(2)]
        values = torch.cat([tensor(RANK, to, (2, 3)) for to in RANKS])
        with dist._coalescing_manager():
            for output in outputs:
                dist.reduce_scatter_tensor(output, values)
        for output in outputs:
            self.equal(output, sum(tensor(source, RANK, (2, 3)) for source in RANKS))

    def test_monitored_barrier(self):
        if not NEW:
            return
        for wait_all in (False, True):
            dist.monitored_barrier(wait_all_ranks=wait_all)
        if SIZE > 1 and RANK < SIZE - 1:
            names = rf"\[{SIZE - 1}\] did not reach" if RANK == 0 else "had no answer"
            with self.assertRaisesRegex(RuntimeError, names):
                dist.monitored_barrier(timeout=timedelta(seconds=0.2))
        dist.barrier()

    def test_sequence_numbers(self):
        group = dist.distributed_c10d._get_default_group()
        before = group._get_sequence_number_for_group()
        dist.barrier()
        self.assertEqual(group._get_sequence_number_for_group(), before + 1)


if __name__ == "__main__":
    main()
