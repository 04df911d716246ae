#!/usr/bin/env python3
"""`kvscope export`: every figure in every format, with the numbers of the trace."""

import html.parser
import re
import shutil
import struct
import subprocess
import unittest
import urllib.parse
import xml.etree.ElementTree
import zlib

import h5py
import numpy

from program import FIGURE_FILES, NEEDS_ENGINE, ProgramTest, csv_rows, json_rows, jsonl_rows, markdown_rows


def png_pixels(data):
    """Returns (width, height) of a PNG after checking its checksums and unpacking its pixels."""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise AssertionError("no PNG")
    at, size, packed, names = 8, None, b"", []
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        content = data[at + 8:at + 8 + length]
        if zlib.crc32(name + content) != struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0]:
            raise AssertionError("a damaged chunk")
        if name == b"IHDR":
            size = struct.unpack(">II", content[:8])
        if name == b"IDAT":
            packed += content
        names.append(name)
        at += 12 + length
    if names[-1] != b"IEND" or len(zlib.decompress(packed)) < size[0] * size[1]:
        raise AssertionError("pixels are missing")
    return size


class PageReader(html.parser.HTMLParser):
    """Collects the images, the rows of tables and all references of a page."""

    def __init__(self):
        super().__init__()
        self.images, self.rows, self.other_files, self.open_tags = [], [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("img", "meta"):
            self.open_tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href") and value.startswith("data:"):
                self.images.append(value)
            elif name in ("src", "href"):
                self.other_files.append(value)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        opened = self.open_tags.pop()
        if opened != tag:
            raise AssertionError(f"<{opened}> is closed by </{tag}>")

    def handle_data(self, data):
        if self.open_tags and self.open_tags[-1] in ("td", "th"):
            self.rows[-1].append(data)


@NEEDS_ENGINE
class Export(ProgramTest):
    @classmethod
    def prepare(cls):
        cls.make_trace("t.h5", "--policy", "snapkv:window=8", "--policy", "aperturekv", "--policy",
                       "ada-snapkv:window=8,alpha=0", "--budget", "24,64", "--analyze")
        cls.trace = h5py.File(cls.folder / "t.h5", "r")
        cls.addClassCleanup(cls.trace.close)
        cls.prompt = cls.trace["prompts/0"]
        cls.n = int(cls.prompt.attrs["n_tokens"])
        cls.all = cls.made("export", "t.h5", "--figure", "all", "-o", "all.csv")
        cls.figures = [figure for figure in FIGURE_FILES if (cls.folder / f"all-{figure}.csv").exists()]

    def export(self, figure, extension, *arguments):
        """Exports a figure and returns the file's bytes."""
        output = self.path(f"{figure}.{extension}")
        output.unlink(missing_ok=True)
        done = self.made("export", "t.h5", "--figure", figure, *arguments, "-o", output)
        self.assertEqual(done.stdout, "")
        return output.read_bytes()

    def heads_keeping(self, j):
        """Returns how many KV heads keep each token (layers, tokens)."""
        run = self.prompt[f"runs/{j}"]
        offsets, indices = run["kept_offsets"][:], run["kept_indices"][:]
        heads = int(self.trace["model"].attrs["n_kv_heads"])
        counts = numpy.zeros((int(self.trace["model"].attrs["n_layers"]), self.n), int)
        for row, (first, last) in enumerate(zip(offsets[:-1], offsets[1:])):
            counts[row // heads, indices[first:last]] += 1
        return counts

    def each(self, extension, *arguments):
        """Exports all figures in one program and returns pairs of a figure and its file's bytes."""
        self.made("export", "t.h5", "--figure", "all", *arguments, "--force", "-o", self.path(f"each.{extension}"))
        return [(figure, self.path(f"each-{figure}.{extension}").read_bytes()) for figure in self.figures]

    def test_pdf(self):
        for figure, pdf in self.each("pdf"):
            with self.subTest(figure):
                self.assertTrue(pdf.startswith(b"%PDF-1."))
                self.assertTrue(pdf.rstrip().endswith(b"%%EOF"))
                self.assertNotIn(b"/Type3", pdf)
                self.assertEqual(len(re.findall(rb"/Type\s*/Page\b", pdf)) or 1, 1)

    def test_all_figures(self):
        for figure in FIGURE_FILES:
            if figure in self.figures:
                numbers = (self.folder / f"all-{figure}.csv").read_bytes()
                self.assertGreater(len(numbers), 0)
                self.assertEqual(numbers, self.export(figure, "csv"))
            else:
                self.assertIn(f"omitted: {figure}: t.h5: ", self.all.stderr)
        self.assertGreaterEqual(set(self.figures), {"retention", "prompt", "difference", "spectrum"})
        self.assertNotIn("task-scores", self.figures)
        self.refuses(1, ["all-", "--force"], "export", "t.h5", "--figure", "all", "-o", "all.csv")

    def test_renamed_runs(self):
        label = "snapkv:window=8 @ 24"
        rows = csv_rows(self.export("step-kl", "csv", "--rename", f"{label}=SnapKV, B = 24").decode())
        labels = {row["label"] for row in rows}
        self.assertIn("SnapKV, B = 24", labels)
        self.assertNotIn(label, labels)
        svg = self.export("step-kl", "svg", "--rename", f"{label}=SnapKV, B = 24", "--run", "SnapKV, B = 24")
        self.assertIn(f"{label} (called SnapKV, B = 24): snapkv", svg.decode())  # in the recipe
        for figure in "coverage", "retention":
            both = self.export(figure, "svg", "--rename", f"{label}=Model: x", "--run", "Model: x", "--run", "aperturekv @ 24", "--difference")
            keys = [line.split(": ")[0] for line in both.decode().split("<desc>")[1].split("</desc>")[0].splitlines()]
            self.assertIn("B", keys)
            self.assertEqual(keys.count("Model"), 1, keys)
        self.refuses(2, ["snapkv:window=8 @ 64"], "export", "t.h5", "--figure", "step-kl", "--rename", "h2o @ 24=H2O", "-o",
                     "no.csv")
        self.refuses(2, ["the same trace"], "export", "t.h5", "./t.h5", "--figure", "step-kl", "-o", "no.csv")
        ranked = self.made("export", "t.h5", "--ranking", "losses", "--rename", f"{label}=SnapKV, B = 24", "--format", "csv")
        self.assertIn("SnapKV, B = 24", ranked.stdout)

    def test_several_figures(self):
        done = self.made("export", "t.h5", "--figure", "jsd,coverage", "--figure", "task-scores", "-o", "some.svg")
        self.assertIn("omitted: task-scores", done.stderr)
        self.assertEqual(sorted(path.name for path in self.folder.glob("some*")), ["some-coverage.svg", "some-jsd.svg"])
        self.refuses(1, ["the trace has no scores"], "export", "t.h5", "--figure", "task-scores", "-o", "no.svg")
        self.refuses(2, ["task-scores does not use --layer"], "export", "t.h5", "--figure", "jsd,task-scores", "--layer",
                     1, "-o", "no.svg")

    def test_all_figures_with_options_of_some(self):
        self.made("export", "t.h5", "--figure", "all", "--layer", 1, "--source", "kv-heads", "-o", "layer.csv")
        rows = csv_rows(self.path("layer-jsd.csv").read_text())
        self.assertEqual({row["layer"] for row in rows}, {"1"})
        self.assertIn("averaged per KV head", rows[0]["source"])
        done = self.made("export", "t.h5", "--figure", "all", "--run", 1, "-o", "run.csv")
        self.assertIn("omitted: difference: a difference needs two runs", done.stderr)
        self.assertTrue(self.path("run-retention.csv").exists())
        self.refuses(2, ["7", "0 to 1"], "export", "t.h5", "--figure", "all", "--layer", 7, "-o", "no.csv")
        self.refuses(2, ["no figure has a source 'foo'"], "export", "t.h5", "--figure", "all", "--source", "foo", "-o",
                     "no.csv")

    def test_options_that_a_figure_does_not_heed(self):
        for figure, option, value, words in (
                ("retention", "--head", 1, ["does not use --head", "--run, --layer"]),
                ("coverage", "--source", "foo", ["does not use --source", "--run, --layer"]),
                ("jsd", "--source", "foo", ["no source 'foo'", "kv-heads"]),
                ("jsd", "--run", 1, ["--run only with --source scores"]),
                ("step-kl", "--column", "a,b", ["does not use --column", "--run, --source"]),
                ("coverage", "--layer", 99, ["no layer 99", "0 to 1"]),
                ("query-similarity", "--head", 4, ["no query head 4", "0 to 3"])):
            with self.subTest(figure=figure, option=option):
                for extension in "pdf", "csv":
                    self.refuses(2, words, "export", "t.h5", "--figure", figure, option, value, "-o", f"no.{extension}")
        for option, value in (("--width", 84), ("--height", 60), ("--dpi", 100)):
            self.refuses(2, [f"{option} applies to images only", ".csv"], "export", "t.h5", "--figure", "jsd", option, value, "-o",
                         "no.csv")
        self.assertEqual(list(self.folder.glob("no*")), [])

    def test_what_a_figure_chose_by_itself_is_said(self):
        for figure, words in (("prompt", "only snapkv:window=8 @ 24, the first of 6 runs"),
                              ("difference", "snapkv:window=8 @ 24 − snapkv:window=8 @ 64, the first two of 6 runs")):
            done = self.made("export", "t.h5", "--figure", figure, "-o", f"said-{figure}.csv")
            self.assertIn(f"{figure} shows {words}; choose with --run", done.stderr)
        done = self.made("export", "t.h5", "--figure", "prompt", "--run", 1, "-o", "quiet.csv")
        self.assertEqual(done.stderr, "")

    def test_runs_that_a_figure_leaves_out_are_named(self):
        for runs, words in ((("snapkv", "ada-snapkv"), "snapkv:window=8 @ 24, snapkv:window=8 @ 64: the selection"),
                            (("ada-snapkv",), "")):
            named = [each for run in runs for each in ("--run", run)]
            done = self.made("export", "t.h5", "--figure", "curves", "--over", "alpha", *named, "-o",
                             f"alpha-{len(runs)}.csv")
            self.assertEqual(done.stderr.partition(" cannot")[0], words and f"kvscope: curves omits {words}")

    def test_a_long_prompt_has_pages(self):
        done = self.made("export", "t.h5", "--figure", "prompt", "--run", 1, "--height", 26, "--width", 60, "-o", "long.png")
        pages = sorted(self.folder.glob("long*.png"))
        self.assertGreater(len(pages), 1)
        self.assertEqual([path.name for path in pages], [f"long-{i + 1}.png" for i in range(len(pages))])
        self.assertIn(f"prompt has {len(pages)} pages: long-1.png", done.stderr)
        self.assertEqual({png_pixels(path.read_bytes()) for path in pages}, {png_pixels(pages[0].read_bytes())})
        pdf = self.export("prompt", "pdf", "--run", 1, "--height", 26, "--width", 60)
        self.path("long.pdf").write_bytes(pdf)
        if shutil.which("pdfinfo"):
            info = subprocess.run(["pdfinfo", self.path("long.pdf")], capture_output=True, text=True, check=True).stdout
            self.assertRegex(info, rf"Pages: +{len(pages)}\n")

    @unittest.skipUnless(shutil.which("pdftotext"), "pdftotext is missing")
    def test_step_kl_labels_every_run(self):
        self.make_trace("many.h5", *[word for window in range(2, 14) for word in ("--policy", f"snapkv:window={window}")],
                        "--budget", "24,64", n=4)
        self.made("export", "many.h5", "--figure", "step-kl", "-o", "many.pdf")
        text = subprocess.run(["pdftotext", "-layout", self.path("many.pdf"), "-"], capture_output=True, text=True,
                              check=True).stdout
        for window in range(2, 14):
            for budget in 24, 64:  # next to its row and in the legend
                self.assertGreaterEqual(text.count(f"snapkv:window={window} @ {budget}"), 2)

    def test_no_carriage_returns(self):
        self.assertNotIn(b"\r", self.export("coverage", "csv"))
        self.assertNotIn("\r", self.made("inspect", "t.h5", "--format", "csv").stdout)

    def test_the_list_and_the_help_name_every_figures_options_and_sources(self):
        listed = self.made("figures").stdout
        for text in listed, self.made("export", "--help").stdout:
            for figure in FIGURE_FILES:
                self.assertIn(f"\n{figure}\n", f"\n{text}")
            for word in "attention-by-similarity", "mean-by-layer", "--column", "classes", "depths":
                self.assertIn(word, text)
        rows = {row["figure"]: row for row in csv_rows(self.made("figures", "--format", "csv").stdout)}
        self.assertEqual(rows["difference"]["sources"], "heads, classes")
        self.assertEqual(rows["retention"]["options"], "--run, --layer")

    def test_svg(self):
        for figure, svg in self.each("svg"):
            with self.subTest(figure):
                root = xml.etree.ElementTree.fromstring(svg)
                self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
                self.assertGreater(len(list(root.iter())), 20)

    def test_png(self):
        for (figure, png), (_, larger_png) in zip(self.each("png"), self.each("png", "--dpi", 600)):
            with self.subTest(figure):
                width, height = png_pixels(png)
                larger = png_pixels(larger_png)
                self.assertAlmostEqual(larger[0] / width, 2, delta=0.02)
                self.assertAlmostEqual(larger[1] / height, 2, delta=0.02)

    def test_width(self):
        width, _ = png_pixels(self.export("coverage", "png", "--width", 101.6, "--dpi", 100))
        self.assertAlmostEqual(width, 400, delta=1)

    def test_the_same_trace_gives_the_same_bytes(self):
        for extension in ("pdf", "svg", "png", "csv"):
            with self.subTest(extension):
                self.assertEqual(self.export("retention", extension), self.export("retention", extension))

    def test_difference_numbers(self):
        rows = csv_rows(self.export("difference", "csv", "--run", 4, "--run", 1).decode())
        a, b = self.heads_keeping(4), self.heads_keeping(1)
        found = numpy.zeros_like(a)
        for row in rows:
            found[int(row["layer"]), int(row["token"])] = float(row["difference"])
        self.assertEqual(found.tolist(), (a - b).tolist())

    def test_several_traces_in_one_figure(self):
        shutil.copy(self.path("t.h5"), self.path("u.h5"))
        both = csv_rows(self.export("coverage", "csv", "u.h5").decode())
        alone = csv_rows(self.export("coverage", "csv").decode())
        self.assertEqual([row.pop("trace") for row in both], ["t"] * len(alone) + ["u"] * len(alone))
        self.assertEqual(both, alone + alone)
        self.assertTrue(self.export("coverage", "pdf", "u.h5").startswith(b"%PDF"))

    def test_a_trace_that_a_figure_leaves_out_is_named(self):
        self.make_trace("plain.h5", "--policy", "streaming-llm", "--budget", "24", "--no-record")
        done = self.made("export", "t.h5", "plain.h5", "--figure", "jsd", "-o", "left.csv")
        self.assertRegex(done.stderr, r"^kvscope: jsd omits plain: .+\n$")
        self.assertEqual({row["trace"] for row in csv_rows(self.path("left.csv").read_text())}, {"t"})
        done = self.made("export", "t.h5", "plain.h5", "--figure", "coverage", "-o", "both.csv")
        self.assertEqual(done.stderr, "")

    def test_no_record_omits_the_attention_of_the_answer(self):
        """The oracle computes it, too."""
        for option in "--no-record", "--no-compare":
            self.make_trace(f"oracle{option}.h5", "--policy", "oracle", "--budget", "24", option)
            with h5py.File(self.path(f"oracle{option}.h5")) as trace:
                self.assertNotIn("answer_attention", trace["prompts/0/runs/0"])

    def test_difference_of_two_runs_and_of_two_traces(self):
        def differences(*arguments):
            rows = csv_rows(self.export("retention", "csv", *arguments, "--difference").decode())
            found = numpy.zeros_like(self.heads_keeping(1))
            for row in rows:
                self.assertEqual(float(row["difference"]), float(row["a"]) - float(row["b"]))
                found[int(row["layer"]), int(row["token"])] = float(row["difference"])
            return found, rows[0]["panel"]

        found, panel = differences("--run", "aperturekv @ 24", "--run", 1)
        runs = [self.prompt[f"runs/{j}"].attrs["label"] for j in range(len(self.prompt["runs"]))]
        j = runs.index("aperturekv @ 24")
        self.assertEqual(found.tolist(), (self.heads_keeping(j) - self.heads_keeping(1)).tolist())
        self.assertEqual(panel, f"aperturekv @ 24 − {runs[1]}")
        shutil.copy(self.path("t.h5"), self.path("u.h5"))
        found, _ = differences("u.h5", "--run", 1)
        self.assertFalse(found.any())
        self.refuses(2, ["two traces", "two --run"], "export", "t.h5", "--figure", "retention", "--difference", "-o", "no.pdf")
        by_name, _ = differences("--run", "snapkv")
        by_label, _ = differences("--run", 1, "--run", 2)
        self.assertEqual(by_name.tolist(), by_label.tolist())
        self.refuses(2, ["needs two runs; --run aperturekv @ 24 names 1"], "export", "t.h5", "--figure", "retention",
                     "--difference", "--run", "aperturekv @ 24", "-o", "no.pdf")
        self.assertEqual(self.export("difference", "csv", "--run", 1, "--run", 2, "--difference"),
                         self.export("difference", "csv", "--run", 1, "--run", 2))
        self.refuses(2, ["snapkv names 2 runs"], "export", "t.h5", "--figure", "retention", "--difference", "--run",
                     "snapkv", "--run", 1, "-o", "no.pdf")

    def test_differences_pair_runs_and_say_what_has_no_like(self):
        self.make_trace("other.h5", "--policy", "aperturekv", "--policy", "snapkv:window=8", "--policy", "h2o", "--budget",
                        "64,24")
        left_out = ["kvscope: retention omits runs without a counterpart in the other trace: of A (t): ada-snapkv",
                    "of B (other): h2o @ 64, h2o @ 24"]
        done = self.made("export", "t.h5", "other.h5", "--figure", "retention", "--difference", "-o", "paired.csv")
        for words in left_out:
            self.assertIn(words, done.stderr)
        rows = csv_rows(self.path("paired.csv").read_text())
        self.assertEqual({row["panel"].split(":")[-1] for row in rows}, {" t − other"})
        with h5py.File(self.path("other.h5"), "r") as other:
            label = lambda trace, run: trace["prompts/0"][f"runs/{run}"].attrs["label"]
            for run_a, run_b in {(row["run_a"], row["run_b"]) for row in rows}:
                self.assertEqual(label(self.trace, run_a), label(other, run_b))
        self.assertEqual({float(row["difference"]) for row in rows}, {0})
        self.assertEqual({row["unit"] for row in rows}, {"KV heads that keep the token"})

    def test_a_difference_of_unlike_prompts_says_so(self):
        self.make_trace("longer.h5", "--policy", "aperturekv", "--budget", "24", prompt="a fox and a hen\n" * 12)
        done = self.made("export", "t.h5", "longer.h5", "--figure", "cost", "--difference", "-o", "unlike.csv")
        self.assertRegex(done.stderr, r"cost subtracts different prompts: \d+ tokens in A, \d+ in B, different from token \d+ on")
        shutil.copy(self.path("t.h5"), self.path("same.h5"))
        done = self.made("export", "t.h5", "same.h5", "--figure", "cost", "--difference", "-o", "like.csv")
        self.assertNotIn("different prompts", done.stderr)

    def test_csv_that_is_safe_for_spreadsheets(self):
        self.make_trace("formulas.h5", "--policy", "h2o", "--budget", "24", prompt="=1+1 +2 -3 @x and some more words\n" * 8)
        plain = csv_rows(self.made("export", "formulas.h5", "--figure", "prompt", "--run", 1, "-o", "plain.csv") and
                         self.path("plain.csv").read_text())
        self.made("export", "formulas.h5", "--figure", "prompt", "--run", 1, "--csv-safe", "-o", "safe.csv")
        safe = csv_rows(self.path("safe.csv").read_text())
        begins = tuple("=+-@\t\r\n")
        self.assertTrue(any(row["text"].startswith(begins) for row in plain))
        for one, other in zip(plain, safe):
            self.assertEqual(other, one | {"text": ("'" if one["text"].startswith(begins) else "") + one["text"]})
        text = self.made("inspect", "formulas.h5", "--format", "csv", "--csv-safe").stdout
        self.assertEqual(csv_rows(text)[0]["label"], "full")
        self.made("export", "formulas.h5", "--ranking", "heads", "--csv-safe", "--format", "csv")
        self.refuses(2, ["--csv-safe applies to CSV only", ".pdf"], "export", "t.h5", "--figure", "jsd", "--csv-safe", "-o", "no.pdf")
        self.refuses(2, ["--csv-safe applies to CSV only", "json"], "inspect", "t.h5", "--csv-safe", "--format", "jsonl")

    def test_a_trace_with_several_prompts_says_which_is_shown(self):
        self.path("a.txt").write_text("The first of two prompts.")
        self.path("b.txt").write_text("The second of two prompts, which is longer.")
        self.make_trace("two.h5", "-f", "a.txt", "-f", "b.txt", "--policy", "h2o", "--budget", "4", prompt=None)
        said = "two.h5: shows prompt 0 ('a'), the first of 2; choose with --prompt"
        done = self.made("export", "two.h5", "--figure", "retention", "-o", "first.svg")
        self.assertIn(said, done.stderr)
        self.assertIn("prompt 0 (a), one of 2", self.path("first.svg").read_text())
        self.assertEqual(self.made("export", "two.h5", "--figure", "retention", "--prompt", 0, "-o", "zero.csv").stderr, "")
        self.assertIn(said, self.made("export", "two.h5", "--ranking", "heads").stderr)
        done = self.made("export", "two.h5", "--figure", "all", "-o", "all-first.csv")
        self.assertEqual(done.stderr.count(said), 1)

    def test_a_prompt_is_chosen_by_name(self):
        self.path("a.txt").write_text("The first of two prompts.")
        self.path("b.txt").write_text("The second of two prompts, which is longer.")
        for name, files in ("ab.h5", "ab"), ("ba.h5", "ba"):
            self.make_trace(name, *(f"--prompt-file={file}.txt" for file in files), "--policy", "h2o", "--budget", "4", prompt=None)
        figure = ("--figure", "retention", "--force", "-o")
        self.made("export", "ab.h5", *figure, "number.csv", "--prompt", 1)
        for text in "b", "b.txt":
            with self.subTest(text):
                self.made("export", "ab.h5", *figure, "name.csv", "--prompt", text)
                self.assertEqual(self.path("name.csv").read_bytes(), self.path("number.csv").read_bytes())
        self.made("export", "ab.h5", "ba.h5", *figure, "both.svg", "--prompt", "b")  # the numbers differ
        self.assertIn("ab: prompt 1 (b), one of 2; ba: prompt 0 (b), one of 2", self.path("both.svg").read_text())
        self.refuses(2, ["ab.h5: there is no prompt 'c'.", "There are 0 (a), 1 (b)"], "export", "ab.h5", *figure, "no.csv", "--prompt", "c")
        self.refuses(2, ["there is no prompt 2"], "export", "ab.h5", *figure, "no.csv", "--prompt", 2)

    def test_heads_and_columns(self):
        rows = csv_rows(self.export("query-similarity", "csv", "--head", "1,3", "--layer", 1).decode())
        similarity = self.prompt["full/query_similarity"][1]
        self.assertEqual({row["head"] for row in rows}, {"1", "3"})
        last = float(rows[-2]["cosine"])
        self.assertAlmostEqual(last, float(similarity[3, -1, -2]), places=6)
        rows = csv_rows(self.export("cost", "csv", "--column", "cache_bytes,agreement").decode())
        self.assertEqual([int(float(row["cache_bytes"])) for row in rows],
                         [int(self.prompt[f"runs/{j}/cache_bytes"][:].sum()) for j in range(1, 7)])
        self.refuses(2, ["list of heads"], "export", "t.h5", "--figure", "spectrum", "--head", "x", "-o", "no.pdf")

    def test_retention_numbers(self):
        rows = csv_rows(self.export("retention", "csv").decode())
        for j in range(1, len(self.prompt["runs"])):
            counts = self.heads_keeping(j)
            found = numpy.zeros_like(counts)
            for row in rows:
                if int(row["run"]) == j:
                    found[int(row["layer"]), int(row["token"])] = int(row["heads"])
            self.assertEqual(found.tolist(), counts.tolist())
        self.assertEqual({row["label"] for row in rows},
                         {run.attrs["label"] for run in self.prompt["runs"].values()} - {"full"})

    def test_coverage_numbers(self):
        rows = csv_rows(self.export("coverage", "csv").decode())
        for j in range(1, len(self.prompt["runs"])):
            counts = self.heads_keeping(j)
            expected = {"": (counts.sum(axis=0) > 0).mean()}
            expected |= {str(layer): (row > 0).mean() for layer, row in enumerate(counts)}
            found = {row["layer"]: float(row["share"]) for row in rows if int(row["run"]) == j}
            self.assertEqual(set(found), set(expected))
            for layer, share in expected.items():
                self.assertAlmostEqual(found[layer], share, places=9)

    def test_jsd_numbers(self):
        rows = csv_rows(self.export("jsd", "csv").decode())
        expected = self.prompt["full/head_jsd"][:]
        found = numpy.full(expected.shape, numpy.nan)
        for row in rows:
            found[int(row["layer"]), int(row["head_a"]), int(row["head_b"])] = float(row["jsd_nats"])
        numpy.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)

    def test_one_run_and_one_layer(self):
        rows = csv_rows(self.export("retention", "csv", "--run", "snapkv", "--layer", 1).decode())
        self.assertEqual({row["layer"] for row in rows}, {"1"})
        self.assertTrue(all(row["label"].startswith("snapkv") for row in rows))

    def test_all_forms_of_numbers_agree(self):
        csv = csv_rows(self.export("coverage", "csv").decode())
        json_form = json_rows(self.export("coverage", "json").decode())
        self.assertEqual(json_form, jsonl_rows(self.export("coverage", "jsonl").decode()))
        self.assertEqual([row["label"] for row in csv], [row["label"] for row in json_form])
        for ours, theirs in zip(csv, json_form):
            self.assertEqual(float(ours["share"]), theirs["share"])
        self.assertEqual(len(markdown_rows(self.export("coverage", "md").decode())), len(csv))
        tex = self.export("coverage", "tex").decode()
        self.assertEqual(tex.count(r" \\"), len(csv) + 1)

    def test_a_page_needs_no_other_file(self):
        data = self.export("coverage", "html")
        page = PageReader()
        page.feed(data.decode())
        self.assertEqual(page.open_tags, [])
        self.assertEqual(len(page.images), 1)
        svg = urllib.parse.unquote_to_bytes(page.images[0].removeprefix("data:image/svg+xml,"))
        self.assertEqual(svg, self.export("coverage", "svg"))
        self.assertEqual(page.other_files, [])
        self.assertEqual(len(page.rows) - 1, len(csv_rows(self.export("coverage", "csv").decode())))
        self.assertEqual(data, self.export("coverage", "html"))  # the same bytes again
        self.made("export", "t.h5", "--ranking", "heads", "-o", self.path("heads.html"))
        ranking = PageReader()
        ranking.feed(self.path("heads.html").read_text(encoding="utf-8"))
        self.assertEqual((ranking.images, ranking.open_tags), ([], []))
        self.assertGreater(len(ranking.rows), 1)

    def test_the_recipe_is_in_the_file(self):
        fingerprint = self.trace["model"].attrs["fingerprint"]
        svg = self.export("coverage", "svg").decode()
        self.assertIn(fingerprint[:12], svg)
        self.assertIn("aperturekv", svg)

    def test_what_is_asked_for_wrongly_is_told_before_that_the_file_is_there(self):
        self.path("there.pdf").write_text("mine")
        self.path("there-retention.pdf").write_text("mine")
        self.path("there.csv").write_text("mine")
        for what, output in ((["--figure", "retention"], "there.pdf"), (["--figure", "coverage,retention"], "there.pdf"),
                             (["--figure", "all"], "there.pdf"), (["--ranking", "steps"], "there.csv"),
                             (["--ranking", "sentences", "--run", 1], "there.csv")):
            with self.subTest(what):
                self.refuses(2, ["nosuch"], "export", "t.h5", *what, "--run", "nosuch", "-o", output)
        for name in ("there.pdf", "there-retention.pdf", "there.csv"):
            self.assertEqual(self.path(name).read_text(), "mine")

    def test_an_existing_file_is_kept_without_force(self):
        self.path("mine.pdf").write_text("mine")
        arguments = ["export", "t.h5", "--figure", "coverage", "-o", "mine.pdf"]
        self.refuses(1, ["mine.pdf", "--force"], *arguments)
        self.assertEqual(self.path("mine.pdf").read_text(), "mine")
        self.made(*arguments, "--force")
        self.assertTrue(self.path("mine.pdf").read_bytes().startswith(b"%PDF"))

    def test_unknown_names(self):
        self.refuses(2, ["coverge", "coverage", "retention", "jsd"], "export", "t.h5", "--figure", "coverge", "-o", "x.pdf")
        for output, found in (("x.bmp", ".bmp"), ("x", "no extension")):
            self.refuses(2, [output, found, ".pdf", ".svg", ".csv"], "export", "t.h5", "--figure", "jsd", "-o", output)
        self.refuses(2, ["nobody", "snapkv"], "export", "t.h5", "--figure", "jsd", "--source", "scores", "--run",
                     "nobody", "-o", "x.pdf")
        self.refuses(2, ["nobody", "attention"], "export", "t.h5", "--figure", "jsd", "--source", "nobody", "-o", "x.pdf")
        self.refuses(2, ["7", "0 to 1"], "export", "t.h5", "--figure", "jsd", "--layer", 7, "-o", "x.pdf")
        self.refuses(2, ["5-2"], "export", "t.h5", "--figure", "jsd", "--layer", "5-2", "-o", "x.pdf")
        self.refuses(2, ["3"], "export", "t.h5", "--figure", "jsd", "--prompt", 3, "-o", "x.pdf")
        self.assertEqual(list(self.folder.glob("x*")), [])

    def test_an_output_that_cannot_be_written(self):
        self.refuses(1, ["gone/x.pdf"], "export", "t.h5", "--figure", "jsd", "-o", "gone/x.pdf")


if __name__ == "__main__":
    unittest.main()
