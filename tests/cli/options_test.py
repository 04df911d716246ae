#!/usr/bin/env python3
"""Rules for every option of every command: empty values, numbers, repetition, nearly correct names."""

import json
import re
import unittest

import h5py

from program import CONTEXT_LENGTH, HAS_ENGINE, HF_MODEL, NEEDS_ENGINE, SOURCE, TEXT, ProgramTest, help_of

LARGEST_SEED = 2**64 - 1


class Options(ProgramTest):
    def test_an_empty_value_is_refused(self):
        """empty_values_test.cpp tests every option."""
        self.refuses(2, ["--format", "empty"], "policies", "--format", "")
        self.refuses(2, ["--format", "empty"], "policies", "--format=")
        self.refuses(2, ["empty"], "inspect", "")

    def test_numbers_are_decimal_whole_and_in_range(self):
        for number in ("many", "1.5", "0x10", "1e3", "12x", "99999999999999999999", "-99999999999999999999"):
            with self.subTest(number):
                self.refuses(2, ["--window", "a whole number", number], "run", "text.txt", "--window", number)
        for number in ("nan", "inf", "1e999", "0x1p3", "wide"):
            with self.subTest(number):
                self.refuses(2, ["--width", number], "export", "t.h5", "--width", number)

    def test_different_values_of_a_repeated_option_are_refused(self):
        self.refuses(2, ["--format takes one value", "'json'", "'csv'"], "policies", "--format", "json", "--format", "csv")
        self.refuses(2, ["--width takes one value", "'70'", "'80'"], "export", "no-such.h5", "--width", "70", "--width", "80",
                     "--figure", "jsd", "-o", "a.pdf")
        self.refuses(2, ["--prompt takes one value", "'0'", "'1'"], "export", "no-such.h5", "--prompt", 0, "--prompt", 1,
                     "--figure", "jsd", "-o", "a.pdf")
        self.refuses(2, ["--output takes one value"], "export", "no-such.h5", "--figure", "jsd", "-o", "a.pdf", "-o", "b.pdf")
        self.assertEqual(self.made("policies", "--format", "csv", "--format", "csv").stdout,
                         self.made("policies", "--format", "csv").stdout)

    def test_an_unknown_option_gets_a_suggestion(self):
        for arguments, meant in ((["policies", "--formt", "csv"], "--format"), (["export", "--figur=x"], "--figure"),
                                 (["export", "-figure", "x"], "--figure"), (["export", "--out_put", "x"], "--output")):
            with self.subTest(arguments):
                self.refuses(2, ["unknown option", f"Did you mean {meant}"], *arguments)
        said = self.refuses(2, ["--quux"], "policies", "--quux", "value")
        self.assertNotIn("Did you mean", said)
        self.assertNotIn("value", said)

    def test_an_unknown_command_gets_a_suggestion(self):
        self.refuses(2, ["unknown command 'figuers'", "Did you mean figures", "Commands:", "inspect"], "figuers")
        self.refuses(2, ["unknown command 'xyzzy'", "Commands:"], "xyzzy")
        self.path("trace.h5").write_bytes(b"")
        self.refuses(2, ["kvscope view trace.h5", "kvscope inspect trace.h5"], "trace.h5")

    def test_an_unknown_name_gets_a_suggestion(self):
        self.refuses(2, ["jsonn", "Did you mean json", "md"], "policies", "--format", "jsonn")
        self.refuses(2, ["snapvk", "Did you mean snapkv"], "policies", "snapvk")
        self.path("t.h5").write_bytes(b"")
        self.refuses(2, ["retenton", "Did you mean retention"], "export", "t.h5", "--figure", "retenton", "-o", "a.pdf")

    def test_what_scripts_gpu_calls_is_there(self):
        """scripts/gpu needs a GPU, so this checks only that kvscope has the options that it uses."""
        script = (SOURCE / "scripts" / "gpu").read_text().replace("\\\n", " ")
        calls = re.findall(r'bin/kvscope" ([a-z-]+)(.*)', script)
        self.assertGreaterEqual(len(calls), 3)
        for command, rest in calls:
            if command == "run" and not HAS_ENGINE:
                continue
            known = help_of(command)
            for option in re.findall(r"(?<=\s)--?[a-z][a-z-]*", re.split(r"\|\||&&", rest)[0]):
                with self.subTest(f"{command} {option}"):
                    self.assertRegex(known, rf"(?<![\w-]){re.escape(option)}(?![\w-])")


@NEEDS_ENGINE
class OptionsOfModels(ProgramTest):
    def bad(self, messages, *arguments, n=4):
        self.refuses(2, messages, "run", "-m", HF_MODEL, "-p", TEXT, "-n", n, "-o", "t.h5", *arguments)
        self.assertEqual([p.name for p in self.folder.glob("t.h5*")], [])

    def test_seeds_out_of_range(self):
        for option in ("-s", "--sampling-seed"):
            for seed in (-1, LARGEST_SEED + 1, "99999999999999999999", "1.0", "seed"):
                with self.subTest(f"{option} {seed}"):
                    self.bad(["seed", str(seed), "at least 0 and below 2^64"], option, seed)
        self.refuses(2, ["at least 0 and below 2^64"], "eval", "-o", "e.h5", "-s", -1)
        self.refuses(2, ["at least 0 and below 2^64"], "analyze", "--queries", "-p", TEXT, "-s", -1)

    def test_the_largest_seed_is_one_of_its_own(self):
        self.make_trace("largest.h5", "-s", LARGEST_SEED, "--temp", 1)
        with h5py.File(self.path("largest.h5"), "r") as trace:
            self.assertIn(f'"seed":{LARGEST_SEED}', trace.attrs["recipe_json"])

    def test_a_seed_with_leading_zeros_is_decimal(self):
        self.make_trace("decimal.h5", "-s", "010")
        with h5py.File(self.path("decimal.h5"), "r") as trace:
            self.assertIn('"seed":10,', trace.attrs["recipe_json"])

    def test_numbers_of_tokens_do_not_overflow(self):
        for n in (2**63 - 1, 2**63 - 400, 2**62):
            with self.subTest(n):
                self.bad([f"context for prompt and answer is {CONTEXT_LENGTH}", str(n)], n=n)
                self.refuses(2, [f"context for prompt and answer is {CONTEXT_LENGTH}"], "analyze", HF_MODEL, "--queries", "-p", TEXT, "-n", n, "-q")
                self.refuses(2, [f"context is {CONTEXT_LENGTH}"], "eval", "-m", HF_MODEL, "--lengths", 100, "--depths", 0.5,
                             "-n", n, "-o", "e.h5", "-q")
        self.bad(["-n", str(2**63)], n=2**63)

    def test_numbers_with_a_limit_say_it(self):
        for arguments, limit in ((["-t", 10**6], "from 1 to 1024"), (["--window", 2**31], "at most 9 digits, at least 1"),
                                 (["--window", -1], "a whole number, at least 1,"), (["-t", 2**40], "from 1 to 1024")):
            with self.subTest(arguments):
                self.bad([limit], *arguments)
        self.refuses(2, ["--samples", "from 1 to 100000"], "eval", "-o", "e.h5", "--samples", 2**31 - 1)
        self.refuses(2, ["--trials", "from 0 to 100000"], "analyze", "--queries", "-p", TEXT, "--trials", 2**31 - 1)
        # A type's limits mean nothing to users.
        for option, number, limit in (("-n", 10**20, "a whole number of at most 18 digits"),
                                      ("-n", -10**20, "a whole number of at most 18 digits"),
                                      ("-s", 2**64, "at least 0 and below 2^64")):
            with self.subTest(f"{option} {number}"):
                said = self.refuses(2, [limit], "run", "-m", HF_MODEL, "-p", TEXT, "-o", "t.h5", option, number)
                for shown in ("9223372036854775807", "9223372036854775808", "18446744073709551615"):
                    self.assertNotIn(shown, said)
        self.refuses(2, ["--temp", "nan"], "run", "-o", "t.h5", "-p", TEXT, "--temp", "nan")

    def test_different_values_of_a_repeated_option_are_refused(self):
        for option, one, other in (("-s", 1, 2), ("-n", 3, 4), ("--query-aware", "off", "on")):
            self.refuses(2, ["takes one value", f"'{one}'", f"'{other}'"], "run", "-m", HF_MODEL, "-p", TEXT, "-o", "t.h5",
                         option, one, option, other)
        self.make_trace("same.h5", "-s", 2, "-s", 2)

    def test_the_last_of_several_spellings_counts(self):
        for name, switches, applied in (("a", ["--no-template", "--chat-template", "on"], True),
                                        ("b", ["--chat-template", "on", "--no-template"], False),
                                        ("c", ["--no-template", "--apply-chat-template"], True),
                                        ("d", ["--apply-chat-template", "--chat-template", "on", "--chat-template", "off"],
                                         False)):
            self.make_trace(f"{name}.h5", *switches)
            with h5py.File(self.path(f"{name}.h5"), "r") as trace:
                self.assertEqual(trace["prompts/0"].attrs["template"] != "", applied, switches)

    def test_control_tokens_of_a_bare_text(self):
        """Control tokens are parsed and reported; --no-special reads them as plain text, and the recipe records it."""
        text = f"{TEXT}<|im_end|>"
        ids = {}
        for switch, said in (([], "<|im_end|> (1). They are read as control tokens; with --no-special"),
                             (["--no-special"], "They are read as plain text (--no-special)")):
            run = self.made("run", "-m", HF_MODEL, "-p", text, "--no-template", *switch, "-n", 2, "-t", 1, "--force", "-o",
                            "control.h5")
            self.assertIn(said, run.stderr)
            with h5py.File(self.path("control.h5"), "r") as trace:
                ids[bool(switch)] = trace["prompts/0/token_ids"][:].tolist()
                self.assertEqual(json.loads(trace.attrs["recipe_json"])["prompts"][0]["special"], not switch)
        self.assertGreater(len(ids[True]), len(ids[False]))
        under = self.made("run", "-m", HF_MODEL, "-p", text, "--no-special", "-n", 2, "-t", 1, "-o", "under.h5")
        for said in ("--no-special has no effect", "<|im_end|> (1)", "can end the turn"):
            self.assertIn(said, under.stderr)

    def test_names_are_suggested(self):
        self.bad(["Did you mean --budget?"], "--policy", "h2o", "--buget", 40)
        self.bad(["--dtype", "f32, bf16, auto"], "--dtype", "f33")
        self.bad(["windw", "Did you mean window"], "--policy", "snapkv:windw=8", "--budget", 40)
        self.refuses(2, ["nia", "Did you mean niah"], "eval", "-o", "e.h5", "--tasks", "nia")

    def test_threads_and_template_wherever_a_model_runs(self):
        needles = ["--lengths", 100, "--depths", 0.5, "--samples", 1, "-n", 2, "-q"]
        sizes = {}
        for template in ("on", "off"):
            self.make_trace(f"{template}.h5", "--chat-template", template)
            self.made("eval", "-m", HF_MODEL, *needles, "-t", 1, "--chat-template", template, "-o", f"e-{template}.h5")
            said = self.made("analyze", HF_MODEL, "--queries", "-p", TEXT, "-n", 2, "-t", 1, "--chat-template", template)
            sizes[template] = re.search(r"(\d+) prompt tokens", said.stderr).group(1)
            profiled = self.run_program("profile-heads", HF_MODEL, *needles, "-t", 1, "--chat-template", template, "-o",
                                        "heads.json")
            self.assertIn("answered correctly", profiled.stderr)  # a random model answers wrongly, but it was run
        self.assertNotEqual(sizes["on"], sizes["off"])
        self.made("analyze", HF_MODEL, "-t", 1, "-q")
        prompts = {}
        for name in ("e-on.h5", "e-off.h5"):
            with h5py.File(self.path(name), "r") as trace:
                prompts[name] = trace.attrs["recipe_json"]
        self.assertNotEqual(prompts["e-on.h5"], prompts["e-off.h5"])

    def test_an_output_without_a_folder_is_refused_before_anything_is_computed(self):
        self.refuses(2, ["nowhere/heads.json", "no folder nowhere"], "profile-heads", HF_MODEL, "-o", "nowhere/heads.json")
        self.bad(["no folder nowhere"], "--timings", "nowhere/t.json")


if __name__ == "__main__":
    unittest.main()
