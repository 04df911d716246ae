#!/usr/bin/env python3
"""Figures and summaries of many prompts: their numbers are compared with NumPy."""

import csv
import io
import itertools
import json
import unittest

import h5py
import numpy

from program import HF_MODEL, NEEDS_ENGINE, TEXT, ProgramTest

N = 6
POLICIES = {"full": "full", "snapkv": "snapkv:window=8", "h2o": "h2o", "random": "random"}


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def exact_p(differences):
    """Paired exchange test with all 2^n exchanges."""
    differences = numpy.asarray(differences)
    sums = [abs((differences * signs).sum()) for signs in itertools.product((1, -1), repeat=len(differences))]
    return numpy.mean(numpy.asarray(sums) >= abs(differences.sum()) - 1e-12)


def holm(values):
    order, adjusted, greatest = numpy.argsort(values), numpy.empty(len(values)), 0
    for rank, i in enumerate(order):
        greatest = max(greatest, values[i] * (len(values) - rank))
        adjusted[i] = min(greatest, 1)
    return adjusted


@NEEDS_ENGINE
class Results(ProgramTest):
    @classmethod
    def prepare(cls):
        cls.folder.joinpath("texts").mkdir()
        for i in range(N):
            cls.folder.joinpath("texts", f"{i}.txt").write_text(TEXT[10 * i:] + TEXT[:5 * i])
        cls.done = cls.made("run", "texts", "-m", HF_MODEL, "--policy", "snapkv:window=8", "--policy", "h2o", "--policy", "random",
                            "--budget", "16,32", "-n", 6, "--dtype", "f32", "-t", 1, "-o", "t.h5")
        with h5py.File(cls.folder / "t.h5") as trace:
            cls.rows = trace["results/prompts"][:]

    def values(self, column, policy, budget):
        """One number per prompt, in the order of the prompts."""
        return numpy.array([row[column] for row in self.rows if text(row["policy"]) == policy and
                            (policy == "full" or row["budget"] == budget)])

    def exported(self, figure, extension, *options):
        self.made("export", "t.h5", "--figure", figure, *options, "-o", f"r.{extension}", "--force")
        return self.path(f"r.{extension}").read_bytes()

    def table(self, figure, *options):
        return list(csv.DictReader(io.StringIO(self.exported(figure, "csv", *options).decode())))

    def test_means_and_comparisons(self):
        rows = self.table("results-table", "--cells", "kl", "--against", "h2o")
        self.assertEqual([(row["policy"], row["budget"]) for row in rows],
                         [(setting, budget) for setting in POLICIES.values() for budget in ("16", "32")])
        settings = {setting: policy for policy, setting in POLICIES.items()}
        p = []
        for row in rows:
            budget = int(row["budget"])
            kl = self.values("kl", settings[row["policy"]], budget)
            self.assertEqual((int(row["n"]), int(row["contexts"]), int(row["failed"])), (N, N, 0))
            self.assertAlmostEqual(float(row["mean"]), kl.mean(), places=12)
            self.assertAlmostEqual(float(row["median"]), numpy.median(kl), places=12)
            self.assertLessEqual(kl.min() - 1e-12, float(row["low"]))
            self.assertLessEqual(float(row["low"]), float(row["mean"]) + 1e-12)
            self.assertLessEqual(float(row["mean"]), float(row["high"]) + 1e-12)
            self.assertLessEqual(float(row["high"]), kl.max() + 1e-12)
            difference = kl - self.values("kl", "h2o", budget)
            if row["policy"] in ("h2o", "full"):  # KL of full is 0 by definition
                self.assertEqual((row["comparison"], row["p"]), ("reference" if row["policy"] == "h2o" else "", ""))
                continue
            self.assertAlmostEqual(float(row["difference"]), difference.mean(), places=12)
            self.assertAlmostEqual(float(row["p"]), exact_p(difference), places=12)
            p.append(exact_p(difference))
        compared = [row for row in rows if row["p"]]
        self.assertEqual(len(compared), 4)
        numpy.testing.assert_allclose([float(row["adjusted_p"]) for row in compared], holm(p), rtol=1e-12)
        for row in compared:
            self.assertEqual(row["comparison"] == "not distinguishable", float(row["adjusted_p"]) > 0.05)

    def test_a_trace_of_rows_alone(self):
        said = self.made("run", "texts", "-m", HF_MODEL, "--policy", "snapkv:window=8", "--policy", "h2o", "--policy", "random",
                         "--budget", "16,32", "-n", 6, "--dtype", "f32", "-t", 1, "--record", "rows", "-o", "rows.h5").stdout
        self.assertEqual(said.split("`")[0].rstrip(), self.done.stdout.split("`")[0].rstrip())
        self.made("export", "rows.h5", "--figure", "results-table", "-o", "rows.csv")
        self.assertEqual(self.path("rows.csv").read_bytes(), self.exported("results-table", "csv"))

    def test_shares_of_bytes(self):
        for row in self.table("results-table", "--cells", "bytes_share", "--run", "h2o"):
            share = self.values("bytes", "h2o", int(row["budget"])) / self.values("bytes", "full", 0)
            self.assertAlmostEqual(float(row["mean"]), share.mean(), places=12)

    def test_curves(self):
        rows = self.table("results-curves", "--y", "kl", "--over", "coverage")
        settings = {setting: policy for policy, setting in POLICIES.items()}
        self.assertEqual(len(rows), 8)
        for row in rows:
            policy, budget = settings[row["policy"]], int(row["budget"])
            self.assertAlmostEqual(float(row["x"]), self.values("coverage", policy, budget).mean(), places=12)
            self.assertAlmostEqual(float(row["mean"]), self.values("kl", policy, budget).mean(), places=12)

    def test_formats(self):
        for figure in "results-table", "results-curves":
            self.assertTrue(self.exported(figure, "pdf").startswith(b"%PDF"))
        markdown = self.exported("results-table", "md", "--against", "h2o").decode()
        self.assertIn("|Policy", markdown)
        self.assertEqual([cell.strip() for cell in markdown.splitlines()[0].split("|")[1:-1]], ["Policy", "16", "32", "Mean"])
        self.assertEqual(markdown.count("**"), 2 * 3)  # the best of two budgets and of their mean
        self.assertEqual(markdown.count("<u>"), 3)
        self.assertIn("comparisons: 4", markdown)
        latex = self.exported("results-table", "tex", "--rows", "policy,budget", "--columns", "none").decode()
        self.assertEqual(latex.count("\\textbf{"), 1)
        self.assertIn("\\underline{", latex)
        self.assertIn("% KL (nats). Means over n = 6 samples of 6 contexts", latex)

    def test_options(self):
        export = ("export", "t.h5", "--figure", "results-table", "-o", "no.csv")
        self.refuses(2, ["Did you mean snapkv:window=8"], *export, "--against", "snapkv:window=9")
        self.refuses(2, ["no number 'kll'", "Did you mean kl"], *export, "--cells", "kll")
        self.refuses(2, ["--blocks take one setting", "'task,subset'", "--rows"], *export, "--blocks", "task,subset")
        self.refuses(2, ["no setting 'windw'", "Did you mean window"], *export, "--rows", "windw")
        self.refuses(1, ["no complete run has a value of score"], *export, "--cells", "score")
        self.refuses(2, ["results-table does not use --prompt; it uses --run"], *export, "--prompt", 1)
        self.refuses(2, ["samples does not use --prompt; it uses --run"], "export", "t.h5", "--ranking", "samples", "--prompt", 1)

    def test_seeds_of_random(self):
        seeds = ["1", "2", "3", "4", "5"]
        for command, scalar in ((("run", "texts"), "kl"),
                                (("eval", "--task", "niah", "--lengths", 100, "--depths", 0.5, "--samples", 2), "score")):
            self.made(*command, "-m", HF_MODEL, "--policy", "random:seed=1-5", "--budget", 16, "-n", 4, "--dtype", "f32", "-t", 1,
                      "-o", "seeds.h5", "--force")
            with h5py.File(self.folder / "seeds.h5") as trace:
                (table,) = trace["results"].values()
                rows = [row for row in table[:] if text(row["policy"]) == "random"]
            values = {seed: [row[scalar] for row in rows if json.loads(text(row["parameters_json"]))["seed"] == int(seed)]
                      for seed in seeds}
            if scalar == "kl":
                self.assertEqual(len({tuple(kl) for kl in values.values()}), 5)  # all select other entries
            figure = ("export", "seeds.h5", "--figure", "results-table", "--cells", scalar, "--run", "random", "-o", "seeds.csv",
                      "--force")
            self.made(*figure, "--rows", "seed")
            found = list(csv.DictReader(io.StringIO(self.path("seeds.csv").read_text())))
            self.assertEqual([row["seed"] for row in found], seeds)
            for row in found:
                self.assertEqual(int(row["n"]), len(values[row["seed"]]))
                self.assertAlmostEqual(float(row["mean"]), numpy.mean(values[row["seed"]]), places=12)
            self.made(*figure)
            policies = [row["policy"] for row in csv.DictReader(io.StringIO(self.path("seeds.csv").read_text()))]
            self.assertEqual(policies, [f"random:seed={seed}" for seed in seeds])

    def test_the_summary_of_a_run(self):
        self.assertIn(f"means over {N} prompts", self.done.stdout)
        self.assertIn("`kvscope inspect t.h5` prints the runs and answers of each prompt", self.done.stdout)
        self.assertNotIn("prompt 0", self.done.stdout)
        inspected = self.made("inspect", "t.h5").stdout
        self.assertIn(f"means over {N} prompts", inspected)
        self.assertIn("prompt 5 ", inspected)
        line = next(line for line in self.done.stdout.splitlines() if line.startswith("h2o @ 32"))
        self.assertIn(f"{self.values('kl', 'h2o', 32).mean():.4f} [", line)


if __name__ == "__main__":
    unittest.main()
