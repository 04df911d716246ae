#!/usr/bin/env python3
"""Sums test cases over ctest's JUnit files. Each entry is a Catch2 program or a Python unittest module.

Prints "N passed, N failed, N skipped". The exit code is 1 if anything failed. An entry without its framework's summary (a
crash, a sanitizer's report) counts as one failure. `--broken N` adds N failed steps.
"""

import argparse
import re
import sys
import xml.etree.ElementTree

CATCH_PASSED = re.compile(r"^All tests passed \(.*?(\d+) test cases?\)", re.M)
CATCH_FAILED = re.compile(r"^test cases: *(\d+) *\|.*?(\d+) failed", re.M)
UNITTEST = re.compile(r"^Ran (\d+) tests? in .*\n+(?:OK|FAILED)(?: \((.*)\))?$", re.M)
SKIPPED = re.compile(r"^SKIPPED ", re.M)


def cases(entry):
    """Returns (passed, failed, skipped) for one ctest entry."""
    output = entry.findtext("system-out") or ""
    succeeded = entry.get("status") == "run"
    failed = None
    skipped = len(SKIPPED.findall(output))
    if match := CATCH_PASSED.search(output):
        total, failed = int(match[1]), 0
    elif match := CATCH_FAILED.search(output):
        total, failed = int(match[1]), int(match[2])
    elif match := UNITTEST.search(output):
        counts = {name: int(n) for name, n in re.findall(r"([a-z ]+)=(\d+)", match[2] or "")}
        total, failed = int(match[1]), counts.get("failures", 0) + counts.get("errors", 0)
        skipped = counts.get("skipped", 0)
    elif entry.get("status") in ("notrun", "disabled"):
        return 0, 0, 1
    else:
        return (1, 0, 0) if succeeded else (0, 1, 0)
    if not succeeded and failed == 0:
        failed, total = 1, total + 1
    return total - failed - skipped, failed, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broken", type=int, default=0)
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    passed, failed, skipped = 0, arguments.broken, 0
    for path in arguments.files:
        for entry in xml.etree.ElementTree.parse(path).iter("testcase"):
            counts = cases(entry)
            passed, failed, skipped = passed + counts[0], failed + counts[1], skipped + counts[2]
            if counts[1]:
                print(f"failed: {entry.get('name')}, {counts[1]} of {sum(counts)} ({path})")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
