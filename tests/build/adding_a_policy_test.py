"""docs/adding-a-policy.md can be followed literally: its commands and paths exist, its example file becomes a policy, and an
edit of the policy recompiles only that file."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["KVSCOPE_SOURCE"])
BUILD = pathlib.Path.cwd()
sys.path.insert(0, str(SOURCE / "tests" / "cli"))
from documented_commands import commands_of_page  # noqa: E402

PAGE = SOURCE / "docs" / "adding-a-policy.md"
NAMED = "policies/key_norm.cpp"  # the file that the page shows


def compiled(build):
    """Returns the compile command of each source of the part policies."""
    entries = json.loads((build / "compile_commands.json").read_text())
    return {entry["file"]: entry["command"] for entry in entries
            if "kvscope_policies.dir" in entry["command"] and "cmake_pch" not in entry["file"]}


class Page(unittest.TestCase):
    def test_commands(self):
        targets = subprocess.run(["ninja", "-C", BUILD, "-t", "targets", "all"], capture_output=True, text=True, check=True)
        targets = {line.partition(": ")[0] for line in targets.stdout.splitlines()}
        commands = [shlex.split(command.text) for command in commands_of_page(PAGE)]
        self.assertGreater(len(commands), 5)
        built = set()
        for words in commands:
            words = [word for word in words if not re.fullmatch(r"[A-Z_]+=\S*", word)]
            with self.subTest(command=shlex.join(words)):
                program = pathlib.PurePath(words[0])
                if program.is_relative_to("build/release"):
                    self.assertEqual(program.parent, pathlib.PurePath("build/release/bin"))
                    self.assertIn(program.name, built, "no earlier command on the page builds the program")
                    self.assert_has_tests(BUILD / "bin" / program.name, words[1:])
                    continue
                self.assertTrue(os.access(SOURCE / program, os.X_OK), program)
                if program.name == "build":
                    made = words[words.index("release") + 1:]
                    self.assertLessEqual({f"bin/{name}" for name in made}, targets)
                    built.update(made)
                for text in re.findall(r"-f (\S+)", shlex.join(words)):
                    self.assertTrue((SOURCE / text).is_file(), text)

    def assert_has_tests(self, program, filters):
        if not program.exists():
            self.skipTest(f"{program.name} is not built")
        listed = subprocess.run([program, "--list-tests", *filters], capture_output=True, text=True)
        self.assertNotIn("No test cases", listed.stdout)

    def test_paths(self):
        names = re.findall(r"`((?:policies|tests|kernels|scripts|docs|assets)/[\w./-]+)`", PAGE.read_text(encoding="utf-8"))
        self.assertGreater(len(names), 8)
        for name in set(names) - {NAMED}:
            self.assertTrue((SOURCE / name).exists(), name)


class ANewPolicy(unittest.TestCase):
    def test_is_compiled_alone(self):
        """Uses a copy of the checkout that is configured but not built."""
        with tempfile.TemporaryDirectory(prefix="kvscope-policy-") as folder:
            copy, build = pathlib.Path(folder) / "kvscope", pathlib.Path(folder) / "kvscope" / "build"
            shutil.copytree(SOURCE, copy, symlinks=True, ignore=shutil.ignore_patterns("build", ".git", "*.h5"))
            self.configure(copy, build)
            before = compiled(build)
            text = PAGE.read_text(encoding="utf-8")
            (copy / NAMED).write_text(re.search(r"```cpp\n(.*?)```", text, re.DOTALL)[1], encoding="utf-8")
            self.configure(copy, build)
            after = compiled(build)
            self.assertEqual(after.keys() - before.keys(), {str(copy / NAMED)})
            self.assertEqual({file: after[file] for file in before}, before)
            batches = [file for file in after if "/batches/" in file]
            self.assertGreater(len(batches), 0)
            for file in batches:
                included = re.findall(r'"(.*?)"', pathlib.Path(file).read_text())
                self.assertEqual([name for name in included if name.count("/") < 2], [], file)
            registry = [file for file in after if file.endswith("generated/definitions.cpp")]
            self.assertEqual(len(registry), 1)
            self.assertIn("key_norm_definition()", pathlib.Path(registry[0]).read_text())

    def configure(self, copy, build):
        done = subprocess.run(["cmake", "-S", copy, "-B", build, "-G", "Ninja", "-DKVSCOPE_ENGINE=OFF", "-DKVSCOPE_GUI=OFF",
                               "-DKVSCOPE_TESTS=OFF", "-DKVSCOPE_CUDA=OFF"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
