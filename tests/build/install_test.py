"""An installed kvscope runs outside the build folder, with its libraries, licenses and demo."""

import os
import pathlib
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path.cwd()


class Installation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="kvscope-install-")
        cls.prefix = pathlib.Path(cls.folder.name)
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix], check=True, stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_starts(self):
        done = subprocess.run([self.prefix / "bin" / "kvscope", "--version"], cwd="/", env={"PATH": "/usr/bin:/bin"},
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^kvscope \d+\.\d+\.\d+")

    def test_own_libraries(self):
        listed = subprocess.run(["ldd", self.prefix / "bin" / "kvscope"], capture_output=True, text=True, check=True)
        self.assertNotIn("not found", listed.stdout)
        foreign = [line.strip() for line in listed.stdout.splitlines() if "=> " in line
                   and not line.split("=> ")[1].startswith((str(self.prefix), "/lib", "/usr/lib"))]
        self.assertEqual(foreign, [], "libraries from the build or the cache folder")

    def test_own_programs(self):
        done = subprocess.run([self.prefix / "bin" / "kvscope", "inspect", os.environ["KVSCOPE_DEFAULT_MODEL"]], cwd="/",
                              env={"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": self.folder.name}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("chat template: yes", done.stdout)

    def test_files(self):
        for name in ("share/doc/kvscope/LICENSE", "share/doc/kvscope/THIRD_PARTY_NOTICES.md",
                     "share/doc/kvscope/llama.cpp/LICENSE", "share/doc/kvscope/imgui/LICENSE.txt",
                     "share/doc/kvscope/implot/LICENSE", "share/doc/kvscope/imgui-command-palette/LICENSE",
                     "share/doc/kvscope/glfw/LICENSE.md", "share/kvscope/demo/demo_context.txt",
                     "share/man/man1/kvscope.1", "share/bash-completion/completions/kvscope",
                     "share/zsh/site-functions/_kvscope", "share/zsh/vendor-completions/_kvscope", "share/fish/vendor_completions.d/kvscope.fish",
                     "share/kvscope/models/" + pathlib.Path(os.environ["KVSCOPE_DEFAULT_MODEL"]).name):
            self.assertTrue((self.prefix / name).is_file(), name)


if __name__ == "__main__":
    unittest.main()
