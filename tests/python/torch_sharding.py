# SPDX-License-Identifier: BSD-3-Clause
"""Test shard_state=True: bits of parameters equal those of whole state, each rank has the state of its rows,
and an error on one rank is an exception on all."""

import copy
import io
import unittest

from common import main, need

torch = need("torch", "python3-torch")

import mpix_sparse  # noqa: E402
import mpix_sparse.torch as hvd  # noqa: E402

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
LAST = RANK == SIZE - 1
ANOTHER = "nnz is -1|another rank could not carry out its part"
WORDS, WIDTH = 211, 12  # no multiple of the number of ranks


class Model(torch.nn.Module):
    """Two tables; one is used by rank 0 only, from step 2 on."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH, sparse=True)
        self.rare = torch.nn.Embedding(WORDS, WIDTH, sparse=True)
        self.outer = torch.nn.Linear(WIDTH, 3)

    @property
    def tables(self):
        return [self.words.weight, self.rare.weight]


def make_model():
    torch.manual_seed(7)
    return Model()


def loss_of(model, step, scale=1.0):
    generator = torch.Generator().manual_seed(100 * step + RANK)
    text = torch.randint(0, WORDS, (6, 5), generator=generator)
    classes = torch.randint(0, 3, (6,), generator=generator)
    hidden = model.words(text).mean(1)
    if RANK == 0 and step >= 2:
        hidden = hidden + model.rare(text).mean(1)
    return scale * torch.nn.functional.cross_entropy(model.outer(hidden), classes)


SGD, ADAGRAD, ADAM = torch.optim.SGD, torch.optim.Adagrad, torch.optim.SparseAdam
KINDS = [
    (SGD, {"lr": 0.3}),
    (SGD, {"lr": 0.3, "momentum": 0.9}),
    (SGD, {"lr": 0.3, "momentum": 0.9, "nesterov": True}),
    (SGD, {"lr": 0.3, "momentum": 0.7, "dampening": 0.2}),
    (ADAGRAD, {"lr": 0.2, "lr_decay": 0.01, "initial_accumulator_value": 0.1}),
    (ADAM, {"lr": 0.05}),
]


class Training:
    """A model and its optimizers. SparseAdam takes no dense gradients, so SGD has the rest."""

    def __init__(self, kind, options, sharded, **how):
        self.model = make_model()
        rest = list(self.model.outer.parameters())
        mine = self.model.tables + ([] if kind is ADAM else rest)
        self.optimizer = hvd.DistributedOptimizer(kind(mine, **options), shard_state=sharded, **how)
        self.optimizers = [self.optimizer]
        if kind is ADAM:
            self.optimizers.append(hvd.DistributedOptimizer(SGD(rest, lr=0.3)))

    def train(self, steps):
        for step in steps:
            for each in self.optimizers:
                each.zero_grad()
            loss_of(self.model, step).backward()
            for each in self.optimizers:
                each.step()
        return self


def rows_of_state(optimizer, parameter):
    """The shapes of state tensors with rows, and the numbers that they occupy in memory."""
    tensors = [each for each in optimizer.state[parameter].values() if torch.is_tensor(each) and each.dim()]
    numbers = [each._values().numel() if each.is_sparse else each.storage().size() for each in tensors]
    return [len(each) for each in tensors], numbers


class Compared(unittest.TestCase):
    def equal(self, ours, theirs):
        for (name, mine), other in zip(ours.named_parameters(), theirs.parameters()):
            self.assertTrue(torch.equal(mine, other), f"{name} differs from that of whole state")
        self.same_on_ranks(ours)

    def same_on_ranks(self, model):
        numbers = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
        self.assertTrue(torch.equal(numbers, hvd.broadcast(numbers, 0)), "ranks differ")


class Sharding(Compared):
    def test_bits(self):
        for kind, options in KINDS:
            for how in {}, {"op": hvd.Sum, "sparse_views": True}:
                with self.subTest(kind=kind.__name__, **options, **how):
                    ours = Training(kind, options, True, **how).train(range(8))
                    self.equal(ours.model, Training(kind, options, False, **how).train(range(8)).model)

    def accumulated(self, sharded, **how):
        model = make_model()
        optimizer = ADAGRAD(model.parameters(), lr=0.2, initial_accumulator_value=0.1)
        how = {"backward_passes_per_step": 2, "shard_state": sharded, **how}
        optimizer = hvd.DistributedOptimizer(optimizer, **how)
        for step in range(4):
            optimizer.zero_grad()
            loss_of(model, 2 * step).backward()
            loss_of(model, 2 * step + 1).backward()
            optimizer.step()
        return model

    def test_passes(self):
        self.equal(self.accumulated(True), self.accumulated(False))

    def test_compression(self):
        """Whole state rounds the sums once more."""
        models = [self.accumulated(sharded, compression=hvd.Compression.bf16) for sharded in (True, False)]
        self.same_on_ranks(models[0])
        for mine, other in zip(*(model.tables for model in models)):
            self.assertLess(float((mine - other).abs().max()), 0.01)

    def test_bfloat16(self):
        """Rows of a type that NumPy lacks."""
        tables = []
        for sharded in True, False:
            torch.manual_seed(7)
            table = torch.nn.Embedding(WORDS, WIDTH, sparse=True).bfloat16()
            optimizer = hvd.DistributedOptimizer(SGD(table.parameters(), lr=0.3), shard_state=sharded)
            for step in range(3):
                optimizer.zero_grad()
                table(torch.arange(step + RANK, 40)).sum().backward()
                optimizer.step()
            tables.append(table.float())
        self.equal(*tables)

    def test_memory(self):
        """A rank has the state of its rows, in memory of that size, also where the optimizer makes state of
        all rows at first."""
        own = len(range(RANK, WORDS, SIZE))
        for kind, options in KINDS[1:]:
            trained = Training(kind, options, True).train(range(4))
            for table in trained.model.tables:
                rows, numbers = rows_of_state(trained.optimizer, table)
                self.assertEqual(set(rows), {own}, (kind, rows))
                self.assertLessEqual(max(numbers), own * WIDTH)
            if kind is ADAGRAD:
                weight = trained.model.outer.weight
                self.assertEqual(rows_of_state(trained.optimizer, weight), ([3], [3 * WIDTH]))

    def test_gradients(self):
        """After synchronize() a rank has the gradients of its rows, and step() uses what they are then."""
        models = []
        for sharded in True, False:
            trained = Training(SGD, {"lr": 0.3}, sharded)
            loss_of(trained.model, 0).backward()
            trained.optimizer.synchronize()
            gradient = trained.model.words.weight.grad
            self.assertEqual(gradient.shape, (WORDS, WIDTH))
            if sharded:
                self.assertTrue((gradient._indices() % SIZE == RANK).all())
            gradient._values().mul_(0.5)
            with trained.optimizer.skip_synchronize():
                trained.optimizer.step()
            models.append(trained.model)
        self.equal(*models)

    def test_closure_and_schedule(self):
        models = []
        for sharded in True, False:
            model = make_model()
            optimizer = SGD(model.parameters(), lr=0.5, momentum=0.5)
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
            optimizer = hvd.DistributedOptimizer(optimizer, shard_state=sharded)
            for step in range(3):

                def closure():
                    optimizer.zero_grad()
                    loss = loss_of(model, step)
                    loss.backward()
                    return loss

                self.assertGreater(float(optimizer.step(closure)), 0)
                schedule.step()
            models.append(model)
        self.equal(*models)

    def test_parameters_added_later(self):
        models = []
        for sharded in True, False:
            model = make_model()
            optimizer = hvd.DistributedOptimizer(SGD([model.words.weight], lr=0.5), shard_state=sharded)
            for step in range(6):
                if step == 3:
                    optimizer.add_param_group({"params": [model.rare.weight], "lr": 0.2, "momentum": 0.9})
                model.zero_grad(set_to_none=True)
                loss_of(model, step).backward()
                optimizer.step()
            models.append(model)
        self.equal(*models)

    def test_process_set(self):
        """Ranks outside the set make steps alone, with whole state."""
        if SIZE == 1:
            self.skipTest("takes two ranks")
        some = hvd.add_process_set(range(SIZE - 1))
        trained = [
            Training(SGD, {"lr": 0.3, "momentum": 0.9}, sharded, process_set=some) for sharded in (1, 0)
        ]
        for each in trained:
            each.train(range(4))
        for mine, other in zip(*(each.model.parameters() for each in trained)):
            self.assertTrue(torch.equal(mine, other))
        hvd.remove_process_set(some)

    def test_few_rows(self):
        """Ranks without rows, or without gradients of their rows, count the steps of the others."""
        for kind, options in KINDS:
            for rows in 1, 5:
                tables = []
                for sharded in True, False:
                    table = torch.nn.Embedding(rows, 3, sparse=True)
                    torch.nn.init.ones_(table.weight)
                    optimizer = kind(table.parameters(), **options)
                    optimizer = hvd.DistributedOptimizer(optimizer, shard_state=sharded)
                    for step in range(6):
                        optimizer.zero_grad()
                        table(torch.full((2,), step // 2 % rows)).sum().backward()
                        optimizer.step()
                    tables.append(table)
                self.equal(*tables)


def saved(optimizer):
    """A state_dict() that was written to a file and read again."""
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    return torch.load(file)


class States(Compared):
    def test_bits(self):
        """Training goes on with the bits of uninterrupted training, in a new optimizer."""
        for kind, options in KINDS:
            with self.subTest(kind=kind.__name__, **options):
                first = Training(kind, options, True).train(range(4))
                second = Training(kind, options, True)
                second.model.load_state_dict(first.model.state_dict())
                for mine, other in zip(second.optimizers, first.optimizers):
                    mine.load_state_dict(saved(other))
                self.equal(second.train(range(4, 8)).model, first.train(range(4, 8)).model)
                whole = Training(kind, options, False).train(range(8))
                self.equal(second.model, whole.model)

    def test_loaded_again(self):
        """A state of an earlier step, loaded in the optimizer that has saved it."""
        trained = Training(*KINDS[4], True).train(range(3))
        kept = copy.deepcopy((trained.model.state_dict(), trained.optimizer.state_dict()))
        wanted = copy.deepcopy(trained.train(range(3, 6)).model)
        trained.model.load_state_dict(kept[0])
        trained.optimizer.load_state_dict(kept[1])
        self.equal(trained.train(range(3, 6)).model, wanted)

    def test_whole_state(self):
        """A state of an optimizer without shards is cut, before the first step and later."""
        for kind, options in KINDS:
            whole = Training(kind, options, False).train(range(4))
            for steps in 0, 2:
                ours = Training(kind, options, True).train(range(steps))
                ours.model.load_state_dict(whole.model.state_dict())
                for mine, other in zip(ours.optimizers, whole.optimizers):
                    mine.load_state_dict(saved(other))
                ours.train(range(4, 7))
                theirs = Training(kind, options, False).train(range(7))
                self.equal(ours.model, theirs.model)
                self.assertTrue(
                    all(
                        len(range(RANK, WORDS, SIZE)) == rows
                        for rows in rows_of_state(ours.optimizer, ours.model.words.weight)[0]
                    )
                )

    def test_contents(self):
        trained = Training(*KINDS[4], True)
        self.assertNotIn("mpix_sparse_shards", trained.optimizer.state_dict())
        state = trained.train(range(3)).optimizer.state_dict()
        wanted = {"rank": RANK, "ranks": SIZE, "parameters": [0, 1]}
        self.assertEqual(state["mpix_sparse_shards"], wanted)
        self.assertEqual(len(state["state"][0]["sum"]), len(range(RANK, WORDS, SIZE)))

    def test_refused(self):
        state = Training(*KINDS[4], True).train(range(3)).optimizer.state_dict()
        other = {**state, "mpix_sparse_shards": {"rank": RANK + 1, "ranks": SIZE + 1, "parameters": [0, 1]}}
        for sentence, sharded, each in (
            ("load it with shard_state=True", False, state),
            (f"rank {RANK + 1} of {SIZE + 1}, and this is rank {RANK} of {SIZE}", True, other),
        ):
            with self.assertRaisesRegex(ValueError, sentence):
                Training(*KINDS[4], sharded).optimizer.load_state_dict(each)
        if SIZE > 1:
            ours = Training(*KINDS[4], True)
            ours.optimizer.load_state_dict({key: state[key] for key in ("state", "param_groups")})
            ours.train(range(1))  # state of the rank's rows is taken as such
            state["state"][0]["sum"] = torch.ones(7, WIDTH)
            ours.optimizer.state[ours.model.words.weight]["sum"] = torch.ones(7, WIDTH)
            with self.assertRaisesRegex(ValueError, "has 7 rows; this rank owns"):
                ours.optimizer.load_state_dict({key: state[key] for key in ("state", "param_groups")})

    def test_broadcast(self):
        """State of all rows is broadcast before the first step; later no rank has it."""
        trained = Training(*KINDS[4], True)
        hvd.broadcast_optimizer_state(trained.optimizer, 0)
        trained.train(range(2))
        with self.assertRaisesRegex(ValueError, "is sharded"):
            hvd.broadcast_optimizer_state(trained.optimizer, 0)

    def test_elastic(self):
        trained = Training(*KINDS[4], True).train(range(2))
        state = hvd.elastic.TorchState(trained.model, trained.optimizer)
        state.sync()
        wanted = copy.deepcopy(trained.train(range(2, 4)).model)
        state.restore()
        state.sync()
        self.equal(trained.train(range(2, 4)).model, wanted)


class Refused(unittest.TestCase):
    def test_arguments(self):
        weight = [torch.nn.Parameter(torch.ones(3))]
        for error, sentence, optimizer, how in (
            (TypeError, "for SGD, Adagrad, SparseAdam, not for Adam", torch.optim.Adam(weight), {}),
            (TypeError, "not for RMSprop", torch.optim.RMSprop(weight), {}),
            (ValueError, "sparse_as_dense makes them dense", SGD(weight, 0.1), {"sparse_as_dense": True}),
            (ValueError, "not for op Adasum", SGD(weight, 0.1), {"op": hvd.Adasum}),
        ):
            with self.assertRaisesRegex(error, sentence):
                hvd.DistributedOptimizer(optimizer, shard_state=True, **how)

    def fails(self, sentence, call, others):
        """Check that a call fails with a sentence on the last rank, and with another error on the others."""
        with self.assertRaisesRegex(*((ValueError, sentence) if LAST else (mpix_sparse.Error, others))):
            call()

    def test_dense_gradient(self):
        """A sharded parameter gets a dense gradient on one rank, from a backward pass or from the user."""
        sentence = "gradient of words.weight is dense, and its optimizer state is sharded"
        model = make_model()
        optimizer = SGD(model.parameters(), lr=0.1)
        optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters(), shard_state=True)
        for step in range(2):
            optimizer.zero_grad()
            loss_of(model, step).backward()
            optimizer.step()
        loss = loss_of(model, 3) + (model.words.weight.sum() if LAST else 0)
        optimizer.zero_grad()
        loss.backward()
        self.fails(sentence, optimizer.step, ANOTHER)

    def test_failed_step(self):
        """A step that fails on one rank fails on all, and later steps work."""
        trained = Training(SGD, {"lr": 0.1}, True).train(range(2))
        weight = trained.model.words.weight
        trained.optimizer.zero_grad()
        loss_of(trained.model, 2).backward()
        trained.optimizer.synchronize()
        kept = weight.grad
        if LAST:
            weight.grad = kept.to_dense()
        with trained.optimizer.skip_synchronize():
            self.fails("is dense, and its", trained.optimizer.step, "step failed on a rank")
            if SIZE > 1:
                weight.grad = kept
                if LAST:
                    weight.grad = torch.sparse_coo_tensor([[SIZE - 2]], torch.ones(1, WIDTH), weight.shape)
                self.fails("was not reduced", trained.optimizer.step, "step failed on a rank")
            weight.grad = kept
            trained.optimizer.step()

    def test_models(self):
        """Optimizers that differ between ranks."""
        if SIZE == 1:
            self.skipTest("takes two ranks")
        model = make_model()
        optimizer = (ADAGRAD if LAST else SGD)(model.parameters(), lr=0.1)
        optimizer = hvd.DistributedOptimizer(optimizer, shard_state=True)
        loss_of(model, 0).backward()
        with self.assertRaisesRegex(
            ValueError, "with op Average, sharded state of SGD, and rank . calls .* of Adagrad"
        ):
            optimizer.step()
        optimizer = hvd.DistributedOptimizer(SGD(make_model().parameters(), lr=0.1), shard_state=LAST)
        with self.assertRaisesRegex(ValueError, "op Average, and rank . calls .* op Average, sh"):
            optimizer.step()

    def test_scaler(self):
        optimizer = Training(SGD, {"lr": 0.1}, True).optimizer
        with self.assertRaisesRegex(RuntimeError, "GradScaler is not for shard_state"):
            optimizer._step_supports_amp_scaling

    def test_join(self):
        """A rank in join() cannot update its rows: all ranks get an exception."""
        if SIZE == 1:
            self.skipTest("takes two ranks")
        trained = Training(SGD, {"lr": 0.1}, True).train(range(3))
        call = hvd.join if LAST else lambda: trained.train(range(3, 4))
        self.fails("shard_state=True has no join", call, ANOTHER)


if __name__ == "__main__":
    main()
