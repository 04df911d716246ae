#!/usr/bin/env python3
"""`kvscope eval`: what is said of policies that cannot run."""

import unittest

from program import HF_MODEL, NEEDS_ENGINE, ProgramTest


@NEEDS_ENGINE
class Failures(ProgramTest):
    SAID = ("eval", "-m", HF_MODEL, "--lengths", 300, "--depths", 0.5, "--samples", 2, "--policy", "streaming-llm",
            "--policy", "headkv:importance=missing.json", "--budget", 64, "-n", 4, "-o", "needles.h5", "-q")

    def test_why_a_policy_cannot_run_is_said_once_and_under_the_table(self):
        done = self.made(*self.SAID)
        self.assertEqual(done.stderr.count("missing.json"), 1 + done.stderr.count("headkv:importance=missing.json"))
        self.assertEqual(done.stderr.count("headkv"), 1)
        self.assertRegex(done.stdout, r"headkv:importance=missing\.json @ 64 failed in 2 of 2 samples: .*missing\.json")
        again = self.made(*self.SAID)
        self.assertEqual(again.stdout, done.stdout, "what is finished tells the same")


if __name__ == "__main__":
    unittest.main()
