#!/usr/bin/env python3
"""usage: kept_difference.py A.h5 B.h5: how many of the entries that the runs of one trace keep those of another lack."""

import sys

try:
    import h5py
    import numpy
except ImportError as missing:
    sys.exit(f"skipped: {missing.name} is not installed (python3 -m pip install h5py)")


def kept_sets(path):
    """By run, the set of (row, entry)."""
    found = {}
    with h5py.File(path) as trace:
        for prompt in trace["prompts"].values():
            for run in prompt["runs"].values():
                if "kept_indices" not in run:
                    continue
                offsets, indices = run["kept_offsets"][()], run["kept_indices"][()]
                rows = numpy.repeat(numpy.arange(len(offsets) - 1), numpy.diff(offsets).astype(numpy.int64))
                found[prompt.name, run.attrs["label"]] = set(zip(rows.tolist(), indices.tolist()))
    return found


def main():
    one, other = (kept_sets(path) for path in sys.argv[1:3])
    if not one or one.keys() != other.keys():
        sys.exit(f"the traces hold different runs: {sorted(one.keys() ^ other.keys())}")
    print("| run | entries | kept by one alone |\n|---|---|---|")
    for (prompt, label), kept in one.items():
        print(f"| {label} | {len(kept)} | {len(kept - other[prompt, label])} |")


main()
