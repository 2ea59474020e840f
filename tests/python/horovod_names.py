# SPDX-License-Identifier: BSD-3-Clause
"""Test the tables of Horovod's names and modules in python/README.md: each name is there and does what the
tables say."""

import importlib
import inspect
import pathlib
import re
import tempfile
import unittest

from common import main, need

torch = need("torch", "python3-torch")

import mpix_sparse  # noqa: E402
import mpix_sparse.torch as hvd  # noqa: E402

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
README = pathlib.Path(__file__).resolve().parents[2] / "python" / "README.md"

# What horovod/torch/__init__.py imports, is_homogeneous of mpi_ops.py, and names of horovod/torch/elastic.
HOROVOD = """
    Adasum Average Compression DistributedOptimizer HorovodInternalError Max Min ProcessSet Product Sum
    SyncBatchNorm add_process_set allgather allgather_async allgather_object allreduce allreduce_
    allreduce_async allreduce_async_ alltoall alltoall_async barrier broadcast broadcast_ broadcast_async
    broadcast_async_ broadcast_object broadcast_optimizer_state broadcast_parameters ccl_built cross_rank
    cross_size cuda_built ddl_built elastic elastic.ElasticSampler elastic.TorchState elastic.run
    global_process_set gloo_built gloo_enabled grouped_allgather grouped_allgather_async grouped_allreduce
    grouped_allreduce_ grouped_allreduce_async grouped_allreduce_async_ grouped_reducescatter
    grouped_reducescatter_async init is_homogeneous is_initialized join local_rank local_size mpi_built
    mpi_enabled mpi_threads_supported nccl_built poll rank reducescatter reducescatter_async
    remove_process_set rocm_built shutdown size sparse_allreduce_async start_timeline stop_timeline
    synchronize
""".split()

# Public names that each module defines, or that programs import from it.
MODULES = {
    "horovod": "run",
    "horovod.common.elastic": "ObjectState State WorkerNotificationManager notification_manager run_fn",
    "horovod.common.exceptions": """
        HorovodInternalError HorovodVersionMismatchError HostsUpdatedInterrupt
        get_version_mismatch_message""",
    "horovod.common.process_sets": "ProcessSet add_process_set global_process_set remove_process_set",
    "horovod.common.util": """
        ccl_built check_extension check_installed_version ddl_built env extension_available
        get_average_backwards_compatibility_fun get_ext_suffix get_extension_full_path gloo_built
        gpu_available is_iterable is_version_greater_equal_than mpi_built nccl_built num_rank_is_power_2
        split_list""",
    "horovod.torch.compression": "Compression Compressor FP16Compressor NoneCompressor",
    "horovod.torch.elastic": "ElasticSampler TorchState run",
    "horovod.torch.elastic.sampler": "ElasticSampler",
    "horovod.torch.elastic.state": """
        ModelStateHandler OptimizerStateHandler SamplerStateHandler StateHandler TorchState
        get_handler_registry set_handler_registry""",
    "horovod.torch.functions": """
        allgather_object broadcast_object broadcast_optimizer_state broadcast_parameters""",
    "horovod.torch.optimizer": "DistributedOptimizer",
    "horovod.torch.sync_batch_norm": "SyncBatchNorm",
}
ELSEWHERE = "horovod.torch.functions", "horovod.torch.optimizer", "horovod.torch.sync_batch_norm"
MODULES["horovod.torch.mpi_ops"] = " ".join(
    {name for name in HOROVOD if "elastic" not in name}
    - {name for module in ELSEWHERE for name in MODULES[module].split()}
)
# Arguments of functions that have more here than in Horovod, and names of others, in Horovod's order.
PARAMETERS = {
    "DistributedOptimizer": """
        optimizer named_parameters compression backward_passes_per_step op gradient_predivide_factor
        num_groups groups sparse_as_dense process_set""",
    "allreduce": """
        tensor average name compression op prescale_factor postscale_factor process_set""",
    "alltoall": "tensor splits name process_set",
    "broadcast": "tensor root_rank name process_set",
    "broadcast_optimizer_state": "optimizer root_rank model",
    "join": "device",
    "poll": "handle",
    "reducescatter": "tensor name compression op process_set prescale_factor postscale_factor",
    "sparse_allreduce_async": "tensor name op process_set",
    "synchronize": "handle",
}

ONES = torch.ones(2 * SIZE, 3)
wait = hvd.synchronize


def is_sum(out):
    """True if each element is the number of ranks."""
    return bool((out == SIZE).all())


def reduced_by(op):
    """The numbers 1 to SIZE, one of each rank, reduced."""
    return float(hvd.allreduce(torch.tensor([RANK + 1.0]), op=op))


def adasum():
    """Equal vectors are averaged."""
    if SIZE & (SIZE - 1):
        try:
            hvd.allreduce(torch.ones(2), op=hvd.Adasum)
        except NotImplementedError as reason:
            return "a power of two" in str(reason)
    return bool((hvd.allreduce(torch.ones(2), op=hvd.Adasum) == 1).all())


def product():
    wanted = 1
    for number in range(1, SIZE + 1):
        wanted *= number
    return reduced_by(hvd.Product) == wanted


def trained(**how):
    """True if a step changes a model as the mean of all gradients does."""
    model = torch.nn.Linear(2, 1, bias=False)
    model.weight.data.fill_(1.0)
    base = torch.optim.SGD(model.parameters(), lr=1.0)
    optimizer = hvd.DistributedOptimizer(base, named_parameters=model.named_parameters(), **how)
    model(torch.full((1, 2), RANK + 1.0)).sum().backward()
    optimizer.step()
    return bool((model.weight == 1 - (SIZE + 1) / 2).all())


def broadcast_parameters():
    model = torch.nn.Linear(2, 1)
    model.weight.data.fill_(RANK)
    hvd.broadcast_parameters(model.state_dict(), root_rank=SIZE - 1)
    return bool((model.weight == SIZE - 1).all())


def broadcast_optimizer_state():
    optimizer = torch.optim.SGD(torch.nn.Linear(2, 1).parameters(), lr=RANK + 1.0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=SIZE - 1)
    return optimizer.param_groups[0]["lr"] == SIZE


def batch_norm():
    """Each rank's samples are equal, those of other ranks not."""
    out = hvd.SyncBatchNorm(1)(torch.full((2, 1), float(RANK)))
    return bool(torch.isclose(hvd.allreduce(out.sum().detach(), op=hvd.Sum), torch.tensor(0.0), atol=1e-5))


def process_sets():
    """Add and remove the set of the last rank."""
    if SIZE == 1:
        return hvd.remove_process_set(hvd.global_process_set) is False
    made = hvd.add_process_set(hvd.ProcessSet([SIZE - 1]))
    if made.included():
        assert bool((hvd.allreduce(torch.ones(2), op=hvd.Sum, process_set=made) == 1).all())
    return hvd.remove_process_set(made) and made.process_set_id is None


def internal_error():
    try:
        mpix_sparse.allreduce_coo([99], [1.0], 9)
    except (hvd.HorovodInternalError, ValueError):
        return issubclass(hvd.HorovodInternalError, RuntimeError)


def elastic_run():
    """Restore after an error, with a model and an optimizer."""
    model = torch.nn.Linear(2, 1)
    state = hvd.elastic.TorchState(model, torch.optim.SGD(model.parameters(), lr=1.0), epoch=0, failed=[])

    @hvd.elastic.run
    def train(state):
        state.epoch += 1
        if not state.failed:
            state.failed.append(True)
            state.epoch = 70
            raise hvd.HorovodInternalError("once")
        return state.epoch

    return train(state) == 1


def init_again():
    hvd.shutdown()
    gone = not hvd.is_initialized()
    hvd.init()
    return gone and hvd.is_initialized()


CHECKS = {
    "init": init_again,
    "shutdown": init_again,
    "is_initialized": hvd.is_initialized,
    "rank": lambda: hvd.rank() == mpix_sparse.rank(),
    "size": lambda: hvd.size() == mpix_sparse.size(),
    "local_rank": lambda: 0 <= hvd.local_rank() < hvd.local_size(),
    "local_size": lambda: sorted(hvd.allgather_object(hvd.local_size()))[-1] <= SIZE,
    "cross_rank": lambda: 0 <= hvd.cross_rank() < hvd.cross_size(),
    "cross_size": lambda: hvd.cross_size() * hvd.local_size() == SIZE or not hvd.is_homogeneous(),
    "is_homogeneous": lambda: hvd.is_homogeneous() == (len(set(hvd.allgather_object(hvd.local_size()))) == 1),
    "allreduce": lambda: is_sum(hvd.allreduce(ONES, op=hvd.Sum)),
    "allreduce_": lambda: is_sum(hvd.allreduce_(ONES.clone(), op=hvd.Sum)),
    "allreduce_async": lambda: is_sum(wait(hvd.allreduce_async(ONES, op=hvd.Sum, name="a"))),
    "allreduce_async_": lambda: is_sum(wait(hvd.allreduce_async_(ONES.clone(), op=hvd.Sum))),
    "grouped_allreduce": lambda: all(map(is_sum, hvd.grouped_allreduce([ONES, ONES], op=hvd.Sum))),
    "grouped_allreduce_": lambda: is_sum(hvd.grouped_allreduce_([ONES.clone()], op=hvd.Sum)[0]),
    "grouped_allreduce_async": lambda: is_sum(wait(hvd.grouped_allreduce_async([ONES], op=hvd.Sum))[0]),
    "grouped_allreduce_async_": lambda: is_sum(
        wait(hvd.grouped_allreduce_async_([ONES.clone()], op=hvd.Sum))[0]
    ),
    "sparse_allreduce_async": lambda: is_sum(
        hvd.sparse_allreduce_async(ONES.to_sparse(), name="s", op=hvd.Sum)().to_dense()
    ),
    "allgather": lambda: hvd.allgather(torch.tensor([RANK])).tolist() == list(range(SIZE)),
    "allgather_async": lambda: wait(hvd.allgather_async(torch.tensor([RANK]))).tolist() == list(range(SIZE)),
    "grouped_allgather": lambda: hvd.grouped_allgather([ONES, ONES[:1]])[1].shape[0] == SIZE,
    "grouped_allgather_async": lambda: wait(hvd.grouped_allgather_async([ONES]))[0].shape[0] == 2 * SIZE**2,
    "broadcast": lambda: hvd.broadcast(torch.tensor(RANK), root_rank=SIZE - 1).item() == SIZE - 1,
    "broadcast_": lambda: hvd.broadcast_(torch.tensor(RANK), root_rank=SIZE - 1).item() == SIZE - 1,
    "broadcast_async": lambda: wait(hvd.broadcast_async(torch.tensor(RANK), 0)).item() == 0,
    "broadcast_async_": lambda: wait(hvd.broadcast_async_(torch.tensor(RANK), 0)).item() == 0,
    "alltoall": lambda: hvd.alltoall(torch.full((SIZE,), RANK)).tolist() == list(range(SIZE)),
    "alltoall_async": lambda: wait(hvd.alltoall_async(torch.full((SIZE,), RANK), [1] * SIZE))[1].sum()
    == SIZE,
    "reducescatter": lambda: is_sum(hvd.reducescatter(ONES, op=hvd.Sum)),
    "reducescatter_async": lambda: wait(hvd.reducescatter_async(ONES)).shape == (2, 3),
    "grouped_reducescatter": lambda: is_sum(hvd.grouped_reducescatter([ONES], op=hvd.Sum)[0]),
    "grouped_reducescatter_async": lambda: wait(hvd.grouped_reducescatter_async([ONES]))[0].shape == (2, 3),
    "poll": lambda: isinstance(hvd.poll(work := hvd.allreduce_async(ONES)), bool) and wait(work) is not None,
    "synchronize": lambda: is_sum(hvd.synchronize(hvd.allreduce_async(ONES, op=hvd.Sum))),
    "barrier": lambda: hvd.barrier() is None,
    "join": lambda: 0 <= hvd.join() < SIZE,
    "broadcast_parameters": broadcast_parameters,
    "broadcast_optimizer_state": broadcast_optimizer_state,
    "broadcast_object": lambda: hvd.broadcast_object({"rank": RANK}, root_rank=0) == {"rank": 0},
    "allgather_object": lambda: hvd.allgather_object(RANK) == list(range(SIZE)),
    "Average": lambda: reduced_by(hvd.Average) == (SIZE + 1) / 2,
    "Sum": lambda: reduced_by(hvd.Sum) == SIZE * (SIZE + 1) / 2,
    "Min": lambda: reduced_by(hvd.Min) == 1,
    "Max": lambda: reduced_by(hvd.Max) == SIZE,
    "Product": product,
    "Adasum": adasum,
    "Compression": lambda: trained(compression=hvd.Compression.fp16)
    and trained(compression=hvd.Compression.none),
    "DistributedOptimizer": trained,
    "SyncBatchNorm": batch_norm,
    "ProcessSet": process_sets,
    "global_process_set": lambda: is_sum(hvd.allreduce(ONES, op=hvd.Sum, process_set=hvd.global_process_set)),
    "add_process_set": process_sets,
    "remove_process_set": process_sets,
    "HorovodInternalError": internal_error,
    "elastic": elastic_run,
    "elastic.run": elastic_run,
    "elastic.TorchState": elastic_run,
    "elastic.ElasticSampler": lambda: len(hvd.elastic.ElasticSampler(range(4 * SIZE))) == 4,
    "mpi_built": lambda: hvd.mpi_built() is True,
    "mpi_enabled": lambda: hvd.mpi_enabled() is True,
    "mpi_threads_supported": lambda: hvd.mpi_threads_supported() in (False, True),
    "cuda_built": lambda: hvd.cuda_built() in (False, True),
    "gloo_built": lambda: hvd.gloo_built() is False,
    "gloo_enabled": lambda: hvd.gloo_enabled() is False,
    "nccl_built": lambda: hvd.nccl_built() == 0,
    "ddl_built": lambda: hvd.ddl_built() is False,
    "ccl_built": lambda: hvd.ccl_built() is False,
    "rocm_built": lambda: hvd.rocm_built() is False,
    "start_timeline": lambda: hvd.start_timeline(tempfile.gettempdir() + "/timeline.json", mark_cycles=True),
    "stop_timeline": lambda: hvd.stop_timeline(),
}


def rows(header):
    """The cells of the rows of the table whose first cell is `header`."""
    lines = README.read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(f"| {header}"))
    found = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            return found
        found.append([cell.strip() for cell in line.strip("|").split("|")])


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


def table():
    """The names of the table, each with what the second column says of it."""
    return [(name, here) for names, here, _ in rows("Names of `horovod.torch`") for name in quoted(names)]


class Names(unittest.TestCase):
    def test_table_is_complete(self):
        self.assertEqual(sorted(name for name, _ in table()), sorted(HOROVOD))
        self.assertEqual(sorted(CHECKS), sorted(HOROVOD))

    def test_each_name(self):
        for name, here in table():
            with self.subTest(name):
                found = hvd
                for part in name.split("."):
                    found = getattr(found, part)
                raises = re.fullmatch(r"raises `(\w+)`: (.+)", here)
                if raises:
                    kind = {each.__name__: each for each in (NotImplementedError, ValueError)}[raises[1]]
                    with self.assertRaisesRegex(kind, re.escape(raises[2])):
                        CHECKS[name]()
                else:
                    self.assertEqual(here, "works")
                    self.assertTrue(CHECKS[name]())

    def test_modules(self):
        found = {
            quoted(module)[0]: (here, quoted(absent)) for module, here, absent in rows("Modules of Horovod")
        }
        self.assertEqual(sorted(found), sorted(MODULES))
        for module, (here, absent) in found.items():
            names = MODULES[module].split()
            made = importlib.import_module(module.replace("horovod", "mpix_sparse"))
            absent = [name for name in absent if name != "mpiexec"]
            self.assertEqual(set(absent) - set(names), set())
            for name in names:
                with self.subTest(module=module, name=name):
                    self.assertEqual(hasattr(made, name), name not in absent)
                    if hasattr(hvd, name) and name not in absent:
                        self.assertIs(getattr(made, name), getattr(hvd, name))
                    if "table above" not in here and name not in absent:
                        self.assertIn(name, quoted(here))

    def test_absent(self):
        with self.assertRaisesRegex(ImportError, "cannot import name 'env'"):
            from mpix_sparse.common.util import env  # noqa: F401

    def test_compressors(self):
        from mpix_sparse.torch.compression import Compressor, FP16Compressor, NoneCompressor

        self.assertTrue(trained(compression=FP16Compressor) and trained(compression=NoneCompressor))
        for made in Compressor, type("Mine", (Compressor,), {}):
            with self.assertRaisesRegex(TypeError, "it must be Compression.none, bf16, fp16 or dgc"):
                hvd.allreduce(ONES, compression=made)

    def test_util(self):
        from mpix_sparse.common import util

        self.assertEqual([util.extension_available(name) for name in ("torch", "mxnet")], [True, False])
        self.assertIs(util.gpu_available("torch"), torch.cuda.is_available())

    def test_parameters(self):
        for function, names in PARAMETERS.items():
            found, wanted = list(inspect.signature(getattr(hvd, function)).parameters), names.split()
            self.assertEqual(found[: len(wanted)], wanted, function)

    def test_exported(self):
        """The names in __all__ are sorted, and there."""
        self.assertEqual(hvd.__all__, sorted(hvd.__all__))
        self.assertTrue(all(hasattr(hvd, name) for name in hvd.__all__))
        self.assertFalse({name for name in HOROVOD if "." not in name} - set(hvd.__all__))


if __name__ == "__main__":
    main()
