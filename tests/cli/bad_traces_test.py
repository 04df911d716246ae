#!/usr/bin/env python3
"""`inspect` and `export` refuse traces that are damaged, of another format, or newer than kvscope."""

import json
import random
import re
import shutil
import unittest

import h5py

from program import SOURCE, ProgramTest

GOOD = SOURCE / "tests" / "data" / "trace" / "v1.0.h5"


class BadTraces(ProgramTest):
    def copy(self, name="t.h5"):
        return writable_copy(GOOD, self.path(name))

    def bad(self, path, *messages):
        """Checks that both commands refuse the file and draw nothing."""
        for arguments in (["inspect", path], ["inspect", path, "--format", "json"],
                          ["export", path, "--figure", "coverage", "-o", "figure.pdf"]):
            with self.subTest(" ".join(map(str, arguments))):
                self.refuses(1, [path.name, *messages], *arguments)
        self.assertFalse(self.path("figure.pdf").exists())

    def test_a_good_one_is_good(self):
        self.assertIn("no errors", self.made("inspect", GOOD).stdout)

    def test_a_truncated_trace(self):
        data = GOOD.read_bytes()
        for size in (len(data) // 3, len(data) - 100):
            self.path("short.h5").write_bytes(data[:size])
            self.bad(self.path("short.h5"), str(size))

    def test_an_empty_file(self):
        self.path("empty.h5").write_bytes(b"")
        self.bad(self.path("empty.h5"))

    def test_a_changed_byte_of_the_metadata(self):
        path = self.copy("flip.h5")
        data = bytearray(path.read_bytes())
        data[data.index(b"version") + 1] ^= 1
        path.write_bytes(data)
        said = self.refuses(1, ["flip.h5", "damaged"], "inspect", "flip.h5")
        self.assertNotIn("read attempts", said)

    def test_random_bytes(self):
        self.path("noise.h5").write_bytes(random.Random(1).randbytes(4000))
        self.bad(self.path("noise.h5"))

    def test_another_hdf5_file(self):
        with h5py.File(self.path("other.h5"), "w") as other:
            other["data"] = [1, 2, 3]
        self.bad(self.path("other.h5"), "kvscope-trace")

    def test_another_format(self):
        path = self.copy()
        with h5py.File(path, "r+") as trace:
            trace.attrs["format"] = "sound-recording"
        self.bad(path, "sound-recording", "kvscope-trace")

    def test_a_newer_major_version(self):
        path = self.copy()
        with h5py.File(path, "r+") as trace:
            trace.attrs["version"] = "2.0"
        self.bad(path, "2.0")

    def test_a_newer_minor_version_is_read(self):
        path = self.copy()
        with h5py.File(path, "r+") as trace:
            trace.attrs["version"] = "1.7"
            trace.create_group("prompts/0/something_new").attrs["colour"] = "blue"
        self.assertIn("no errors", self.made("inspect", path).stdout)

    def test_a_text_and_a_folder(self):
        self.path("notes.txt").write_text("Dear diary")
        self.bad(self.path("notes.txt"))
        self.path("folder").mkdir()
        self.bad(self.path("folder"))

    def test_a_trace_that_is_not_there(self):
        self.bad(self.path("nowhere.h5"))

    def test_a_damaged_data_set_costs_the_figures_that_show_it_alone(self):
        path = self.copy()
        self.made("export", path, "--figure", "all", "-o", "whole.csv")
        with h5py.File(path, "r+") as trace:
            del trace["prompts/0/full/window_attention"]
            trace["prompts/0/full/window_attention"] = [1.0, 2.0]
        done = self.run_program("export", path, "--figure", "all", "-o", "damaged.csv")
        self.assertEqual(done.returncode, 1, done.stderr)
        failed = re.findall(r"^kvscope: failed: ([a-z-]+): (.*)$", done.stderr, re.MULTILINE)
        self.assertIn("head-statistics", dict(failed))
        for _, why in failed:
            self.assertRegex(why, r"t\.h5: /prompts/0/full/window_attention: expected the shape .*, found \(2\)")
        expected = {file.name.replace("whole", "damaged") for file in self.folder.glob("whole-*.csv")}
        expected -= {f"damaged-{figure}.csv" for figure, _ in failed}
        self.assertEqual({file.name for file in self.folder.glob("damaged-*")}, expected)
        self.refuses(1, ["window_attention", "found (2)"], "export", path, "--figure", "head-statistics", "-o", "alone.csv")

    def test_inspect_says_what_is_wrong(self):
        """The file opens but violates the format: exit code 1, with path, expected and found value."""
        def no_offsets(trace):
            del trace["prompts/0/runs/1/kept_offsets"]

        def wrong_shape(trace):
            del trace["prompts/0/full/head_jsd"]
            trace["prompts/0/full/head_jsd"] = [1.0, 2.0]

        def not_ascending(trace):
            indices = trace["prompts/0/runs/1/kept_indices"]
            indices[0], indices[1] = indices[1], indices[0]

        def no_family(trace):
            del trace["model"].attrs["family"]

        for change, place in ((no_offsets, "/prompts/0/runs/1/kept_offsets"), (wrong_shape, "/prompts/0/full/head_jsd"),
                              (not_ascending, "/prompts/0/runs/1/kept_indices"), (no_family, "/model")):
            with self.subTest(change.__name__):
                path = self.copy()
                with h5py.File(path, "r+") as trace:
                    change(trace)
                listed = self.run_program("inspect", path, "--format", "json")
                self.assertEqual(listed.returncode, 1, listed.stdout + listed.stderr)
                problems = json.loads(listed.stdout)["problems"]
                self.assertIn(place, {p["path"] for p in problems if p["severity"] == "error"})
                self.assertTrue(all(p["expected"] and p["found"] for p in problems))
        text = self.run_program("inspect", self.path("t.h5"))  # the last damaged file
        self.assertEqual(text.returncode, 1, text.stdout + text.stderr)
        self.assertIn(place, text.stdout + text.stderr)


def writable_copy(source, target):
    shutil.copy(source, target)
    target.chmod(0o644)
    return target


if __name__ == "__main__":
    unittest.main()
