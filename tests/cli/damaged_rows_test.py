#!/usr/bin/env python3
"""Rows of results with damaged texts, and attributes outside their range, are reported by name. Rows that lack the columns of
later versions keep their scores."""

import shutil
import struct
import unittest
import zlib

import h5py
import numpy

from program import HF_MODEL, NEEDS_ENGINE, TEXT, ProgramTest, csv_rows

REFERENCE = "<IQI"  # length of the text, address of its heap, number of its object
LATER_COLUMNS = ("tied_heads", "system_dropped")


@NEEDS_ENGINE
class DamagedRows(ProgramTest):
    @classmethod
    def prepare(cls):
        cls.folder.joinpath("q.jsonl").write_text('{"context": "%s", "question": "Who?", "answers": ["dog"]}\n' % TEXT)
        cls.made("run", "q.jsonl", "-m", HF_MODEL, "-t", 1, "-n", 4, "--policy", "h2o", "--policy", "snapkv:window=8", "--budget", 24,
                 "-o", "t.h5", "-q")

    def copy(self, name):
        shutil.copy(self.path("t.h5"), self.path(name))
        return h5py.File(self.path(name), "r+")

    def change_reference(self, name, column, change):
        """Changes the reference of a text in row 1. Rows are stored as one shuffled and compressed chunk."""
        with self.copy(name) as trace:
            table = trace["results/prompts"].id
            row_bytes = table.get_create_plist().get_filter(0)[2][0]
            offset, kinds = 0, table.get_type()
            for i in range(kinds.get_nmembers()):
                if kinds.get_member_name(i).decode() == column:
                    break
                offset += 16 if kinds.get_member_class(i) == h5py.h5t.STRING else 8
            planes = numpy.frombuffer(zlib.decompress(table.read_direct_chunk((0,))[1]), numpy.uint8).reshape(row_bytes, -1)
            rows = planes.T.copy()
            place = slice(offset, offset + 16)
            rows[1, place] = numpy.frombuffer(struct.pack(REFERENCE, *change(*struct.unpack(REFERENCE, rows[1, place].tobytes()))),
                                              numpy.uint8)
            table.write_direct_chunk((0,), zlib.compress(rows.T.tobytes()))

    def reports(self, name, *texts):
        done = self.run_program("inspect", name)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for text in texts:
            self.assertIn(text, done.stdout + done.stderr)

    def test_a_damaged_text_is_refused(self):
        changes = {"shorter": lambda length, heap, number: (length - 1, heap, number),
                   "longer": lambda length, heap, number: (length + 5000, heap, number),
                   "huge": lambda length, heap, number: (0xFFFFFFFF, heap, number),
                   "no object": lambda length, heap, number: (length, heap, 60000),
                   "object 0": lambda length, heap, number: (length, heap, 0),
                   "no heap": lambda length, heap, number: (length, 0, number),
                   "other heap": lambda length, heap, number: (length, heap + 8, number),
                   "beyond the file": lambda length, heap, number: (length, 1 << 40, number)}
        for name, change in changes.items():
            with self.subTest(name):
                self.change_reference("d.h5", "policy", change)
                self.reports("d.h5", "/results/prompts", "the place of a text in the file is damaged")

    def test_attributes_outside_their_range(self):
        for place, name, value, expected in (("prompts/0", "n_system", 100000, "0 to "), ("prompts/0", "n_system", -1, "0 to "),
                                             ("prompts/0/runs/1", "tied_heads", 1.5, "a number from 0 to 1")):
            with self.subTest(name):
                with self.copy("a.h5") as trace:
                    trace[place].attrs[name] = numpy.array(value, trace[place].attrs[name].dtype)
                self.reports("a.h5", f"/{place}@{name}", expected)

    def test_rows_of_an_earlier_version_keep_their_scores(self):
        with self.copy("e.h5") as trace:
            rows, attributes = trace["results/prompts"][:], dict(trace["results/prompts"].attrs)
            kept = [name for name in rows.dtype.names if name not in LATER_COLUMNS]
            kinds = numpy.dtype([(name, trace["results/prompts"].dtype[name]) for name in kept])
            del trace["results/prompts"]
            table = trace["results"].create_dataset("prompts", shape=rows.shape, dtype=kinds, chunks=rows.shape, compression=1,
                                                    shuffle=True)
            table[:] = rows[kept]
            table.attrs.update(attributes)
        for cells in ("score", "evidence_kept", "coverage", "tied_heads"):
            with self.subTest(cells):
                for name in ("t", "e"):
                    self.made("export", f"{name}.h5", "--figure", "results-table", "--cells", cells, "-o", f"{name}-{cells}.csv")
                tables = [csv_rows(self.path(f"{name}-{cells}.csv").read_text()) for name in ("t", "e")]
                self.assertEqual(*tables)
                self.assertEqual(len(tables[0]), 3)


if __name__ == "__main__":
    unittest.main()
