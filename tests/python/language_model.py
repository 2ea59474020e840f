# SPDX-License-Identifier: BSD-3-Clause
"""Test the language model of examples/: it learns, and equally well with every way to sum gradients."""

import contextlib
import io
import itertools
import json
import os
import pathlib
import random
import sys
import tempfile
import time
import unittest
import unittest.mock

from common import main, need

torch = need("torch", "python3-torch")

import mpix_sparse.torch as hvd  # noqa: E402

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "language_model"
sys.path.insert(0, str(EXAMPLE))

import record  # noqa: E402
import train  # noqa: E402
from model import LanguageModel as Model  # noqa: E402
from text import Batches, Sampler, Text  # noqa: E402

hvd.init()
SMALL = "--width 24 --hidden 8 --batch 3 --length 5 --samples 20 --rate 0.2 --quiet --turn 3".split()
HAS_GLOO = torch.distributed.is_available() and torch.distributed.is_gloo_available()


def write_text(path):
    """Sentences of 300 words; few words are frequent, and most words are followed by a fixed one."""
    draw = random.Random(5)
    words, word = [], 0
    for _ in range(3000):
        word = (7 * word + 1) % 300 if draw.random() < 0.8 else int(300 ** draw.random()) - 1
        words.append(f"w{word}")
    path.write_text("\n".join(" ".join(words[i : i + 20]) for i in range(0, len(words), 20)))


class LanguageModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.text = pathlib.Path(cls.folder.name) / "text"
        write_text(cls.text)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_record(self):
        """A trace has the rows that gradients of the tables have, of each rank and step."""
        text = Text([str(self.text)])
        for table in ("input", "output"):
            arguments = (
                f"--text {self.text} --table {table} --ranks 2 --steps 2 --batch 3 --length 5 --width 24"
            )
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                record.main(arguments.split())
            lines = [line.split() for line in printed.getvalue().splitlines()]
            self.assertEqual(
                lines[0] + lines[2] + lines[3], f"mpix_sparse_trace 1 count {text.vocabulary} row 24".split()
            )
            for _, step, rank, *rows in lines[4:]:
                model = Model(text.vocabulary, 24, 8, True)
                sampler = Sampler(text.vocabulary, max(1, text.vocabulary // 100), 1, int(rank))
                words = Batches(text.words, 3, 5, int(rank), 2)[int(step)]
                model.loss(*words, sampler.draw(int(step)), sampler, None)[0].backward()
                gradient = model.tables[table == "output"].grad.coalesce()
                self.assertEqual(gradient.indices()[0].tolist(), [int(row) for row in rows])
            self.assertEqual(len(lines), 8)

    def train(self, *options):
        """Return the measurements and the output."""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            measured = train.main(["--text", str(self.text), *SMALL, *options])
        return measured, printed.getvalue()

    def same_losses(self, measured):
        for way in measured[1:]:
            self.assertLess(abs(way.loss - measured[0].loss).max(), 1e-4, way.name)

    def test_each_way_alone(self):
        ways = [way for way in train.WAYS if way != "gloo" or HAS_GLOO]
        measured = [self.train("--communication", way, "--steps", "8")[0][0] for way in ways]
        self.same_losses(measured)
        for way in measured:
            self.assertTrue((way.transfer > 0).all() and (way.wait >= 0).all(), way.name)
            self.assertTrue((way.whole > way.transfer).all(), way.name)

    def test_late(self):
        """Waiting for a rank that is late for a step does not count as transfer of a later step."""
        way, calls = train.WAYS["mpix_sparse"], itertools.count()

        class Late(way):
            def reduce(self):
                super().reduce()
                time.sleep(0.5 if next(calls) == 3 and hvd.rank() == 0 else 0)

        with unittest.mock.patch.dict(train.WAYS, mpix_sparse=Late):
            way = self.train("--communication", "mpix_sparse", "--steps", "8")[0][0]
        self.assertTrue((way.whole > way.transfer).all(), (way.whole, way.transfer))

    def test_compressed(self):
        how = "--communication", "mpix_sparse", "--compression", "dgc", "--steps", "30"
        few, all_of_them = (self.train(*how, "--ratio", ratio)[0][0].loss for ratio in ("0.05", "1"))
        whole = self.train("--communication", "dense", "--steps", "30")[0][0].loss
        self.assertLess(abs(all_of_them - whole).max(), 1e-4)
        self.assertGreater(abs(few - whole).max(), 1e-4)
        self.assertLess(few[-5:].mean(), 0.95 * few[:5].mean())

    def test_sharded(self):
        """The losses have the bits of those of whole state, and a rank has its part of the tables' state."""
        (whole, sharded), printed = self.train("--shard-state", "--steps", "20")
        self.assertEqual((whole.name, sharded.name), ("mpix_sparse", "sharded"))
        self.assertTrue((whole.loss == sharded.loss).all(), abs(whole.loss - sharded.loss).max())
        tables = 4 * 24 * 2 * Text([str(self.text)]).vocabulary
        rest = whole.state_bytes - tables
        self.assertGreater(rest, 0)
        part = sharded.state_bytes - rest
        self.assertLessEqual(abs(part - tables / hvd.size()), 4 * 24 * 2)
        if hvd.rank() == 0:
            self.assertIn("losses of sharded are at most 0 off those of mpix_sparse", printed)

    @unittest.skipUnless(HAS_GLOO, "this PyTorch has no Gloo")
    def test_compared(self):
        json_file = os.path.join(self.folder.name, "json")
        plot = os.path.join(self.folder.name, "plot.svg")
        measured, printed = self.train("--compare", "--steps", "30", "--json", json_file, "--plot", plot)
        self.same_losses(measured)
        self.assertLess(measured[0].loss[-5:].mean(), 0.9 * measured[0].loss[:5].mean())
        if hvd.rank() != 0:
            self.assertEqual(printed, "")
            return
        for way in train.WAYS:
            self.assertRegex(printed, f"(?m)^{way} .* [0-9.]+$")
        self.assertTrue(os.path.exists(plot) or "no plot" in printed, printed)
        with open(json_file, encoding="utf-8") as file:
            kinds = [json.loads(line)["kind"] for line in file]
        self.assertEqual(kinds, ["setup"] + 90 * ["step"] + 3 * ["summary"])

    def test_wrong_options(self):
        """Bad arguments are refused with a message before training."""
        empty = os.path.join(self.folder.name, "empty")
        open(empty, "w").close()
        wrong = [
            ("must be 1 or more", "--steps", "0"),
            ("must be 1 or more", "--turn", "0"),
            ("-4 is negative", "--vocabulary", "-4"),
            ("must be 1 or more", "--vocabulary", "0"),
            ("7 is not above 0 and at most 1", "--ratio", "7"),
            ("no file that can be read", "--text", "nowhere"),
            ("is empty", "--text", empty),
            ("ends in none of .svg", "--plot", "x.nonsense"),
            ("cannot be written", "--json", "/nonexistent/x"),
            ("is for --communication mpix_sparse", "--communication", "gloo", "--compression", "dgc"),
            ("--shard-state is for", "--communication", "gloo", "--shard-state"),
            ("--shard-state is for", "--compression", "dgc", "--shard-state"),
        ]
        for sentence, *options in wrong:
            with contextlib.redirect_stderr(io.StringIO()) as printed:
                with self.subTest(sentence), self.assertRaises(SystemExit):
                    self.train(*options)
            self.assertIn(sentence, printed.getvalue())

    def test_text(self):
        text = Text([str(self.text)])
        self.assertEqual(len(text.words), 3000)
        counts = torch.bincount(text.words)
        self.assertTrue((counts[:-1] >= counts[1:]).all())
        cut = Text([str(self.text)], most=10)
        self.assertEqual((cut.vocabulary, len(cut.words)), (10, 3000))
        self.assertEqual(int((cut.words < 9).sum()), int(counts[:9].sum()))
        shares = [Batches(text.words, 3, 5, rank, 2) for rank in range(2)]
        for share in shares:
            self.assertEqual(share.count, 99)
            words, following = share[4]
            self.assertTrue(torch.equal(words[1:], following[:-1]))
        self.assertTrue(torch.equal(shares[0][0][0][:, 0], text.words[:5]))
        with self.assertRaisesRegex(ValueError, "too few"):
            Batches(text.words, 1000, 5, 0, 2)

    def test_sampler(self):
        sampler = Sampler(300, 50, 1, 0)
        draws = torch.cat([sampler.draw(step) for step in range(400)])
        self.assertTrue(torch.equal(sampler.draw(7), draws[350:400]))
        words = torch.tensor([0, 1, 5])
        found = torch.bincount(draws, minlength=300)[words] / 400
        self.assertTrue(torch.allclose(found, sampler.log_expected(words).exp(), rtol=0.1), found)


if __name__ == "__main__":
    main()
