"""performance.rivals_table: the table and the page of recorded lines, and the comparison of results. Usage: report_test.py"""
import tempfile
import unittest
from pathlib import Path

import numpy as np
import rivals
from page import page
from report import cells, summary, table
from works import WORKS, inputs

MACHINE, ROWS = rivals.read_lines(Path(__file__).with_name("recorded.jsonl"))


class Recorded(unittest.TestCase):
    def test_the_best_rival_is_the_one_with_the_least_median(self):
        self.assertEqual(cells(summary(ROWS[0])), ["matmul 128 x 512 x 512", "bf16", "0.4000", "0.4000", "torch eager", "1.25", "0.42 of peak", ""])

    def test_disturbed_and_wrong_rows_are_marked(self):
        self.assertEqual(cells(summary(ROWS[1])), ["transpose", "f32", "10.0000", "8.0000", "jax jit", "0.80", "0.50 of copy", "~!"])

    def test_a_work_without_a_rival_and_one_without_scalide_have_dashes(self):
        self.assertEqual(cells(summary(ROWS[2]))[3:], ["-", "-", "-", "0.50 of copy", ""])
        self.assertEqual(cells(summary(ROWS[3]))[2:], ["-", "-", "-", "-", "-", ""])

    def test_reasons_are_below_the_table(self):
        text = table(MACHINE, ROWS)
        for line in ("onednn: cannot be installed. ERROR: No matching distribution found for onednn-cpu-gomp==2023.2.0", "AMX: no. AVX-512 BF16: yes.",
                     "- torch compile: BackendError: no compiler. Works: transpose f32", "- jax: no answer in 300 s. Works: dropout f32",
                     "- scalide library: TraceError: no rule. Works: roll f32",
                     "! transpose f32: the results of jax and Scalide differ by 5.0e-01, allowed is 1e-03"):  # fmt: skip
            self.assertIn(line, text.splitlines())

    def test_the_page_is_one_file_with_a_bar_for_each_ratio(self):
        text = page(MACHINE, ROWS)
        self.assertEqual((text.count('class="ahead"'), text.count('class="behind"')), (1, 1))
        self.assertIn("faster than the best rival in 1 of 2 works", text)
        for word in ("http:", "https:", "src=", "<script", "url("):
            self.assertNotIn(word, text)


class Results(unittest.TestCase):
    def test_differences_are_relative_to_the_largest_magnitude(self):
        with tempfile.TemporaryDirectory() as folder:
            files = Path(folder, "a.npz"), Path(folder, "b.npz")
            for file, last in zip(files, (4.0, 3.0)):
                np.savez(file, np.array([1, 2, last], np.float32))
            self.assertAlmostEqual(rivals.difference(*files), 1 / 3, 6)
            np.savez(files[1], np.zeros(2, np.float32))
            self.assertEqual(rivals.difference(*files), float("inf"))
            np.savez(files[1], np.full(3, np.nan, np.float32))
            self.assertEqual(rivals.difference(*files), float("inf"))

    def test_three_quiet_rounds_are_enough(self):
        def rounds(*others):
            return [{"others": part} for part in others]

        self.assertEqual(rivals.chosen(rounds(0.5, 0.01, 0.06, 0.02, 0.4), 5), rounds(0.01, 0.06, 0.02))
        self.assertEqual(rivals.chosen(rounds(0.5, 0.01, 0.3, 0.02), 3), rounds(0.01, 0.02, 0.3))
        self.assertEqual(rivals.chosen(rounds(0.01, 0.02, 0.5), 2), rounds(0.01, 0.02))

    def test_inputs_are_the_same_in_every_process(self):
        first, again = (inputs(WORKS["tiny matmul f32"]) for _ in range(2))
        self.assertTrue(all(np.array_equal(a, b) for a, b in zip(first, again)))
        self.assertAlmostEqual(float(first[0][0, 0]), -0.063914, 5)


if __name__ == "__main__":
    unittest.main()
