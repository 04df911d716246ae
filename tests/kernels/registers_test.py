#!/usr/bin/env python3
"""Checks that the innermost loops of products and of prefill attention keep their sums in registers. A sum on the stack halves
a loop's speed, and edits far from the loop can cause that. The test reads g++'s output for each SIMD level, so the processor
need not support the level."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

OBJECTS = pathlib.Path("kernels/CMakeFiles/kvscope_kernels.dir/cpu/levels").resolve()  # tests run in the build folder
LEVELS = ("avx2", "avx512", "avx512_bf16")
HELD = re.compile(r"\b(AttentionBlockBody|LinearPanel|LinearDirect)<")
PRODUCT = re.compile(r"v(fn?madd|dpbf16)")
ON_STACK = re.compile(r"vmov\w+\s+%[xyz]mm\d+,\S*\(%r[sb]p")
MOST_OF_A_LOOP = 80  # instructions; longer loops compute exponentials, whose constants may be on the stack


def functions_in(listing):
    """Yields (name, [(address, instruction)]) for each function of objdump's listing."""
    name, instructions = "", []
    for line in listing.splitlines():
        if heading := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            if name:
                yield name, instructions
            name, instructions = heading[1], []
        elif found := re.match(r"\s+([0-9a-f]+):\s+(.*)$", line):
            instructions.append((int(found[1], 16), found[2]))
    if name:
        yield name, instructions


def innermost_loops(instructions):
    """Yields the instructions from a jump's target to the jump, if there is no other jump between them."""
    places = {address: i for i, (address, _) in enumerate(instructions)}
    for end, (_, text) in enumerate(instructions):
        jump = re.match(r"j\w+\s+([0-9a-f]+)", text)
        begin = places.get(int(jump[1], 16)) if jump else None
        if begin is None or begin >= end:
            continue
        loop = [one for _, one in instructions[begin:end + 1]]
        if not any(one.startswith("j") for one in loop[:-1]):
            yield loop


def loops_of_products(listing):
    """Yields (function, number of products, number of vector stores to the stack) for each checked loop."""
    for name, instructions in functions_in(listing):
        for loop in innermost_loops(instructions):
            n = sum(bool(PRODUCT.match(one)) for one in loop)
            if n >= 9 and len(loop) <= MOST_OF_A_LOOP:
                yield name, n, sum(bool(ON_STACK.match(one)) for one in loop)


def listing_of(path):
    done = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-C", path], capture_output=True, text=True, check=True)
    return done.stdout


def why_not_here():
    """Returns why this build cannot be checked: it must be an optimized build by g++ for x86-64."""
    cache = pathlib.Path("CMakeCache.txt").read_text()
    of = {name: (re.search(rf"^{name}:\w+=(.*)$", cache, re.M) or ["", ""])[1]
          for name in ("CMAKE_BUILD_TYPE", "CMAKE_CXX_COMPILER")}
    if os.uname().machine != "x86_64" or "clang" in of["CMAKE_CXX_COMPILER"] or not shutil.which("g++"):
        return "not g++ for x86-64"
    if of["CMAKE_BUILD_TYPE"] != "Release":
        return f"a build of type {of['CMAKE_BUILD_TYPE']}"
    return "" if shutil.which("objdump") else "objdump is not installed"


@unittest.skipIf(why_not_here(), why_not_here())
class Registers(unittest.TestCase):
    def test_sums_of_products_are_not_kept_on_the_stack(self):
        for level in LEVELS:
            loops = [one for one in loops_of_products(listing_of(OBJECTS / f"level_{level}.cpp.o")) if HELD.search(one[0])]
            for held in "AttentionBlockBody", "LinearPanel", "LinearDirect":
                self.assertTrue([name for name, _, _ in loops if f"{held}<" in name], f"{level}: no loop of {held} was found")
            for name, n, stored in loops:
                with self.subTest(level, function=name[:200], products=n):
                    self.assertEqual(stored, 0)

    def test_a_loop_that_needs_more_registers_than_there_are_is_found(self):
        sums = range(20)
        text = ("#include <immintrin.h>\nvoid f(const float* a, long n, float* out) {\n"
                + "".join(f"__m256 s{i} = _mm256_setzero_ps();\n" for i in sums)
                + "for (long k = 0; k < n; ++k) {\n"
                + "".join(f"s{i} = _mm256_fmadd_ps(_mm256_loadu_ps(a + {160 * i} + 8 * k), _mm256_set1_ps(a[k]), s{i});\n"
                          for i in sums)
                + "}\n" + "".join(f"_mm256_storeu_ps(out + {8 * i}, s{i});\n" for i in sums) + "}\n")
        with tempfile.TemporaryDirectory(prefix="kvscope-test-") as folder:
            source = pathlib.Path(folder) / "greedy.cpp"
            source.write_text(text)
            made = source.with_suffix(".o")
            subprocess.run(["g++", "-O3", "-mavx2", "-mfma", "-c", source, "-o", made], check=True)
            loops = list(loops_of_products(listing_of(made)))
        self.assertTrue(any(stored > 0 for _, _, stored in loops), loops)


if __name__ == "__main__":
    unittest.main()
