"""The time left that scripts/build shows is right during replays of a recorded cold build (cold_build.txt)."""

import contextlib
import heapq
import importlib.util
import io
import os
import pathlib
import random
import re
import statistics
import unittest
import unittest.mock

SOURCE = pathlib.Path(os.environ["KVSCOPE_SOURCE"])
spec = importlib.util.spec_from_file_location("build_progress", SOURCE / "scripts" / "build_progress.py")
progress = importlib.util.module_from_spec(spec)
spec.loader.exec_module(progress)

TOLERANCE = 0.33  # of the time left
SECONDS = 10  # smaller errors do not count
CACHED = 0.2  # seconds of a step that the compiler cache has


def recorded():
    """Returns the steps, and a dictionary from their names to seconds."""
    steps, seconds = [], {}
    for text in (SOURCE / "tests" / "build" / "cold_build.txt").read_text().splitlines():
        if not text.startswith("#"):
            name, kind, own, headers, optimization, library, torch, waits, after, taken = text.split()
            steps.append(progress.Step(name, kind, int(own), int(headers), optimization, library == "1", torch == "1",
                                       waits == "1", after.replace("-", "", after == "-")))
            seconds[name] = float(taken)
    return steps, seconds


STEPS, COLD = recorded()


def build(seconds, jobs, libtorch=0.0):
    """Returns (end, start, name) of all steps when `jobs` of them run at a time and libtorch arrives after some seconds."""
    todo = [step for step in STEPS if step.kind != "link"]
    ends, done, workers = {}, [], [0.0] * jobs
    while todo:
        now = heapq.heappop(workers)
        ready = [max(ends.get(step.after, float("inf")) if step.after else 0, libtorch * step.waits) for step in todo]
        i = next((i for i, start in enumerate(ready) if start <= now), None)
        if i is None:
            heapq.heappush(workers, min(ready))
            continue
        step = todo.pop(i)
        ends[step.name] = now + seconds[step.name]
        done.append((ends[step.name], now, step.name))
        heapq.heappush(workers, ends[step.name])
    for step in STEPS:
        if step.kind == "link":
            now = max(ends.values())
            done.append((now + seconds[step.name], now, step.name))
    return sorted(done)


def errors(seconds, jobs, libtorch=0.0):
    """Relative errors of the time left from 20 % of the total time on. Errors of less than SECONDS are 0."""
    done = build(seconds, jobs, libtorch)
    total = done[-1][0]
    estimate = progress.Estimate(STEPS, jobs)
    found = []
    for percent in range(20, 98, 3):
        now = total * percent / 100
        for end, start, name in done:
            if end <= now:
                estimate.finish(name, start, end)
        error = estimate.left(now, max(0.0, libtorch - now))[0] - (total - now)
        found.append(error / (total - now) if abs(error) > SECONDS else 0.0)
    return found


def wrong(found):
    """The share of errors beyond the tolerance."""
    return sum(abs(error) > TOLERANCE for error in found) / len(found)


class TimeLeft(unittest.TestCase):
    def test_empty_cache(self):
        for jobs in (1, 2, 3, 6):
            for factor in (0.3, 1, 3):
                with self.subTest(jobs=jobs, factor=factor):
                    found = errors({name: factor * taken for name, taken in COLD.items()}, jobs)
                    self.assertEqual(wrong(found), 0, found)

    def test_16_cores(self):
        """A few long steps decide when the build ends, so that the error of one step counts."""
        for factor in (0.3, 1):
            with self.subTest(factor=factor):
                found = errors({name: factor * taken for name, taken in COLD.items()}, 18)
                self.assertLessEqual(wrong(found), 0.2, found)

    def test_other_costs(self):
        found = []
        for seed in range(6):
            chance = random.Random(seed)
            found += errors({name: taken * chance.lognormvariate(0, 0.4) for name, taken in COLD.items()}, 2)
        self.assertLessEqual(wrong(found), 0.15)

    def test_other_programs_start(self):
        """Five times slower from the first third on. The estimate follows when steps have finished at the new speed."""
        slow = {step.name for step in STEPS[len(STEPS) // 3:]}
        found = errors({name: taken * (5 if name in slow else 1) for name, taken in COLD.items()}, 2)
        self.assertEqual(wrong(found[len(found) // 3:]), 0, found)

    def test_full_cache(self):
        for jobs in (2, 16):
            self.assertEqual(wrong(errors(dict.fromkeys(COLD, CACHED), jobs)), 0)

    def test_half_full_cache(self):
        """Nothing shows in advance which of the remaining steps the cache has, so that the error is larger."""
        found = []
        for seed in range(8):
            chance = random.Random(seed)
            found += errors({name: CACHED if chance.random() < 0.5 else taken for name, taken in COLD.items()}, 2)
        self.assertLessEqual(statistics.median(map(abs, found)), TOLERANCE)
        self.assertLessEqual(wrong(found), 0.45)

    def test_changed_second_half(self):
        changed = {step.name for step in STEPS[len(STEPS) // 2:]}
        found = errors({name: taken if name in changed else CACHED for name, taken in COLD.items()}, 2)
        self.assertEqual(wrong(found), 0, found)

    def test_slow_download(self):
        found = errors(COLD, 2, libtorch=400)
        self.assertEqual(wrong(found), 0, found)

    def test_targets_without_compilation(self):
        """Such as libtorch's files, for which ninja runs only a download."""
        self.assertEqual(progress.Estimate([], 2).left(1), (0, None))


class Share(unittest.TestCase):
    def shown(self, *times):
        """Returns the shares in a log, for pairs of the elapsed and the remaining seconds."""
        with unittest.mock.patch.object(progress.time, "monotonic", return_value=0) as clock, \
                contextlib.redirect_stderr(io.StringIO()) as log:
            line = progress.Line(0)
            for now, left in times:
                clock.return_value = now
                line.show("compiling", left)
        return [int(share) for share in re.findall(r"(\d+) %", log.getvalue())]

    def test_never_falls(self):
        self.assertEqual(self.shown((100, 100), (120, 130), (200, 20), (300, 300), (400, 4)), [50, 50, 91, 91, 99])


if __name__ == "__main__":
    unittest.main()
