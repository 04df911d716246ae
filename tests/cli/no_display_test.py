"""kvscope without a display: commands that need one say so in one line, and the demo runs in the terminal."""

import unittest

from program import HAS_ENGINE, ProgramTest, has_command


@unittest.skipUnless(has_command("view"), "this build has no window")
class NoDisplayTest(ProgramTest):
    def test_the_window_says_what_to_do_instead(self):
        for arguments in [], ["view"], ["view", "--layout", "compare"]:
            with self.subTest(arguments=arguments):
                said = self.refuses(1, ["no display", "kvscope inspect"], *arguments)
                self.assertEqual(said.count("\n"), 1, said)

    def test_no_picture_without_a_display(self):
        for arguments in ["view"], ["view", "--demo"]:
            with self.subTest(arguments=arguments):
                self.refuses(1, ["no display"], *arguments, "--screenshot", "picture.png")
                self.assertFalse(self.path("picture.png").exists())
        self.refuses(2, ["--screenshot", "picture.jpg", "PNG"], "view", "--screenshot", "picture.jpg")

    def test_wrong_usage_is_told_before_a_window_opens(self):
        for name, value, messages in (("--view", "nonsense", ["nonsense", "query_similarity", "retention"]),
                                      ("--layout", "nonsense", ["nonsense", "explore"]),
                                      ("--size", "0x0", ["0x0", "1600x1000"]), ("--size", "wide", ["wide"]),
                                      ("--size", "99999x700", ["99999x700"]), ("--ui-scale", "0", ["0.5"])):
            with self.subTest(name=name, value=value):
                self.refuses(2, [name, *messages], "view", name, value)
        self.refuses(2, ["--view", "--layout"], "view", "--view", "cost", "--layout", "report")
        for name in "query-similarity", "query_similarity":
            self.refuses(1, ["no display"], "view", "--view", name)

    @unittest.skipUnless(HAS_ENGINE, "this build has no engine")
    def test_the_demo_runs_in_the_terminal(self):
        # The demo fails because its prompt exceeds the small model's context.
        said = self.refuses(2, ["no display", "running the demo", "the prompt 'demo'"], "view", "--demo")
        self.assertIn("no display", said.splitlines()[0])
        self.assertFalse((self.folder / "kvscope-demo" / "demo.h5.part").exists())


if __name__ == "__main__":
    unittest.main()
