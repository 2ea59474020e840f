# SPDX-License-Identifier: BSD-3-Clause
"""Test the table of torch.distributed's functions in python/README.md: each function that communicates is in
it, and works on the backend mpix_sparse, or raises the sentence in the table."""

import inspect
import os
import re
import unittest
import warnings

from common import main, need

torch = need("torch", "python3-torch")

import mpix_sparse.torch  # noqa: E402, F401

dist = torch.distributed
need("torch.distributed.distributed_c10d", "python3-torch")

warnings.simplefilter("ignore")  # PyTorch's, about versions to come
dist.init_process_group("mpix_sparse", init_method="mpix://")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
RANKS = range(SIZE)
NEXT, LAST = (RANK + 1) % SIZE, (RANK - 1) % SIZE
README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python", "README.md")
OLD = torch.__version__.startswith("1.")
FUNCTIONAL = None if OLD else __import__("torch.distributed._functional_collectives", fromlist=["_"])
LOCAL = ("get_", "set_", "supports_", "is_", "destroy_", "record_")  # functions that do not communicate


def table(first="function"):
    """Rows of the table whose first column has this title: name, results for dense and for sparse tensors."""
    with open(README, encoding="utf-8") as file:
        text = file.read()
    part = text[text.index(f"| {first} | dense |") :].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines()[2:]]
    return [(name, *cells) for names, *cells in rows for name in re.findall(r"`(\w+)`", names)]


def value(rank, sparse=False):
    """The tensor of a rank, with as many rows as there are ranks, two for each."""
    numbers = torch.arange(4.0 * SIZE).view(2 * SIZE, 2) * (rank + 1)
    return numbers.to_sparse(1) if sparse else numbers


def room(sparse=False, rows=2 * SIZE):
    made = torch.zeros(rows, 2)
    return made.to_sparse(1) if sparse else made


def total(rows=slice(None)):
    return sum(value(rank) for rank in RANKS)[rows]


def root_total():
    return total() if RANK == 0 else value(RANK)


MINE = slice(2 * RANK, 2 * RANK + 2)  # rows


def pieces(sparse):
    """The tensor of this rank, in parts for each rank."""
    parts = [part.clone() for part in value(RANK).split(2)]
    return [part.to_sparse(1) for part in parts] if sparse else parts


def received():
    return [value(rank)[MINE] for rank in RANKS]


# Each function makes its call and returns pairs of results and of what they must be.


def in_place(call, expected):
    def run(sparse):
        tensor = value(RANK, sparse)
        call(tensor)
        return [(tensor, expected())]

    return run


def coalesced_reduction(sparse):
    tensors = [value(RANK, sparse), value(RANK, sparse)]
    dist.all_reduce_coalesced(tensors)
    return [(tensor, total()) for tensor in tensors]


def gather_lists(sparse):
    outputs = [room(sparse) for _ in RANKS]
    dist.all_gather(outputs, value(RANK, sparse))
    return [(output, value(rank)) for rank, output in enumerate(outputs)]


def gather_coalesced(sparse):
    outputs = [[room(sparse), room(sparse)] for _ in RANKS]
    dist.all_gather_coalesced(outputs, [value(RANK, sparse)] * 2)
    return [(each, value(rank)) for rank, both in enumerate(outputs) for each in both]


def gather_single(name):
    def run(sparse):
        output = room(sparse, 2 * SIZE * SIZE)
        getattr(dist, name)(output, value(RANK, sparse))
        return [(output, torch.cat([value(rank) for rank in RANKS]))]

    return run


def gather_to_root(sparse):
    outputs = [room(sparse) for _ in RANKS] if RANK == 0 else None
    dist.gather(value(RANK, sparse), outputs, 0)
    return [(output, value(rank)) for rank, output in enumerate(outputs or [])]


def gather_single_to_root(name):
    def run(sparse):
        output = room(sparse, 2 * SIZE * SIZE) if RANK == 0 else None
        getattr(dist, name)(value(RANK, sparse), output, 0)
        return [(output, torch.cat([value(rank) for rank in RANKS]))] if RANK == 0 else []

    return run


def scatter_from_root(sparse):
    output = room(sparse, 2)
    dist.scatter(output, pieces(sparse) if RANK == 0 else None, 0)
    return [(output, value(0)[MINE])]


def scatter_lists(sparse):
    output = room(sparse, 2)
    dist.reduce_scatter(output, pieces(sparse))
    return [(output, total(MINE))]


def scatter_single(name):
    def run(sparse):
        output = room(sparse, 2)
        getattr(dist, name)(output, value(RANK, sparse))
        return [(output, total(MINE))]

    return run


def swap_lists(sparse):
    outputs = [room(sparse, 2) for _ in RANKS]
    dist.all_to_all(outputs, pieces(sparse))
    return list(zip(outputs, received()))


def swap_single(sparse):
    output = room(sparse)
    dist.all_to_all_single(output, value(RANK, sparse))
    return [(output, torch.cat(received()))]


def start_send(sparse):
    work, output = dist.isend(value(RANK, sparse), NEXT), room()
    dist.irecv(output, LAST).wait()
    work.wait()
    return [(output, value(LAST))]


def start_receive(sparse):
    output = room(sparse)
    work = dist.irecv(output, LAST)
    dist.isend(value(RANK), NEXT).wait()
    work.wait()
    return [(output, value(LAST))]


def pass_on(sparse):
    """Blocking calls, from rank 0 to the last."""
    output = value(0, sparse) if RANK == 0 else room(sparse)
    if RANK > 0:
        dist.recv(output, RANK - 1)
    if RANK < SIZE - 1:
        dist.send(output, RANK + 1)
    return [(output, value(0))]


def batch(sparse):
    output = room(sparse)
    calls = [dist.P2POp(dist.isend, value(RANK, sparse), NEXT), dist.P2POp(dist.irecv, output, LAST)]
    for work in dist.batch_isend_irecv(calls):
        work.wait()
    return [(output, value(LAST))]


def check(found, expected):
    return [(torch.tensor(int(found == expected)), torch.tensor(1))]


def gather_objects(_):
    found = [None] * SIZE
    dist.all_gather_object(found, {"rank": RANK})
    return check(found, [{"rank": rank} for rank in RANKS])


def gather_objects_to_root(_):
    found = [None] * SIZE if RANK == 0 else None
    dist.gather_object(str(RANK), found, 0)
    return check(found, [str(rank) for rank in RANKS] if RANK == 0 else None)


def broadcast_objects(_):
    found = ["text", 5] if RANK == 0 else [None, None]
    dist.broadcast_object_list(found, 0)
    return check(found, ["text", 5])


def scatter_objects(_):
    found = [None]
    dist.scatter_object_list(found, [str(rank) for rank in RANKS] if RANK == 0 else None, 0)
    return check(found, [str(RANK)])


def pass_on_objects(_):
    found = [{"a": 1}] if RANK == 0 else [None]
    if RANK > 0:
        dist.recv_object_list(found, RANK - 1)
    if RANK < SIZE - 1:
        dist.send_object_list(found, RANK + 1)
    return check(found, [{"a": 1}])


def barrier(name):
    return lambda _: check(getattr(dist, name)(), None)


def group(make):
    def run(_):
        tensor = torch.ones(3)
        made = make()
        dist.all_reduce(tensor, group=made)
        return [(tensor, torch.full((3,), float(dist.get_world_size(made))))]

    return run


def several_gpus(name, expected, *arguments):
    """A call with a list of tensors on several devices of a rank, which here has one."""

    def run(sparse):
        tensor = value(RANK, sparse)
        getattr(dist, name)([tensor], *arguments)
        return [(tensor, expected())]

    return run


def gather_several(sparse):
    outputs = [room(sparse) for _ in RANKS]
    dist.all_gather_multigpu([outputs], [value(RANK, sparse)])
    return [(output, value(rank)) for rank, output in enumerate(outputs)]


def scatter_several(sparse):
    output = room(sparse, 2)
    dist.reduce_scatter_multigpu([output], [pieces(sparse)])
    return [(output, total(MINE))]


CALLS = {
    "all_reduce": in_place(lambda tensor: dist.all_reduce(tensor), total),
    "all_reduce_coalesced": coalesced_reduction,
    "reduce": in_place(lambda tensor: dist.reduce(tensor, 0), root_total),
    "broadcast": in_place(lambda tensor: dist.broadcast(tensor, 0), lambda: value(0)),
    "all_gather": gather_lists,
    "all_gather_coalesced": gather_coalesced,
    "all_gather_into_tensor": gather_single("all_gather_into_tensor"),
    "all_gather_single": gather_single("all_gather_single"),
    "reduce_scatter": scatter_lists,
    "reduce_scatter_tensor": scatter_single("reduce_scatter_tensor"),
    "reduce_scatter_single": scatter_single("reduce_scatter_single"),
    "all_to_all": swap_lists,
    "all_to_all_single": swap_single,
    "gather": gather_to_root,
    "gather_into_tensor": gather_single_to_root("gather_into_tensor"),
    "gather_single": gather_single_to_root("gather_single"),
    "scatter": scatter_from_root,
    "isend": start_send,
    "irecv": start_receive,
    "send": pass_on,
    "recv": pass_on,
    "batch_isend_irecv": batch,
    "all_gather_object": gather_objects,
    "gather_object": gather_objects_to_root,
    "broadcast_object_list": broadcast_objects,
    "scatter_object_list": scatter_objects,
    "send_object_list": pass_on_objects,
    "recv_object_list": pass_on_objects,
    "barrier": barrier("barrier"),
    "monitored_barrier": barrier("monitored_barrier"),
    "new_group": group(lambda: dist.new_group()),
    "new_subgroups": group(lambda: dist.new_subgroups(1)[0]),
    "new_subgroups_by_enumeration": group(lambda: dist.new_subgroups_by_enumeration([list(RANKS)])[0]),
    "split_group": group(lambda: dist.split_group(split_ranks=[list(RANKS)])),
    "shrink_group": group(lambda: dist.shrink_group([SIZE - 1])),
    "init_device_mesh": group(lambda: dist.init_device_mesh("cpu", (SIZE,)).get_group()),
    "all_reduce_multigpu": several_gpus("all_reduce_multigpu", total),
    "broadcast_multigpu": several_gpus("broadcast_multigpu", lambda: value(0), 0),
    "reduce_multigpu": several_gpus("reduce_multigpu", root_total, 0),
    "all_gather_multigpu": gather_several,
    "reduce_scatter_multigpu": scatter_several,
}


def functional(name, *arguments, expected=total, listed=False):
    """A function of torch.distributed._functional_collectives, on one tensor or on a list of two."""

    def run(sparse):
        given = value(RANK, sparse)
        made = getattr(FUNCTIONAL, name)([given, given] if listed else given, *arguments, dist.group.WORLD)
        return [(each + 0, expected()) for each in (made if listed else [made])]

    return run


def of_all():
    return torch.cat([value(rank) for rank in RANKS])


def permute(sparse):
    """PyTorch's function takes tensors of one dimension."""
    given = value(RANK, sparse) if sparse else value(RANK).flatten()
    targets = [(rank + 1) % SIZE for rank in RANKS]
    made = FUNCTIONAL.permute_tensor(given, targets, dist.group.WORLD)
    return [(made + 0, value(LAST).flatten())]


def of_mine():
    return total(MINE)


FUNCTIONAL_CALLS = {
    "all_reduce": functional("all_reduce", "sum"),
    "all_reduce_coalesced": functional("all_reduce_coalesced", "sum", listed=True),
    "broadcast": functional("broadcast", 0, expected=lambda: value(0)),
    "permute_tensor": permute,
    **{
        name: functional(name, None, None, expected=lambda: torch.cat(received()))
        for name in ("all_to_all_single", "all_to_all_single_autograd")
    },
    **{
        f"all_gather_{name}": functional(f"all_gather_{name}", 0, expected=of_all)
        for name in ("tensor", "tensor_autograd", "single", "single_autograd")
    },
    **{
        f"all_gather_{name}_coalesced": functional(
            f"all_gather_{name}_coalesced", expected=of_all, listed=True
        )
        for name in ("into_tensor", "single")
    },
    **{
        f"reduce_scatter_{name}": functional(f"reduce_scatter_{name}", "sum", 0, expected=of_mine)
        for name in ("tensor", "tensor_autograd", "single", "single_autograd")
    },
    **{
        f"reduce_scatter_{name}_coalesced": functional(
            f"reduce_scatter_{name}_coalesced", "sum", [0, 0], expected=of_mine, listed=True
        )
        for name in ("tensor", "single")
    },
}
OTHER_FUNCTIONS = "_inplace", "_backward", "_setup_context", "_ctx"  # ends of their names


class Table(unittest.TestCase):
    def test_is_complete(self):
        """Functions of this PyTorch with a group or tensors are in the table, and each is there once."""
        names = [name for name, _, _ in table()]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(set(names), set(CALLS))
        for name, function in inspect.getmembers(dist, inspect.isfunction):
            taken = set(inspect.signature(function).parameters)
            if taken & {"group", "p2p_op_list", "tensor", "ranks"} and not name.startswith(("_", *LOCAL)):
                self.assertIn(name, names)

    @unittest.skipIf(FUNCTIONAL is None, "this PyTorch has no functional collectives")
    def test_functional(self):
        """The functional collectives of this PyTorch are in their table, and work."""
        rows = table("functional collective")
        self.assertEqual([name for name, *_ in rows], [*FUNCTIONAL_CALLS])
        for name, function in inspect.getmembers(FUNCTIONAL, inspect.isfunction):
            is_known = "group" in inspect.signature(function).parameters and name[0] != "_"
            if is_known and not name.startswith("legacy") and not name.endswith(OTHER_FUNCTIONS):
                self.assertIn(name, FUNCTIONAL_CALLS)
        for name, *cells in rows:
            for sparse, cell in zip((False, True), cells):
                if hasattr(FUNCTIONAL, name):
                    with self.subTest(function=name, sparse=sparse):
                        self.run_cell(FUNCTIONAL_CALLS[name], sparse, cell)

    def test_rows(self):
        for name, *cells in table():
            if SIZE == 1 and name in ("send", "recv", "shrink_group"):  # which need two ranks
                continue
            if not hasattr(dist, name):
                self.assertTrue(OLD or name.endswith("multigpu"), f"{name} is not in torch.distributed")
                continue
            for sparse, cell in zip((False, True), cells):
                with self.subTest(function=name, sparse=sparse):
                    self.run_cell(CALLS[name], sparse, cell)

    def run_cell(self, call, sparse, cell):
        sentences = re.findall("“(.*?)”", cell)
        if cell == "":
            return
        if "works" not in cell or OLD and "from PyTorch 2" in cell:
            self.assertTrue(sentences, f"neither works nor a sentence: {cell}")
            with self.assertRaises((ValueError, TypeError, RuntimeError)) as caught:
                call(sparse)
            self.assertTrue(any(each in str(caught.exception) for each in sentences), caught.exception)
            return
        for found, expected in call(sparse):
            self.assertEqual(found.is_sparse, sparse)
            self.assertTrue(torch.equal(found.to_dense(), expected), f"{found} is not {expected}")


if __name__ == "__main__":
    main()
