"""scripts/setup installs missing packages, shows the progress, and names cause and remedy of failures. apt-get is a fake."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["KVSCOPE_SOURCE"])
STATUS = ("echo 'Reading package lists...'; echo 'dlstatus:1:50.0:Retrieving file 1 of 2'; "
          "echo 'pmstatus:g++:amd64:50.0:Unpacking g++ (amd64)'")


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kvscope-setup-")
        self.addCleanup(folder.cleanup)
        self.programs = pathlib.Path(folder.name)
        self.calls = self.programs / "calls"
        installed = (SOURCE / "scripts" / "packages.txt").read_text().split()
        installed.remove("mold")
        self.fake("dpkg-query", "printf 'ii  %s\\n' " + " ".join(installed))
        self.fake("dpkg", "")
        self.fake("id", "echo 0")
        self.fake("sudo", "exit 1")
        self.apt("")

    def fake(self, program, shell):
        file = self.programs / program
        file.write_text(f"#!/bin/sh\n{shell}\n")
        file.chmod(0o755)

    def apt(self, shell):
        self.fake("apt-get", f'echo "$@" >>{self.calls}\ncase "$*" in *install*) {shell or ":"} ;; esac')

    def run_setup(self, path=None):
        done = subprocess.run([SOURCE / "scripts" / "setup"], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**os.environ, "PATH": path or f"{self.programs}:{os.environ['PATH']}"})
        self.assertEqual(done.stdout, "")
        return done

    def fails(self, text, path=None):
        done = self.run_setup(path)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1], rf"^kvscope: .*{text}.*; .+")
        return done.stderr

    def test_installs_what_is_missing(self):
        self.apt(STATUS)
        done = self.run_setup()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(self.calls.read_text(), r"install .*--no-install-recommends mold\n")
        self.assertRegex(done.stderr, r"^kvscope: installing packages \d+ % · \d+ min left · Retrieving file 1 of 2\n$")

    def test_nothing_missing(self):
        self.fake("dpkg-query", "printf 'ii  %s\\n' " + (SOURCE / "scripts" / "packages.txt").read_text().replace("\n", " "))
        done = self.run_setup()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertFalse(self.calls.exists())

    def test_no_root(self):
        self.fake("id", "echo 1000")
        self.assertIn("apt-get install -y --no-install-recommends mold", self.fails("only root"))

    def test_failures(self):
        for message, text in {"E: Failed to fetch a file": "cannot be reached",
                              "E: You don't have enough free space in /var/cache/apt/archives/.": "disk is full",
                              "E: Could not get lock /var/lib/dpkg/lock-frontend": "another program",
                              "E: Unable to locate package mold": "does not find a package",
                              "E: Something else": "apt-get failed"}.items():
            with self.subTest(message):
                self.apt(f'{STATUS}; echo "{message}"; exit 100')
                self.assertIn(message, self.fails(text), "apt-get's message is shown")

    def test_missing_program(self):
        for program in ("bash", "dirname", "readlink"):
            os.symlink(f"/usr/bin/{program}", self.programs / program)
        (self.programs / "dpkg-query").unlink()  # as on other systems
        self.fails("python3 is missing", path=str(self.programs))


if __name__ == "__main__":
    unittest.main()
