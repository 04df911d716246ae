#!/usr/bin/env python3
"""Checks the compiled kernels of kernels/cuda/*.cu on each architecture: no spilled registers, no local memory, and no more
shared memory per block than the default limit. Kernels that need more use Call::opted_in, which checks the limit of all cards
at compile time. Needs nvcc, but no card. The build keeps the output of ptxas next to the objects."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
OBJECTS = pathlib.Path("kernels/CMakeFiles/kvscope_cuda.dir/cuda").resolve()  # tests run in the build folder
NVCC = os.environ.get("KVSCOPE_NVCC")  # empty if the build compiles no kernels
ARCHITECTURES = (80, 86, 89, 90)
NEWER = (100,)  # only if the toolkit supports them
MOST_SHARED = 48 << 10  # default limit in bytes per block
MOST_ASKED = {80: 163 << 10, 86: 99 << 10, 89: 99 << 10, 90: 227 << 10, 100: 227 << 10}  # limit in bytes after opting in

KERNEL = re.compile(r"Compiling entry function '(?P<name>\w+)' for 'sm_(?P<architecture>\d+)\w?'"
                    r".*?(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
                    r".*?Used (?P<registers>\d+) registers(?P<more>[^\n]*)", re.S)


def kernels_in(compiled):
    """Returns the resources of each kernel and architecture of an object file."""
    found = []
    for match in KERNEL.finditer(compiled.with_name(f"{compiled.name}.ptxas").read_text()):
        shared = re.search(r"(\d+) bytes smem", match["more"])
        found.append({"name": match["name"], "architecture": int(match["architecture"]), "registers": int(match["registers"]),
                      "stack": int(match["stack"]), "spilled": int(match["stores"]) + int(match["loads"]),
                      "shared": int(shared[1]) if shared else 0})
    return found


def problems_of(kernels):
    told = []
    for kernel in kernels:
        where = f"{kernel['name']} for sm_{kernel['architecture']}"
        if kernel["spilled"]:
            told.append(f"{where} spills {kernel['spilled']} bytes")
        if kernel["stack"]:
            told.append(f"{where} has {kernel['stack']} bytes of local memory")
        if kernel["shared"] > MOST_SHARED:
            told.append(f"{where} takes {kernel['shared']} bytes of shared memory, more than {MOST_SHARED}")
    return told


class Build(unittest.TestCase):
    def test_the_kernels_are_checked_if_the_build_compiles_them(self):
        self.assertEqual(bool(NVCC), OBJECTS.is_dir())


@unittest.skipUnless(NVCC, "the build compiles no CUDA kernels")
class Resources(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        known = subprocess.run([NVCC, "--list-gpu-arch"], capture_output=True, text=True, check=True).stdout.split()
        cls.architectures = [*ARCHITECTURES, *(each for each in NEWER if f"compute_{each}" in known)]

    def test_each_kernel_is_compiled_for_each_architecture_without_spilling(self):
        sources = sorted((SOURCE / "kernels" / "cuda").glob("*.cu"))
        self.assertTrue(sources)
        for source in sources:
            with self.subTest(source.name):
                kernels = kernels_in(OBJECTS / f"{source.name}.o")
                n_declared = source.read_text().count("__global__ ")
                for architecture in self.architectures:
                    n = len([each for each in kernels if each["architecture"] == architecture])
                    self.assertGreaterEqual(n, n_declared, f"sm_{architecture}")
                self.assertEqual(problems_of(kernels), [])

    def test_what_is_asked_for_beyond_the_usual_every_card_has(self):
        launch = (SOURCE / "kernels" / "cuda" / "launch.h").read_text()
        most = re.search(r"most_shared_bytes = (\d+) << 10;", launch)
        self.assertTrue(most)
        for architecture in self.architectures:
            self.assertLessEqual(int(most[1]) << 10, MOST_ASKED[architecture])
        self.assertIn("static_assert(sizeof(Shared) <= most_shared_bytes);", launch)
        self.assertEqual(launch.count("cudaFuncAttributeMaxDynamicSharedMemorySize"), 1)
        for source in sorted((SOURCE / "kernels" / "cuda").iterdir()):
            text = source.read_text()
            n_dynamic = len(re.findall(r"extern __shared__", text))
            self.assertEqual(len(re.findall(r"opted_in<", text)), n_dynamic, source.name)  # one for each kernel
            if source.name != "launch.h":
                self.assertNotIn("cudaFuncSetAttribute", text, source.name)

    def test_a_kernel_that_spills_or_indexes_local_memory_is_found(self):
        with tempfile.TemporaryDirectory(prefix="kvscope-test-") as folder:
            source = pathlib.Path(folder) / "wasteful.cu"
            source.write_text("__global__ void wasteful(float* out, const int* at, int n) {\n"
                              "    float values[64];\n"
                              "    for (int i = 0; i < 64; ++i) values[i] = out[i];\n"
                              "    for (int i = 0; i < n; ++i) values[at[i] & 63] += 1;\n"
                              "    for (int i = 0; i < 64; ++i) out[i] = values[i];\n"
                              "}\n"
                              "__global__ void greedy(float* out) {\n"
                              "    __shared__ float tile[12288];\n"
                              "    tile[threadIdx.x] = out[threadIdx.x];\n"
                              "    __syncthreads();\n"
                              "    out[threadIdx.x] = tile[out[0] > 0 ? 12287 - threadIdx.x : 0];\n"
                              "}\n")
            compiled = source.with_suffix(".o")
            subprocess.run([sys.executable, SOURCE / "cmake" / "keep_ptxas_output.py", NVCC, "-Xptxas=-v", "-c", source,
                            "-o", compiled], check=True)
            told = problems_of(kernels_in(compiled))
        self.assertTrue(any("wasteful" in line and "local memory" in line for line in told), told)
        self.assertFalse(any("greedy" in line for line in told), told)  # exactly 48 KiB


if __name__ == "__main__":
    unittest.main()
