# SPDX-License-Identifier: BSD-3-Clause
"""Test the process groups of the backend mpix_sparse: its names, its place beside other backends, functional
collectives, DeviceMesh and DTensor."""

from common import main
from common_torch import NEW, RANK, RANKS, SIZE, Collectives, dist, tensor, torch


class Functional(Collectives):
    def setUp(self):
        if not NEW:
            self.skipTest("this PyTorch has no functional collectives and DeviceMesh")

    def test_functions(self):
        import torch.distributed._functional_collectives as functional

        group, values = dist.group.WORLD, torch.cat([tensor(RANK, to, (2, 3)) for to in RANKS])
        mine = sum(tensor(source, RANK, (2, 3)) for source in RANKS)
        self.equal(functional.all_reduce(tensor(RANK, 0), "sum", group), sum(tensor(r, 0) for r in RANKS))
        gathered = functional.all_gather_tensor(tensor(RANK, 0), 0, group)
        self.equal(gathered, torch.cat([tensor(rank, 0) for rank in RANKS]))
        self.equal(functional.reduce_scatter_tensor(values, "sum", 0, group), mine)
        swapped = functional.all_to_all_single(values, None, None, group)
        self.equal(swapped, torch.cat([tensor(source, RANK, (2, 3)) for source in RANKS]))
        uneven = functional.all_to_all_single(
            tensor(RANK, 0, (SIZE * (SIZE + 1) // 2, 2)), [RANK + 1] * SIZE, [to + 1 for to in RANKS], group
        )
        starts = [sum(range(1, to + 1)) for to in range(SIZE + 1)]
        parts = [tensor(source, 0, (starts[-1], 2))[starts[RANK] : starts[RANK + 1]] for source in RANKS]
        self.equal(uneven, torch.cat(parts))
        self.equal(functional.broadcast(tensor(RANK, 0), SIZE - 1, group), tensor(SIZE - 1, 0))
        for each in functional.all_reduce_coalesced([tensor(RANK, 0)] * 2, "sum", group):
            self.equal(each, sum(tensor(rank, 0) for rank in RANKS))
        for each in functional.all_gather_into_tensor_coalesced([tensor(RANK, 0)] * 2, group):
            self.equal(each, gathered)
        for each in functional.reduce_scatter_tensor_coalesced([values] * 2, "sum", [0, 0], group):
            self.equal(each, mine)

    def test_gradients(self):
        import torch.distributed._functional_collectives as functional

        values = tensor(RANK, 0).requires_grad_()
        (functional.all_gather_tensor_autograd(values, 0, dist.group.WORLD) * (RANK + 1)).sum().backward()
        self.equal(values.grad, torch.full((5, 3), SIZE * (SIZE + 1) / 2.0))

    def test_compiled(self):
        import torch.distributed._functional_collectives as functional

        def function(values):
            return functional.all_reduce(values * 2, "sum", dist.group.WORLD) + 1

        compiled = torch.compile(function, backend="aot_eager")
        self.equal(compiled(tensor(RANK, 0)), sum(2 * tensor(rank, 0) for rank in RANKS) + 1)

    def test_distributed_tensors(self):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

        mesh = init_device_mesh("cpu", (SIZE,))
        left, right = tensor(0, 0, (6, 12)), tensor(0, 1, (12, 7))
        product = distribute_tensor(left, mesh, [Shard(1)]) @ distribute_tensor(right, mesh, [Shard(0)])
        self.assertEqual(product.placements, (Partial(),))
        for placement in (Shard(0), Shard(1), Replicate()):
            self.equal(product.redistribute(mesh, [placement]).full_tensor(), left @ right)
        moved = product.redistribute(mesh, [Shard(0)]).redistribute(mesh, [Shard(1)])
        self.equal(moved.redistribute(mesh, [Replicate()]).to_local(), left @ right)

    def test_meshes(self):
        from torch.distributed.device_mesh import init_device_mesh

        for how in ({}, {"backend_override": {"model": "mpix_sparse"}}):
            mesh = init_device_mesh("cpu", (1, SIZE), mesh_dim_names=("data", "model"), **how)
            for name, count in (("data", 1), ("model", SIZE)):
                values = torch.ones(3)
                dist.all_reduce(values, group=mesh[name].get_group())
                self.assertTrue((values == count).all())

    def test_operators(self):
        """C++ code finds the backend of the CPU."""
        group = dist.distributed_c10d._get_default_group()
        backend = group._get_backend(torch.device("cpu"))
        self.assertEqual(backend.name(), "mpix_sparse")
        self.assertIs(backend, dist.get_backend_impl())
        self.assertIn(torch.device("cpu"), group._device_types)
        values = torch.ones(3)
        backend.allreduce([values], dist.AllreduceOptions()).wait()
        self.assertTrue((values == SIZE).all())


class Names(Collectives):
    def works(self, group):
        values = torch.ones(3)
        dist.all_reduce(values, group=group)
        self.assertTrue((values == SIZE).all())

    def test_new_groups(self):
        for name in ("mpix_sparse", "MPIX_SPARSE", None, *(["cpu:mpix_sparse"] if NEW else [])):
            self.works(dist.new_group(backend=name))

    def test_one_of_several_backends(self):
        """Another backend serves another device."""
        if not NEW:
            return
        for name in ("cpu:mpix_sparse,cuda:gloo", "cuda:gloo,cpu:mpix_sparse"):
            group = dist.new_group(backend=name)
            self.assertEqual(group._get_backend(torch.device("cpu")).name(), "mpix_sparse")
            self.assertEqual(group._get_backend(torch.device("cuda")).name(), "gloo")
            self.works(group)
            outputs = [torch.empty(5, 3) for _ in RANKS]
            dist.all_to_all(outputs, [tensor(RANK, to) for to in RANKS], group=group)
            for source, output in enumerate(outputs):
                self.equal(output, tensor(source, RANK))

    def test_the_last_to_run(self):
        """The default group can be destroyed and created again."""
        dist.destroy_process_group()
        for name in (
            "mpix_sparse",
            *(["cpu:mpix_sparse", "cpu:mpix_sparse,cuda:mpix_sparse"] if NEW else []),
        ):
            dist.init_process_group(name, init_method="mpix://")
            self.works(None)
            dist.destroy_process_group()
        how = {"device_id": torch.device("cpu", 0)} if NEW else {}
        dist.init_process_group("mpix_sparse", init_method="mpix://", **how)
        self.works(None)
        self.works(dist.new_group())
        if NEW:
            with self.assertRaisesRegex(RuntimeError, "does not support splitting"):
                dist.split_group(split_ranks=[list(RANKS)])
        dist.destroy_process_group()
        dist.init_process_group("mpix_sparse", init_method="mpix://")


if __name__ == "__main__":
    main()
