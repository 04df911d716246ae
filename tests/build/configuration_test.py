"""The configuration accepts an unset or relative cache folder, a machine without Git, and a /dev/shm that runs no programs.
scripts/test lists the suites without a build."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["KVSCOPE_SOURCE"])
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(toy NONE)
include(${MODULE})
message(STATUS "found: ${${VARIABLE}}")
"""


class Configuration(unittest.TestCase):
    def configured(self, module, variable, *options, **environment):
        """Returns a variable that a module of cmake/ sets in a project without sources, and the project's folder."""
        folder = tempfile.TemporaryDirectory(prefix="kvscope-configuration-")
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        (root / "CMakeLists.txt").write_text(PROJECT)
        done = subprocess.run(["cmake", "-S", root, "-B", root / "build", "-G", "Ninja", "-Wno-dev", f"-DVARIABLE={variable}",
                               f"-DMODULE={SOURCE / 'cmake' / module}", *options], env={**os.environ, **environment},
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return re.search("^-- found: (.*)$", done.stdout, re.MULTILINE)[1], root

    def test_cache_folder(self):
        where = [sys.executable, SOURCE / "cmake" / "fetch.py", "--where", "model"]
        for variables, expected in (({"KVSCOPE_CACHE": "", "XDG_CACHE_HOME": "/x"}, "/x/kvscope"),
                                    ({"KVSCOPE_CACHE": "", "XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache/kvscope"),
                                    ({"KVSCOPE_CACHE": "some/where"}, "some/where"),
                                    ({"KVSCOPE_CACHE": "/x y"}, "/x y")):
            with self.subTest(**variables):
                found, root = self.configured("Toolchain.cmake", "KVSCOPE_CACHE", **variables)
                self.assertEqual(found, str(root / expected), "CMake")
                printed = subprocess.run(where, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
                fetched = SOURCE / expected
                self.assertTrue(pathlib.Path(printed.stdout.strip()).is_relative_to(fetched), printed.stdout)

    @unittest.skipUnless(shutil.which("ccache"), "needs ccache")
    def test_a_changed_comment_in_a_precompiled_header(self):
        """g++ refuses a precompiled header of the old comment, which ccache returns if it ignores comments."""
        launcher, root = self.configured("Toolchain.cmake", "CMAKE_CXX_COMPILER_LAUNCHER", KVSCOPE_CACHE="cache")

        def compiled(*arguments):
            return subprocess.run([*launcher.split(";"), "g++", "-MD", "-MF", "dependencies", *arguments], cwd=root,
                                  capture_output=True, text=True)
        (root / "precompiled.hxx").write_text('#pragma once\n#include "a.h"\n')
        (root / "empty.cxx").write_text("")
        header, precompiled = root / "a.h", root / "precompiled.hxx.gch"
        for comment in ("one", "another"):
            header.write_text(f"#pragma once\n// {comment}\nstruct A {{}};\n")
            (root / "source.cpp").write_text(f'#include "a.h"\nA {comment}();\n')
            os.utime(header, (1e9, 1e9))  # ccache does not store results of headers that are newer than the compiler's start
            precompiled.unlink(missing_ok=True)
            included = ["-include", root / "precompiled.hxx"]
            for arguments in (["-x", "c++-header", *included, "-c", "empty.cxx", "-o", precompiled],
                              [*included, "-fpch-preprocess", "-c", "source.cpp", "-o", "source.o"]):
                done = compiled(*arguments)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_no_git(self):
        found, _ = self.configured("Commit.cmake", "KVSCOPE_COMMIT", "-DCMAKE_DISABLE_FIND_PACKAGE_Git=ON")
        self.assertEqual(found, "unknown")

    def test_files_in_memory_need_a_folder_that_runs_programs(self):
        """Mounts /dev/shm for the own processes only."""
        with tempfile.TemporaryDirectory(prefix="kvscope-configuration-", dir=".") as folder:  # not in /dev/shm
            script = pathlib.Path(folder).resolve() / "script.cmake"
            script.write_text(f'include("{SOURCE}/tests/in_memory.cmake")\nmessage("${{in_memory}}")\n')
            for options, expected in (("exec", "TMPDIR=/dev/shm"), ("noexec", "")):
                mounts = f"mount -t tmpfs -o size=5G,{options} tmpfs /dev/shm || exit 77; cmake -P '{script}'"
                done = subprocess.run(["unshare", "--mount", "sh", "-c", mounts], capture_output=True, text=True)
                if "unshare failed" in done.stderr or done.returncode == 77:
                    self.skipTest("mounting needs root")
                self.assertEqual((done.returncode, done.stderr.strip()), (0, expected))


class Suites(unittest.TestCase):
    def test_list_needs_no_build(self):
        with tempfile.TemporaryDirectory(prefix="kvscope-configuration-") as folder:
            scripts = pathlib.Path(folder) / "scripts"
            scripts.mkdir()
            shutil.copy(SOURCE / "scripts" / "test", scripts)
            for name, shell in (("build", "exit 1"), ("setup", ""), ("cmake", ""), ("ctest", "echo '  Test  #1: kernels'")):
                (scripts / name).write_text(f"#!/bin/sh\n{shell}\n")
                (scripts / name).chmod(0o755)
            done = subprocess.run([scripts / "test", "--list"], env={**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"},
                                  capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "kernels\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
