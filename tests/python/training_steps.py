# SPDX-License-Identifier: BSD-3-Clause
"""Test bench/training: all ways to sum gradients train equally well, and the records have what bench/evaluate
reads."""

import argparse
import pathlib
import sys
import unittest

from common import main, need

torch = need("torch", "python3-torch")

import mpix_sparse  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "training"))

import steps  # noqa: E402

TURNS = 2


class TrainingSteps(unittest.TestCase):
    def records(self, model, text=None):
        options = argparse.Namespace(model=model, text=text)
        trainers = [steps.Trainer(way, options) for way in steps.WAYS]
        for _ in range(TURNS):
            for trainer in trainers:
                trainer.turn()
        return {trainer.way: trainer.record(1) for trainer in trainers}

    def check(self, found):
        for way, record in found.items():
            self.assertEqual(record["losses"][0], found["dense"]["losses"][0], way)
            for ours, dense in zip(record["losses"], found["dense"]["losses"]):
                self.assertAlmostEqual(ours, dense, delta=1e-4 * abs(dense), msg=way)
            counted = TURNS - 1 if way == "dense" else steps.TURN * (TURNS - 1)
            self.assertEqual(len(record["step_s"]), counted)
            self.assertLessEqual(record["min_s"], record["median_s"])
            names = [name for name, _, _ in record["spans"]]
            self.assertEqual(names[:3] + names[-1:], ["forward", "backward", "wait", "update"])
            for name, begin, end in record["spans"]:
                self.assertLessEqual(begin, end, name)
        rows = [(r, s) for r, s in zip(found["auto"]["rows_in"], found["auto"]["rows_out"]) if r is not None]
        self.assertTrue(rows and all(0 < r <= s for r, s in rows))
        self.assertEqual(found["dense"]["rows_in"], [None] * len(found["dense"]["rows_in"]))

    def test_recommendation(self):
        found = self.records("dlrm")
        self.check(found)
        sums = [name for name, _, _ in found["auto"]["spans"]][3:-1]
        self.assertEqual(
            sorted(sums), sorted([f"table {i + 1}" for i in range(len(steps.ROWS))] + ["others"])
        )

    def test_language(self):
        words = [f"w{(7 * i * i + i) % 997}" for i in range(30 * 32 * mpix_sparse.size())]
        path = pathlib.Path(f"training_steps.{mpix_sparse.rank()}.{mpix_sparse.size()}.txt")
        path.write_text(" ".join(words))
        self.addCleanup(path.unlink)
        self.check(self.records("language", str(path)))


main()
