#!/usr/bin/env python3
"""`kvscope export --ranking`: every ranking in every format, with the numbers of the trace."""

import functools
import json
import unittest

import h5py
import numpy

from program import NEEDS_ENGINE, SOURCE, ProgramTest, csv_rows, json_rows, jsonl_rows

RANKING_FILES = sorted(path.stem.replace("_", "-") for path in (SOURCE / "analysis" / "rankings").glob("*.cpp"))

NEEDED = {"marks": ("--mark", "it")}  # options that a ranking needs


@NEEDS_ENGINE
class Ranking(ProgramTest):
    @classmethod
    def prepare(cls):
        cls.make_trace("t.h5", "--policy", "snapkv:window=8", "--policy", "h2o", "--budget", "24,64",
                       prompt="The fox runs. It jumps! Who sees it? A hen sees it, and 3.5 foxes flee. Then all sleep in the "
                              "green garden behind the old barn.")
        cls.trace = h5py.File(cls.folder / "t.h5", "r")
        cls.addClassCleanup(cls.trace.close)
        cls.prompt = cls.trace["prompts/0"]

    @classmethod
    @functools.cache
    def rank(cls, name, *arguments):
        return json_rows(cls.made("export", "t.h5", "--ranking", name, "--format", "json", *NEEDED.get(name, ()), *arguments).stdout)

    def kept_share(self, j):
        """Returns the share of heads over all layers that keep each token (tokens)."""
        run = self.prompt[f"runs/{j}"]
        counts = numpy.bincount(run["kept_indices"][:], minlength=int(self.prompt.attrs["n_tokens"]))
        return counts / (len(run["kept_offsets"]) - 1)

    def test_all_are_listed_and_made(self):
        rows = {row["ranking"]: row for row in csv_rows(self.made("rankings", "--format", "csv").stdout)}
        self.assertEqual(sorted(rows), RANKING_FILES)
        self.assertEqual(rows["answers"]["options"], "--run, --threshold")
        documented = (SOURCE / "docs" / "rankings.md").read_text(encoding="utf-8")
        for text in self.made("rankings").stdout, self.made("export", "--help").stdout:
            for name in RANKING_FILES:
                self.assertIn(f"\n{name}\n", f"\n{text}")
                self.assertIn(f"`{name}`", documented)
        for name in RANKING_FILES:
            with self.subTest(name):
                self.assertGreater(len(self.rank(name)), 1)
                self.assertNotIn("\x1b", self.made("export", "t.h5", "--ranking", name, *NEEDED.get(name, ())).stdout)

    def test_places_of_a_mark_are_what_the_prompt_says(self):
        rows = self.rank("marks")
        text = ["".join(t.decode() for t in self.prompt["token_text"][row["first_token"]:row["last_token"] + 1]) for row in rows]
        whole = "".join(t.decode() for t in self.prompt["token_text"][:])
        self.assertEqual(len(rows), whole.lower().count("it"))
        for said, row in zip(text, rows):
            self.assertIn("it", said.lower())
            for j in 1, 2, 3, 4:
                share = self.kept_share(j)[row["first_token"]:row["last_token"] + 1].mean()
                self.assertAlmostEqual(row[f"kept_run_{j}"], share, places=3)
        kept = [sum(row[f"kept_run_{j}"] for j in (1, 2, 3, 4)) for row in rows]
        self.assertEqual(kept, sorted(kept))
        self.refuses(2, ["--mark is missing"], "export", "t.h5", "--ranking", "marks")
        self.refuses(1, ["does not contain", "zebra"], "export", "t.h5", "--ranking", "marks", "--mark", "zebra")
        self.refuses(2, ["does not use --mark"], "export", "t.h5", "--ranking", "heads", "--mark", "it")

    def test_all_forms_agree(self):
        """Through the command line. tests/cli/ranking_formats_test.cpp compares the formats of every ranking."""
        for name in ("marks", "sentences", "tokens"):
            with self.subTest(name):
                made = {}
                for extension in "csv", "json", "jsonl", "md", "tex":
                    output = self.path(f"{name}.{extension}")
                    self.assertEqual(self.made("export", "t.h5", "--ranking", name, *NEEDED.get(name, ()), "-o", output).stdout, "")
                    made[extension] = output.read_text(encoding="utf-8")
                rows = json.loads(made["json"])
                self.assertEqual(rows, jsonl_rows(made["jsonl"]))
                self.assertEqual(rows, self.rank(name))
                self.assertEqual([list(row) for row in rows], [list(row) for row in csv_rows(made["csv"])])
                self.assertEqual(made["csv"], self.made("export", "t.h5", "--ranking", name, *NEEDED.get(name, ()), "--format", "csv").stdout)

    def test_sentences(self):
        rows = self.rank("sentences", "--run", 3, "--run", 1)
        a, b = self.kept_share(3), self.kept_share(1)
        text = [piece.decode() for piece in self.prompt["token_text"][:]]
        covered = []
        for row in rows:
            span = slice(row["first_token"], row["last_token"] + 1)
            covered += range(row["first_token"], row["last_token"] + 1)
            self.assertAlmostEqual(row["kept_a"], a[span].mean())
            self.assertAlmostEqual(row["kept_b"], b[span].mean())
            self.assertEqual("".join(text[span]).split(), row["text"].split())
        first, last = min(covered), max(covered)
        self.assertEqual(sorted(covered), list(range(first, last + 1)))
        # The chat template's text is not ranked.
        self.assertEqual("".join(text[:first]), "<|im_start|>user\n")
        self.assertEqual("".join(text[last + 1:]), "<|im_end|>\n<|im_start|>assistant\n")
        lost = [row["kl_attention_lost"] for row in rows]
        self.assertEqual(lost, sorted(lost, reverse=True))
        said = [row["text"] for row in rows]
        self.assertTrue(any(words.endswith("and 3.5 foxes flee.") for words in said), said)

    def test_which_runs_a_and_b_are_is_said(self):
        label = {j: self.prompt[f"runs/{j}"].attrs["label"] for j in (1, 2, 3)}
        for form in ("--format", "text"), ("--format", "csv"), ("-o", "pair.csv"):
            with self.subTest(form):
                said = self.made("export", "t.h5", "--ranking", "sentences", "--run", 3, "--run", label[1], "--force", *form).stderr
                self.assertEqual(said, f"kvscope: A is run 3, {label[3]}; B is run 1, {label[1]}\n")
        done = self.made("export", "t.h5", "--ranking", "sentences", "--top", 1)
        said = done.stderr
        self.assertIn("Kept, A − B  Lost, A − B", done.stdout)
        self.assertEqual(said, f"kvscope: A is run 1, {label[1]}; B is run 2, {label[2]}\n")
        self.assertEqual(self.made("export", "t.h5", "--ranking", "heads").stderr, "")

    def test_steps_and_answers(self):
        rows = self.rank("steps", "--run", "snapkv:window=8 @ 24")
        kl = self.prompt["runs/1/step_kl"][:].astype(float)
        self.assertEqual([row["step"] for row in rows], list(numpy.argsort(-kl, kind="stable")))
        highest = float(kl.max())
        rows = self.rank("answers", "--threshold", highest * 0.99)
        by_run = {row["run"]: row for row in rows}
        self.assertEqual(by_run[1]["first_step_above"], int(kl.argmax()))
        self.assertAlmostEqual(by_run[1]["kl_mean"], kl.mean())
        full = list(self.prompt["runs/0/output_ids"][:])
        for run, row in by_run.items():
            own = list(self.prompt[f"runs/{run}/output_ids"][:])
            parts = next((i for i in range(max(len(own), len(full))) if own[i:i + 1] != full[i:i + 1]), None)
            self.assertEqual(row["first_difference"], parts)
            self.assertEqual(row["differs"], "never" if parts is None else "yes")

    def test_white_space_of_tokens_is_shown_to_people(self):
        token = self.rank("tokens", "--top", 1)[0]["token"]
        text = self.prompt["token_text"][token].decode()
        self.assertEqual(self.rank("tokens", "--top", 1)[0]["token_text"], text)
        shown = text.replace(" ", "·").replace("\n", "↵")
        self.assertIn(shown, self.made("export", "t.h5", "--ranking", "tokens", "--top", 1).stdout)

    def test_the_first_rows(self):
        self.assertEqual(self.rank("tokens", "-o", "-", "--top", 3), self.rank("tokens")[:3])
        self.assertEqual(len(self.rank("heads", "--top", 1000)), len(self.rank("heads")))

    def test_a_ranking_is_a_figure_without_a_drawing(self):
        self.assertEqual(self.made("export", "t.h5", "--figure", "heads").stdout,
                         self.made("export", "t.h5", "--ranking", "heads").stdout)
        self.made("export", "t.h5", "--figure", "heads,losses", "-o", "each.json")
        for name in "heads", "losses":
            self.assertEqual(json.loads(self.path(f"each-{name}.json").read_text()), self.rank(name))
        self.refuses(2, ["figures and rankings cannot be exported together"], "export", "t.h5", "--figure", "heads,jsd", "-o", "each.csv")

    def test_wrong_usage(self):
        def refuse(words, *arguments):
            self.refuses(2, words, "export", *arguments)
        refuse(["no ranking 'best'", "sentences"], "t.h5", "--ranking", "best")
        refuse(["--figure", "--ranking"], "t.h5", "-o", "x.csv")
        refuse(["figures and rankings cannot be exported together"], "t.h5", "--ranking", "heads", "--figure", "jsd", "-o", "x.csv")
        refuse(["-o FILE is missing"], "t.h5", "--figure", "jsd")
        refuse(["table", ".pdf", "csv"], "t.h5", "--ranking", "heads", "-o", "x.pdf")
        refuse(["--format", "x.csv"], "t.h5", "--ranking", "heads", "--format", "json", "-o", "x.csv")
        refuse(["does not use --run", "--layer"], "t.h5", "--ranking", "heads", "--run", 1)
        refuse(["does not use --threshold"], "t.h5", "--ranking", "steps", "--threshold", 1)
        refuse(["0 to 100 nats"], "t.h5", "--ranking", "answers", "--threshold", -1)
        refuse(["--source", "figures"], "t.h5", "--ranking", "heads", "--source", "scores")
        refuse(["--top", "rankings"], "t.h5", "--figure", "jsd", "--top", 3, "-o", "x.csv")
        refuse(["one trace", "2"], "t.h5", "t.h5", "--ranking", "heads")
        refuse(["two runs", "1 were"], "t.h5", "--ranking", "sentences", "--run", 1)
        refuse(["no layer 9"], "t.h5", "--ranking", "heads", "--layer", 9)
        refuse(["no prompt 4"], "t.h5", "--ranking", "heads", "--prompt", 4)
        self.assertEqual(list(self.folder.glob("x*")), [])


if __name__ == "__main__":
    unittest.main()
