#!/usr/bin/env python3
"""Models by id in the local hub cache, models in nested folders, and names of models."""

import json
import os
import shutil
import subprocess
import unittest

from program import GGUF_MODEL, HF_MODEL, NEEDS_ENGINE, PROGRAM, SECONDS_UNTIL_HUNG, TEXT, ProgramTest, environment

REVISION = "0123456789abcdef0123456789abcdef01234567"


def cached(cache, organisation, name, source, revision=REVISION):
    """Makes a repository in huggingface_hub's layout, with files as links to blobs."""
    repository = cache / f"models--{organisation}--{name}"
    snapshot = repository / "snapshots" / revision
    snapshot.mkdir(parents=True)
    (repository / "blobs").mkdir(exist_ok=True)
    files = [source] if source.is_file() else [path for path in source.iterdir() if path.is_file()]
    for path in files:
        blob = repository / "blobs" / f"{revision[:4]}{path.name.encode().hex()}"
        shutil.copy(path, blob)
        (snapshot / path.name).symlink_to(os.path.relpath(blob, snapshot))
    (repository / "refs").mkdir(exist_ok=True)
    (repository / "refs" / "main").write_text(revision)
    return snapshot


class Models(ProgramTest):
    def asked(self, *arguments, code=0, **variables):
        inherited = {name: value for name, value in environment(self.cache).items() if not name.startswith(("HF_", "HUGGING"))}
        done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, env={**inherited, **variables}, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=SECONDS_UNTIL_HUNG, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def listed(self, *folders):
        rows = json.loads(self.made("models", *folders, "--format", "json").stdout)
        return rows[1:]


class HubCache(Models):
    @classmethod
    def prepare(cls):
        cls.hub = cls.folder / "hub"
        cached(cls.hub, "org", "tiny-llama", HF_MODEL)
        cached(cls.hub, "org", "tiny-gguf", GGUF_MODEL)
        two = cached(cls.hub, "org", "two", GGUF_MODEL)
        shutil.copy(GGUF_MODEL, two / "other.gguf")

    def test_where_the_cache_is(self):
        for variables in ({"HF_HUB_CACHE": str(self.hub)}, {"HF_HOME": str(self.folder)},
                          {"HF_HUB_CACHE": str(self.hub), "HF_HOME": "/nowhere"}):
            with self.subTest(variables):
                shown = self.asked("inspect", "org/tiny-llama", **variables).stdout
                self.assertIn("2 layers, 4 heads", shown)
                self.assertIn(": tiny-llama (", shown, "the name is the commit of the folder")
        for cache, variables in ((self.folder / "x", {"XDG_CACHE_HOME": str(self.folder / "x")}),
                                 (self.folder / "h" / ".cache", {"HOME": str(self.folder / "h"), "XDG_CACHE_HOME": ""})):
            (cache / "huggingface").mkdir(parents=True)
            (cache / "huggingface" / "hub").symlink_to(self.hub)
            self.asked("inspect", "org/tiny-llama", **variables)

    def test_a_repository_of_gguf_files(self):
        hub = {"HF_HUB_CACHE": str(self.hub)}
        self.assertIn("model.gguf", self.asked("inspect", "org/tiny-gguf", **hub).stdout)
        self.asked("inspect", "org/two/other.gguf", **hub)
        self.assertIn(".gguf: give that file's path", self.asked("inspect", "org/two", code=1, **hub).stderr)
        self.assertIn("without the file third.gguf", self.asked("inspect", "org/two/third.gguf", code=1, **hub).stderr)

    def test_what_is_not_there_is_not_downloaded(self):
        said = self.asked("inspect", "org/absent", code=1, HF_HUB_CACHE=str(self.hub)).stderr
        for part in ("org/absent", str(self.hub / "models--org--absent"), "downloads nothing", "hf download org/absent"):
            self.assertIn(part, said)
        (self.hub / "models--org--empty" / "snapshots").mkdir(parents=True, exist_ok=True)
        self.assertIn("downloads nothing", self.asked("inspect", "org/empty", code=1, HF_HUB_CACHE=str(self.hub)).stderr)

    def test_a_path_comes_before_an_id(self):
        shutil.copytree(HF_MODEL, self.path("org/tiny-gguf"))
        try:
            self.assertIn("tokenizer.json", self.asked("inspect", "org/tiny-gguf", HF_HUB_CACHE=str(self.hub)).stdout)
        finally:
            shutil.rmtree(self.path("org"))

    def test_the_revision_of_main_is_taken(self):
        cached(self.hub, "org", "moved", GGUF_MODEL, "a" * 40)
        cached(self.hub, "org", "moved", HF_MODEL, "b" * 40)
        self.assertIn("b" * 40, self.asked("inspect", "org/moved", HF_HUB_CACHE=str(self.hub)).stdout)

    @NEEDS_ENGINE
    def test_a_run(self):
        done = self.asked("run", "-m", "org/tiny-llama", "-p", TEXT, "-n", 2, "-t", 1, "-o", "t.h5",
                          HF_HUB_CACHE=str(self.hub))
        self.assertIn("t.h5 written", done.stderr)
        self.assertIn("downloads nothing", self.asked("run", "-m", "org/absent", "-p", TEXT, "-o", "t2.h5", code=1,
                                                      HF_HUB_CACHE=str(self.hub)).stderr)
        self.assertFalse(self.path("t2.h5.part").exists())

    def test_models_lists_the_cache(self):
        rows = self.listed(self.hub)
        self.assertLessEqual({"tiny-llama"}, {row["name"] for row in rows})
        self.assertFalse([row for row in rows if "blobs" in row["path"]])
        self.assertFalse([row for row in rows if row["family"].startswith("cannot be used")])


class Folders(Models):
    def test_models_in_folders_of_folders(self):
        root = self.path("models")
        deep = root / "a" / "b" / "c" / "d"
        deep.mkdir(parents=True)
        shutil.copy(GGUF_MODEL, deep / "deep.gguf")
        shutil.copytree(HF_MODEL, root / "a" / "llama")
        (root / ".hidden").mkdir()
        shutil.copy(GGUF_MODEL, root / ".hidden" / "hidden.gguf")
        too_deep = deep / "e" / "f"
        too_deep.mkdir(parents=True)
        shutil.copy(GGUF_MODEL, too_deep / "too-deep.gguf")
        for part in (1, 2):
            (root / f"split-0000{part}-of-00002.gguf").write_bytes(b"GGUF")
        self.assertEqual([os.path.relpath(row["path"], root) for row in self.listed(root)],
                         ["a/b/c/d/deep.gguf", "a/llama", "split-00001-of-00002.gguf"])

    def test_links_that_lead_round_in_circles(self):
        root = self.path("circle")
        (root / "inner").mkdir(parents=True)
        shutil.copy(GGUF_MODEL, root / "inner" / "one.gguf")
        (root / "inner" / "up").symlink_to(root)
        (root / "again").symlink_to(root / "inner")
        (root / "gone").symlink_to(root / "nowhere")
        self.assertEqual(len(self.listed(root)), 1)


class Names(Models):
    def test_a_training_label_gives_way_to_the_file_s_name(self):
        renamed = self.path("My-Model-7B.gguf")
        shutil.copy(GGUF_MODEL, renamed)
        shown = self.made("inspect", renamed).stdout
        self.assertIn(": My-Model-7B (", shown)
        self.assertRegex(shown, "name in the metadata: .+")
        fingerprints = {row for row in (self.made("inspect", path).stdout.split("fingerprint ")[1].split()[0]
                                        for path in (renamed, GGUF_MODEL))}
        self.assertEqual(len(fingerprints), 1, "a file's name does not change the fingerprint")


if __name__ == "__main__":
    unittest.main()
