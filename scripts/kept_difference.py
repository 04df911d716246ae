#!/usr/bin/env python3
"""usage: kept_difference.py A.h5 B.h5: prints for each run in A how many of its kept entries B does not keep."""

import sys

try:
    import h5py
    import numpy
except ImportError as missing:
    sys.exit(f"skipped: {missing.name} is not installed (python3 -m pip install h5py)")


def kept_sets(path):
    """Returns the set of (row, entry) for each run."""
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
        sys.exit(f"the traces contain different runs: {sorted(one.keys() ^ other.keys())}")
    print("| run | entries | kept by A only |\n|---|---|---|")
    for (prompt, label), kept in one.items():
        print(f"| {label} | {len(kept)} | {len(kept - other[prompt, label])} |")


main()
