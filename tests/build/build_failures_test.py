"""scripts/build_progress.py ends failures with one line of cause and remedy, and continues afterwards. Builds a toy project in
a folder whose name contains a space."""

import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

SOURCE = pathlib.Path(os.environ["KVSCOPE_SOURCE"])
COMPILER = """#!/bin/sh
# usage: compiler -o OUTPUT -c SOURCE
set -e
mkdir -p "$(dirname "$2")"
. "$(dirname "$0")/behavior"
cp "$4" "$2"
echo "$2" >>"$(dirname "$0")/compiled"
"""
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(toy NONE)
include(${CMAKE_SOURCE_DIR}/extra.cmake OPTIONAL)
foreach(name one two)
    add_custom_command(OUTPUT objects/${name}.o DEPENDS ${CMAKE_SOURCE_DIR}/${name}.cpp
        COMMAND ${CMAKE_SOURCE_DIR}/compiler -o objects/${name}.o -c ${CMAKE_SOURCE_DIR}/${name}.cpp)
endforeach()
add_custom_target(toy ALL DEPENDS objects/one.o objects/two.o)
file(WRITE ${CMAKE_BINARY_DIR}/fetched.txt "")
"""


class Failures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kvscope build-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.build_folder = self.root / "build" / "release"
        (self.root / "scripts").mkdir()
        self.build_folder.mkdir(parents=True)
        (self.root / "cmake").mkdir()
        for name in ("scripts/build_progress.py", "cmake/fetch.py"):
            shutil.copy(SOURCE / name, self.root / name)
        (self.root / "CMakeLists.txt").write_text(PROJECT)
        (self.root / "CMakePresets.json").write_text(json.dumps({"version": 6, "configurePresets": [
            {"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build/release"}]}))
        (self.root / "compiler").write_text(COMPILER)
        (self.root / "compiler").chmod(0o755)
        for name in ("one", "two"):
            (self.root / f"{name}.cpp").write_text("int i;\n")
        self.behave("")
        # One job, so that the order of the steps is known.
        self.environment = {**os.environ, "KVSCOPE_CACHE": str(self.root / "cache"), "KVSCOPE_JOBS": "1"}

    def behave(self, shell):
        (self.root / "behavior").write_text(shell + "\n")

    def compiled(self):
        """Returns the objects that were compiled since the last call."""
        log = self.root / "compiled"
        names = [pathlib.Path(line).stem for line in log.read_text().splitlines()] if log.exists() else []
        log.unlink(missing_ok=True)
        return names

    def command(self):
        return [sys.executable, self.root / "scripts" / "build_progress.py", "release"]

    def build(self):
        return subprocess.run(self.command(), env=self.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def fails(self, text):
        """Expects that the build fails with one last line. Returns all lines."""
        done = self.build()
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertNotIn("Traceback", done.stderr)
        lines = done.stderr.splitlines()
        self.assertRegex(lines[-1], rf"^kvscope: .*{text}.*; .+")
        return lines

    def succeeds(self):
        done = self.build()
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        return done.stderr

    def small_disk(self, folder, size):
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True).returncode != 0:
            self.skipTest("mounting a small disk needs root")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=True)

    def test_nothing_to_do(self):
        self.succeeds()
        self.assertEqual(self.compiled(), ["one", "two"])
        self.assertEqual(self.succeeds(), "")
        self.assertEqual(self.compiled(), [])

    def test_source_saved_during_the_build(self):
        """scripts/build compares sources with the stamp of a target."""
        self.behave('touch "$4"')
        self.assertEqual(subprocess.run([*self.command(), "toy"], env=self.environment, capture_output=True).returncode, 0)
        stamp = self.build_folder / ".built-toy"
        self.assertLess(stamp.stat().st_mtime, (self.root / "one.cpp").stat().st_mtime)

    def test_wrong_source(self):
        self.behave("case $4 in *two.cpp) echo \"$4:1:1: error: no such word\"; echo '    1 | int i;'; exit 1 ;; esac")
        lines = self.fails(r"/two\.cpp does not compile")
        self.assertIn("    1 | int i;", lines, "the compiler's messages are complete")
        self.assertEqual(self.compiled(), ["one"])
        self.behave("")
        self.succeeds()
        self.assertEqual(self.compiled(), ["two"], "the finished object is kept")

    def test_unknown_preset(self):
        done = subprocess.run([SOURCE / "scripts" / "build", "relase"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "kvscope: unknown preset 'relase'; cmake --list-presets prints the presets\n")
        self.assertFalse((SOURCE / "build" / "relase").exists())

    def test_no_memory(self):
        self.behave("echo 'c++: fatal error: Killed signal terminated program cc1plus'; exit 1")
        self.fails("ran out of memory")

    def test_missing_library(self):
        (self.root / "extra.cmake").write_text("find_package(Nowhere REQUIRED)\n")
        lines = self.fails("CMake does not find Nowhere")
        self.assertTrue(any("CMake Error" in line for line in lines), "CMake's message is shown")
        (self.root / "extra.cmake").unlink()
        self.succeeds()

    def test_missing_compiler(self):
        (self.root / "extra.cmake").write_text("enable_language(CXX)\n")
        programs = self.root / "programs"
        programs.mkdir()
        for program in ("cmake", "ninja"):
            (programs / program).symlink_to(shutil.which(program))
        self.environment.update(PATH=str(programs))
        self.environment.pop("CXX", None)
        self.fails("compiler is missing or does not work")

    def test_missing_cmake(self):
        self.environment.update(PATH=str(self.root / "scripts"))
        self.fails("cmake is missing")

    def test_read_only_cache(self):
        (self.root / "cache").write_text("a file instead of a folder")
        self.fails("is not writable")

    def test_small_disk(self):
        (self.root / "cache").mkdir()
        self.small_disk(self.root / "cache", "16m")
        self.fails(r"/cache has 1\d MB free, the build needs \d+ MB")

    def test_full_disk(self):
        self.succeeds()
        self.small_disk(self.build_folder / "objects", "64k")
        (self.root / "one.cpp").write_text("int i;\n" * 100000)
        self.fails("full")
        (self.root / "one.cpp").write_text("int i;\n")
        self.succeeds()

    def interrupted(self, stop):
        """`stop` receives the process of the build while it compiles two.cpp. Expects that the next call continues."""
        self.behave("case $4 in *two.cpp) : >\"$(dirname \"$0\")/reached\"; sleep 60 ;; esac")
        process = subprocess.Popen(self.command(), env=self.environment, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        while not (self.root / "reached").exists() and process.poll() is None:
            time.sleep(0.05)
        stop(process)
        _, errors = process.communicate()
        self.assertEqual(process.returncode, 130, errors)
        self.assertRegex(errors.splitlines()[-1], "^kvscope: interrupted; ")
        self.assertEqual(self.compiled(), ["one"])
        self.behave("")
        self.succeeds()
        self.assertEqual(self.compiled(), ["two"])

    def test_interruption(self):
        self.interrupted(lambda process: os.killpg(process.pid, signal.SIGINT))

    def test_interruption_of_ninja_alone(self):
        self.interrupted(lambda process: subprocess.run(["pkill", "-INT", "-P", str(process.pid), "ninja"], check=True))

    def drawn(self, columns):
        """Builds on a terminal. Returns the lines that were drawn one over the other."""
        terminal, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen(self.command(), env=self.environment, stderr=inside)
        os.close(inside)
        output = b""
        try:
            while data := os.read(terminal, 4096):
                output += data
        except OSError:  # the terminal is closed
            pass
        os.close(terminal)
        self.assertEqual(process.wait(), 0, output.decode())
        self.assertTrue(output.endswith(b"\r\x1b[K"), "the line is removed at the end")
        return output.decode().split("\r\x1b[K")

    def test_narrow_terminal(self):
        self.behave("sleep 0.7")
        lines = self.drawn(30)
        self.assertTrue(any(re.match(r"kvscope: compiling \d+ % · \d+ s", line) for line in lines), lines)
        for line in lines:
            self.assertLess(len(line), 30, lines)

    def test_waiting_for_a_download(self):
        libtorch = self.root / "cache" / "libtorch"
        (self.root / "extra.cmake").write_text(f"""
            file(WRITE ${{CMAKE_BINARY_DIR}}/fetch-later.log "kvscope: fetching torch 2.11.0: 43 % of 530.6 MB, 3 s left\n")
            add_custom_command(OUTPUT downloaded COMMAND sh -c "sleep 2; mkdir -p '{libtorch}'; touch downloaded" VERBATIM)
            add_custom_command(OUTPUT uses.o DEPENDS downloaded
                COMMAND sh -c "touch uses.o" -isystem "{libtorch}/torch/include" -o uses.o -c ${{CMAKE_SOURCE_DIR}}/one.cpp
                VERBATIM)
            add_custom_target(uses ALL DEPENDS uses.o)
            """)
        self.environment["KVSCOPE_JOBS"] = "2"
        lines = self.drawn(120)
        waits = r"kvscope: waiting for the download of libtorch \d+ % · \d+ s left · 43 % of 530.6 MB"
        self.assertTrue(any(re.fullmatch(waits, line) for line in lines), lines)


if __name__ == "__main__":
    unittest.main()
