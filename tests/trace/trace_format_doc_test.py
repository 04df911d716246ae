#!/usr/bin/env python3
"""Checks docs/trace-format.md against trace/records/schema.h, and runs both of its example programs."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import h5py
    import numpy
except ImportError:
    h5py = None

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PAGE = (SOURCE / "docs" / "trace-format.md").read_text(encoding="utf-8")
DATA = SOURCE / "tests" / "data" / "trace"
NEEDS_H5PY = unittest.skipIf(h5py is None, "h5py and numpy are not installed")


def example(name):
    """Returns the program marked `# example: name`."""
    programs = [p for p in re.findall(r"```python\n(.*?)```", PAGE, re.S) if p.startswith(f"# example: {name}\n")]
    assert len(programs) == 1, f"expected one example {name}, found {len(programs)}"
    return programs[0]


def run_example(name, path):
    return subprocess.run([sys.executable, "-c", example(name), str(path)], capture_output=True, text=True,
                          encoding="utf-8", env={**os.environ, "PYTHONIOENCODING": "utf-8"}, check=False)


class Names(unittest.TestCase):
    def test_every_name_of_the_schema_is_on_the_page(self):
        schema = (SOURCE / "trace" / "records" / "schema.h").read_text(encoding="utf-8")
        names = re.findall(r'data_set\(\s*"([^"]+)"', schema) + re.findall(r'\{"([a-z_]+)", AttributeType', schema)
        columns = (SOURCE / "trace" / "records" / "result_columns.h").read_text(encoding="utf-8")
        names += re.findall(r'\{"([a-z_]+)", &ResultRow', columns)
        self.assertGreater(len(names), 110)
        for name in names:
            with self.subTest(name):
                self.assertIn(f"`{name}`", PAGE)

    def test_what_must_be_there_is_marked(self):
        schema = (SOURCE / "trace" / "records" / "schema.h").read_text(encoding="utf-8")
        entries = re.findall(r'data_set\(\s*"([^"]+)",[^;]*?Need::(\w+)', schema)
        entries += re.findall(r'\{"([a-z_]+)", AttributeType::\w+, Need::(\w+)', schema)
        marks = {"always": "•", "measured": "◦", "sometimes": ""}
        for name, need in entries:
            rows = [row for row in PAGE.splitlines() if row.startswith("|") and f"`{name}`" in row.split("|")[1]]
            if not rows:
                continue  # a column of /results
            with self.subTest(name):
                found = {row.split("|")[1].strip()[0] for row in rows}
                found = {mark if mark in "•◦" else "" for mark in found}
                self.assertIn(marks[need], found)


@NEEDS_H5PY
class Reading(unittest.TestCase):
    def test_a_trace_of_version_1_0(self):
        done = run_example("read", DATA / "v1.0.h5")
        self.assertEqual(done.stderr, "")
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "sample on sample, 48 tokens")
        self.assertEqual(lines[1], "  full keeps 288 entries; last layer:  été| w1| w2| w3| w4| été| w6| w7")
        self.assertEqual(lines[7], "  snapkv 4 failed: expected a budget above the window")
        self.assertEqual(len(lines), 8)

    def test_another_file_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "other.h5"
            with h5py.File(path, "w") as other:
                other.attrs.update(format="other", version="1.0")
            self.assertIn("not a trace", run_example("read", path).stderr)

    def test_types_are_those_of_the_page(self):
        types = {"f32": "f4", "f64": "f8", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "i32": "i4"}
        with h5py.File(DATA / "v1.0.h5", "r") as trace:
            prompt = trace["prompts/0"]
            self.assertIsInstance(prompt.attrs["text"], str)
            self.assertIsInstance(trace.attrs["version"], str)
            self.assertEqual(list(prompt.attrs["eos_ids"]), [2])
            seen = 0
            for row in PAGE.splitlines():
                columns = [column.strip() for column in row.split("|")]
                if len(columns) != 6 or columns[3] not in types:
                    continue
                for name in re.findall(r"`([^`]+)`", columns[1]):
                    for group in (trace["model"], prompt, *prompt["runs"].values()):
                        if name in group:
                            expected = [types[columns[3]]]
                            self.assertIn(group[name].dtype, [numpy.dtype("<" + t) for t in expected], name)
                            self.assertEqual(group[name].compression, "gzip", name)
                            self.assertTrue(group[name].shuffle, name)
                            seen += 1
            self.assertGreater(seen, 60)


@NEEDS_H5PY
class Writing(unittest.TestCase):
    def test_an_imported_run(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "t.h5"
            done = run_example("write", path)
            self.assertEqual((done.stderr, done.returncode), ("", 0))
            read = run_example("read", path)
            self.assertEqual(read.stderr, "")
            self.assertIn("my-policy keeps 24 entries; last layer:  token0| token1| token2| token9", read.stdout)
            self.check_equal(path)
            self.inspect(path)

    def check_equal(self, path):
        """Checks that tests/data/trace/imported.h5, which the C++ tests read, equals the file that the page writes."""
        with h5py.File(path, "r") as new, h5py.File(DATA / "imported.h5", "r") as kept:
            names = set()
            new.visit(names.add)
            kept_names = set()
            kept.visit(kept_names.add)
            self.assertEqual(names, kept_names)
            for name in names | {"/"}:
                self.assertEqual({k: str(v) for k, v in new[name].attrs.items()},
                                 {k: str(v) for k, v in kept[name].attrs.items()}, name)
                if isinstance(new[name], h5py.Dataset):
                    self.assertEqual(new[name].dtype, kept[name].dtype, name)
                    self.assertEqual(new[name][:].tolist(), kept[name][:].tolist(), name)

    def inspect(self, path):
        program = os.environ.get("KVSCOPE_BINARY", "")
        if not pathlib.Path(program).is_file():
            return
        done = subprocess.run([program, "inspect", str(path)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
