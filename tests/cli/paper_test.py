#!/usr/bin/env python3
"""`kvscope reproduce` makes the figures and tables of a paper. `export --figure K-VEC:F4` draws one of them."""

import csv
import html.parser
import json
import shutil
import signal
import subprocess
import time
import unittest

from program import HF_MODEL, NEEDS_ENGINE, SECONDS_UNTIL_HUNG, TEXT, ProgramTest

CHROMIUM = shutil.which("chromium")

PAPER = {
    "paper": "Small",
    "title": "A paper of four items",
    "traces": {
        "texts": {"command": "run", "texts": 20,
                  "options": {"no-template": "true", "predict": 4, "record": "measures", "policy": ["snapkv:window=8", "random"],
                              "budget": [24, 48]},
                  "fast": {"texts": 3, "budget": [24]}},
        "needles": {"command": "eval", "data": "needles",
                    "options": {"task": "niah", "haystack": "{data}/essays", "policy": "random", "budget": 24}},
    },
    "items": [
        {"id": "F1", "shows": "Coverage", "trace": "texts", "figure": "coverage",
         "options": {"run": ["snapkv:window=8", "random"]}, "rename": {"snapkv:window=8": "SnapKV", "h2o": "H2O"},
         "findings": [{"says": "Random tokens cover more.", "paper": "0.9 against 0.5", "number": "coverage", "of": "random",
                       "than": "snapkv:window=8", "sign": "more", "budget": [24, 48]},
                      {"says": "Random tokens diverge less.", "paper": "1 against 2", "number": "kl", "of": "random",
                       "than": "snapkv:window=8", "sign": "less", "budget": 48},
                      {"says": "Readers like it.", "paper": "90 %", "cannot": "No trace has readers."}]},
        {"id": "T1", "shows": "KL", "trace": "texts", "figure": "results-table", "options": {"cells": "kl"}},
        {"id": "T2", "shows": "Needles in essays", "trace": "needles", "figure": "task-scores",
         "findings": 2 * [{"says": "Random finds none.", "paper": "0 %", "number": "score", "of": "random", "than": "full",
                           "sign": "less", "budget": 24}]},
        {"id": "F2", "shows": "A photograph", "cannot": "A trace has no photographs."},
    ],
}


class Page(html.parser.HTMLParser):
    """Collects the links to other files and servers, the pictures and the texts."""

    def __init__(self, text):
        super().__init__()
        self.sources, self.links, self.texts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "a":
            self.links.append(values["href"])
        self.sources += [values[name] for name in ("src", "srcset", "data") if name in values]

    def handle_data(self, data):
        self.texts.append(data)


@NEEDS_ENGINE
class PaperTest(ProgramTest):
    def path(self, *names):
        """Each test has a folder of its own."""
        return self.folder.joinpath(self._testMethodName, *names)

    def setUp(self):
        super().setUp()
        self.path().mkdir()
        self.prompts = self.path("prompts")
        self.prompts.mkdir()
        for i in range(20):
            words = TEXT.split()
            (self.prompts / f"{i:02}.txt").write_text(f"Prompt {i}. " + " ".join(words[i:] + words[:i]))

    def write_paper(self, **changes):
        self.path("small.yaml").write_text(json.dumps(PAPER | changes, indent=1))

    def arguments(self, *options):
        return ("reproduce", self.path("small.yaml"), "-m", HF_MODEL, "-o", self.path("out"), "--text", self.prompts, *options)

    def reproduce(self, *options, code=0):
        done = self.run_program(*self.arguments(*options))
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def page(self):
        return Page(self.path("out", "index.html").read_text())

    def findings(self):
        with self.path("out", "findings.csv").open() as file:
            return list(csv.DictReader(file))

    def test_items_and_findings(self):
        self.write_paper()
        done = self.reproduce()
        self.assertIn("Small:T2 not made: needs FOLDER/essays: give the folder with --data FOLDER", done.stderr)
        files = {path.name for path in self.path("out", "figures").iterdir()}
        for item in ("F1", "T1"):
            for extension in ("pdf", "svg", "png", "csv", "md", "tex"):
                self.assertIn(f"Small-{item}.{extension}", files)
        self.assertFalse(any("T2" in name or "F2" in name for name in files), files)

        findings = self.findings()
        self.assertEqual([row["item"] for row in findings], ["Small:F1"] * 4 + ["Small:T2"] * 2)
        self.assertEqual(findings[0]["outcome"], "holds", findings[0])
        self.assertEqual(findings[3]["outcome"], "cannot be judged: No trace has readers.")
        for finding in findings[4:]:
            self.assertIn("needs FOLDER/essays", finding["outcome"])
        # The paired difference is that of NumPy.
        table = self.run_program("export", self.path("out", "texts.h5"), "--figure", "results-table", "--cells", "coverage",
                                 "-o", self.path("coverage.json"))
        self.assertEqual(table.returncode, 0, table.stderr)
        means = {(row["policy"], row["budget"]): row["mean"] for row in json.loads(self.path("coverage.json").read_text())}
        for row, budget in zip(findings, ("24", "48")):
            difference = float(row["difference"].split()[0].replace("−", "-"))
            expected = means["random", budget] - means["snapkv:window=8", budget]
            self.assertAlmostEqual(difference, expected, delta=1e-3)
            self.assertIn("20 prompts", row["difference"])

        page = self.page()
        text = " ".join(page.texts)
        self.assertTrue(page.sources)
        self.assertTrue(all(source.startswith("data:image/svg+xml,") for source in page.sources))
        self.assertFalse(any("://" in link for link in page.links), page.links)
        for link in page.links:
            if not link.startswith("#"):
                self.assertTrue(self.path("out", link).is_file(), link)
        self.assertIn("0.9 against 0.5", text)
        self.assertIn("A trace has no photographs.", text)
        self.assertIn("kvscope export", text)
        self.made("export", self.path("out", "texts.h5"), "--figure", f"{self.path('small.yaml')}:F1", "-o", self.path("again.svg"))
        self.assertEqual(self.path("again.svg").read_bytes(), self.path("out", "figures", "Small-F1.svg").read_bytes())
        svg = self.path("out", "figures", "Small-F1.svg").read_text()
        self.assertIn("SnapKV", svg)  # the new label, in the caption of <desc>

    def test_repeated(self):
        self.write_paper()
        self.reproduce("--fast")
        written = {path: path.read_bytes() for path in self.path("out").rglob("*") if path.suffix in (".pdf", ".html", ".png")}
        trace = self.path("out", "texts.h5").stat().st_mtime_ns
        self.reproduce("--fast")
        self.assertEqual(self.path("out", "texts.h5").stat().st_mtime_ns, trace)
        for path, content in written.items():
            self.assertEqual(path.read_bytes(), content, path)
        self.assertIn("3 prompts of at least 20", self.findings()[0]["outcome"])
        self.assertIn("no run random @ 48", self.findings()[1]["outcome"])

    def test_a_folder_belongs_to_one_reproduction(self):
        self.write_paper()
        self.reproduce("--fast")
        page = self.path("out", "index.html").read_bytes()
        self.assertIn("texts was made with other settings", self.reproduce(code=2).stderr)
        self.assertIn("texts was made with other settings", self.reproduce("--fast", "--same-window", 4, code=2).stderr)
        (self.prompts / "00.txt").write_text("Another prompt. " + TEXT)
        self.assertIn("000.txt is another text", self.reproduce("--fast", code=2).stderr)
        self.assertEqual(self.path("out", "index.html").read_bytes(), page)
        other = self.path("other")
        other.mkdir()
        (other / "index.html").write_text("mine")
        done = self.run_program("reproduce", self.path("small.yaml"), "-m", HF_MODEL, "-o", other)
        self.assertEqual(done.returncode, 2)
        self.assertIn("contains other files", done.stderr)
        self.assertEqual((other / "index.html").read_text(), "mine")

    def test_two_processes(self):
        self.write_paper()
        first = self.start(*self.arguments())
        end = time.monotonic() + SECONDS_UNTIL_HUNG
        while not self.path("out", "reproduction").exists():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.002)
        time.sleep(0.05)
        second = self.run_program(*self.arguments())
        self.assertEqual(second.returncode, 1)
        self.assertIn("is used by another process", second.stderr)
        first.communicate(timeout=SECONDS_UNTIL_HUNG)
        self.assertEqual(first.returncode, 0)

    def test_wrong_options(self):
        paper = json.loads(json.dumps(PAPER))
        paper["traces"]["texts"]["options"]["polcy"] = "h2o"
        self.write_paper(traces=paper["traces"])
        self.assertIn("unknown option --polcy. Did you mean --policy?", self.reproduce(code=1).stderr)
        paper["items"][0]["options"]["cels"] = "kl"
        self.write_paper(items=paper["items"])
        self.assertIn("Small:F1: coverage has no option cels", self.reproduce(code=2).stderr)

    def test_commands_of_the_page(self):
        self.write_paper()
        self.assertEqual(self.run_program(*self.arguments()[:5], self.path("o $(touch pwned) ut"), *self.arguments()[6:],
                                          "--fast").returncode, 0)
        text = "".join(Page(self.path("o $(touch pwned) ut", "index.html").read_text()).texts)
        command = next(line for line in text.splitlines() if line.startswith("kvscope run"))
        words = subprocess.run(["sh", "-c", command.replace("kvscope run", "printf '%s\\n'", 1)], capture_output=True, text=True,
                               cwd=self.path(), check=True).stdout.splitlines()
        self.assertIn(str(self.path("o $(touch pwned) ut", "texts", "000.txt")), words)
        self.assertFalse(self.path("pwned").exists())

    def test_interrupted(self):
        self.write_paper()
        process = self.start(*self.arguments())
        end = time.monotonic() + SECONDS_UNTIL_HUNG
        while not list(self.path("out").glob("texts.h5.part/*run*")) and not self.path("out", "texts.h5").exists():
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS_UNTIL_HUNG)
        self.reproduce()
        self.assertEqual(self.findings()[0]["outcome"], "holds")

    def test_passages(self):
        self.write_paper()
        text = self.path("long.txt")
        text.write_text("".join(f"Line {i} — über.\n" for i in range(1500)))
        self.prompts = text
        self.reproduce("--fast", code=1)  # the prompts exceed the context of the small model
        passages = [self.path("out", "texts", f"{i:03}.txt").read_text() for i in range(3)]
        self.assertTrue(text.read_text().startswith("".join(passages)))
        for passage in passages:
            self.assertTrue(passage.endswith("\n"))
            self.assertTrue(3900 < len(passage.encode()) <= 4000)
        text.write_text("Too short.")
        self.assertIn("has 0 prompts of at least 3", self.reproduce("--fast", code=1).stderr)

    def test_bad_paper(self):
        self.write_paper(items=[{"id": "F1", "shows": "x", "trace": "none", "figure": "coverage"}])
        done = self.reproduce(code=2)
        self.assertRegex(done.stderr, r"small\.yaml:\d+: there is no trace 'none'")
        done = self.run_program("reproduce", "K-VECC")
        self.assertEqual(done.returncode, 2)
        self.assertIn("Did you mean K-VEC?", done.stderr)

    @unittest.skipUnless(CHROMIUM, "chromium is not installed")
    def test_page_in_a_browser(self):
        self.write_paper()
        self.reproduce("--fast")
        shown = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND",
             f"--user-data-dir={self.path('browser')}", "--dump-dom", self.path("out", "index.html").as_uri()],
            capture_output=True, text=True, timeout=SECONDS_UNTIL_HUNG)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("Random tokens cover more.", shown.stdout)


@NEEDS_ENGINE
class ItemTest(ProgramTest):
    def trace(self):
        done = self.run_program("run", "-m", HF_MODEL, "-p", "one two three four five six seven eight nine ten " * 6, "--policy",
                                "snapkv:window=8", "--policy", "k-vec:window=8", "--budget", "24", "-n", "4", "-o",
                                self.path("t.h5"))
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.path("t.h5")

    def test_item_of_a_paper(self):
        listed = self.run_program("figures", "--paper", "all", "--format", "json")
        items = {row["item"]: row for row in json.loads(listed.stdout)}
        for item in ("ApertureKV:F1C", "ApertureKV:T5", "K-VEC:F4", "K-VEC:T10a", "DapQ:T9", "EchoKV:F5", "EchoKV:T7",
                     "KVSlimmer:F14", "KVSlimmer:T2"):
            self.assertIn(item, items)
        text = self.run_program("figures").stdout
        for item, row in items.items():
            self.assertIn(item, text)
            self.assertIn(row["possible"], ("yes", "partly", "no"))
            self.assertEqual(row["possible"] == "yes", row["remark"] is None or row["remark"] == "", row)

        trace = self.trace()
        self.made("export", trace, "--figure", "ApertureKV:F6", "-o", self.path("item.csv"))
        self.made("export", trace, "--figure", "query-similarity", "--source", "mean-by-layer", "-o", self.path("own.csv"))
        self.assertEqual(self.path("item.csv").read_text(), self.path("own.csv").read_text())
        self.made("export", trace, "--figure", "ApertureKV:F6", "--layer", "1", "-o", self.path("layer.csv"))
        self.assertLess(len(self.path("layer.csv").read_text()), len(self.path("own.csv").read_text()))
        lacks = self.run_program("export", trace, "--figure", "ApertureKV:T2", "-o", self.path("x.pdf"))
        self.assertNotEqual(lacks.returncode, 0)
        self.assertIn("`kvscope reproduce ApertureKV` makes a trace for this item", lacks.stderr)

    def test_what_is_missing(self):
        trace = self.trace()
        lacks = self.run_program("export", trace, "--figure", "K-VEC:F99", "-o", self.path("x.pdf"))
        self.assertEqual(lacks.returncode, 2)
        self.assertIn("there is no item of K-VEC 'F99'", lacks.stderr)
        several = self.run_program("export", trace, "--figure", "K-VEC:F4,K-VEC:F3", "-o", self.path("x.pdf"))
        self.assertEqual(several.returncode, 2)
        self.assertIn("exported alone", several.stderr)


if __name__ == "__main__":
    unittest.main()
