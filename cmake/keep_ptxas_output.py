"""Compiles CUDA kernels and writes the output of `ptxas -v`, the resources of each kernel, to OBJECT.ptxas.

usage: keep_ptxas_output.py COMPILER… -o OBJECT
"""

import pathlib
import subprocess
import sys

done = subprocess.run(sys.argv[1:], stderr=subprocess.PIPE)
if done.returncode == 0:  # warnings are errors, so only notes are not printed
    pathlib.Path(sys.argv[sys.argv.index("-o") + 1] + ".ptxas").write_bytes(done.stderr)
else:
    sys.stderr.buffer.write(done.stderr)
sys.exit(done.returncode)
