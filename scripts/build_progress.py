#!/usr/bin/env python3
"""Configures a preset if needed, builds targets, and shows one line with the share done and the time left.

usage: build_progress.py [--tests] [--elapsed SECONDS] PRESET [TARGET…]
       build_progress.py --record PRESET

scripts/build calls this file. On a terminal, the line is overwritten; a log gets a line every 15 seconds. The messages of
ninja and the compilers are shown completely, those of CMake only if it fails (all are in build/PRESET/configure.log). The
last line of a failure names the cause and the remedy. The exit code is 130 after Ctrl+C. KVSCOPE_JOBS sets the number of
parallel compilers. --record prints the steps of the last build as in tests/build/cold_build.txt.

The time left comes from a simulation of the remaining steps on the same number of processors. The expected cost of a step
depends on the sizes of its sources, so it needs no table of files. Finished steps show how fast the machine is and how many
results come from the compiler cache.
"""

import argparse
import collections
import contextlib
import heapq
import os
import pathlib
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "cmake"))
sys.dont_write_bytecode = True  # a new file in the source folder would count as a change
from fetch import cache_folder  # noqa: E402

MARK = "\x01"  # begins the lines in which ninja reports a finished step
COLD_SECONDS = 1050  # expected cost of all steps of scripts/kvscope, before the configuration shows the steps
CONFIGURE_SECONDS = 20
BUILD_MB, COMPILER_CACHE_MB = 950, 150  # of a release build
LIBTORCH_MB, PACKAGES_MB = 1200, 500  # with the archives from which they are unpacked


# ---- expected costs

# name: output; kind: C, C++, header (precompiled), archive or link; own, headers: bytes of sources and of headers;
# library: not our code; torch: includes libtorch's headers; waits: starts after libtorch's download;
# after: the precompiled header that the step reads, or ""
Step = collections.namedtuple("Step", "name kind own headers optimization library torch waits after")


def cost(step):
    """Seconds on an idle core of a server from 2020 without compiler cache. The factors fit tests/build/cold_build.txt."""
    own, headers = step.own / 1000, step.headers / 1000
    if step.kind in ("archive", "link"):
        return 0.3
    if step.kind == "header":
        return 32 if step.torch else 7
    if step.kind == "C":
        return 0.2 + 0.01 * own
    if step.library:
        return min(12, 0.6 * own**0.5)
    rate = 0.1 if step.optimization in "01g" else 0.15
    if not step.torch:
        return 1 + rate * own + (0.13 if step.optimization == "3" else 0.01) * headers
    return (5 if step.after else 10) + 1.5 * rate * own + 0.01 * headers


class Sources:
    """Sizes of files and of all files that they include by a quoted name."""

    INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<(?:torch|ATen)/)', re.MULTILINE)

    def __init__(self):
        self.known = {}

    def read(self, file):
        """Returns the size of a file, the quoted names that it includes, and whether it includes libtorch."""
        if file not in self.known:
            try:
                text = pathlib.Path(file).read_text(errors="replace")
            except OSError:
                text = ""
            names = self.INCLUDE.findall(text)
            self.known[file] = len(text), [name for name in names if name], "" in names
        return self.known[file]

    def measure(self, file, folders):
        """Returns the bytes of sources and of headers, and whether libtorch's headers are included."""
        seen, todo = set(), [file]
        while todo:
            file = todo.pop()
            if file in seen:
                continue
            seen.add(file)
            for name in self.read(file)[1]:
                places = (os.path.join(folder, name) for folder in (os.path.dirname(file), ROOT, *folders))
                found = next(filter(os.path.isfile, places), None)
                if found:
                    todo.append(os.path.realpath(found))
        own = sum(self.read(file)[0] for file in seen if file.endswith((".cpp", ".c", ".cxx", ".cu")))
        return own, sum(self.read(file)[0] for file in seen) - own, any(self.read(file)[2] for file in seen)


def words_of(command):
    return shlex.split(command) if "'" in command or '"' in command or "\\" in command else command.split()


def step_of(words, build, sources):
    """Returns the step that the words of a command of ninja perform, or None if its time does not matter."""
    after_word = dict(zip(words, words[1:]))
    output = after_word.get("-o", "")
    if words[-4:-3] + words[-2:-1] != ["-o", "-c"]:
        if "qc" in words:
            return Step(after_word["qc"], "archive", 0, 0, "", False, False, False, "")
        is_linked = output.startswith("bin/") or output.endswith(".so")
        return Step(output, "link", 0, 0, "", False, False, False, "") if is_linked else None
    source = os.path.realpath(build / words[-1])
    kind = "C" if source.endswith(".c") else "C++"
    after = after_word.get("-include", "")
    after = os.path.relpath(f"{after}.gch", build) if after.endswith("/cmake_pch.hxx") else ""
    if output.endswith(".gch"):
        kind, source, after = "header", os.path.realpath(build / output[:-4]), ""
    folders = [word[2:] if word.startswith("-I") else word for before, word in zip(words, words[1:])
               if word.startswith("-I") or before == "-isystem"]
    optimization = next((word[2:] for word in reversed(words) if re.fullmatch(r"-O[\dg]", word)), "0")
    own, headers, torch = sources.measure(source, [folder for folder in folders if folder.startswith(str(build))])
    waits = any(folder.endswith("/torch/include") for folder in folders)
    return Step(output, kind, own, headers, optimization, "-w" in words, torch, waits, after)


def plan(build, targets):
    """Returns the commands to run, their steps in the order of their start, and the folder of libtorch if they need it."""
    # With an absolute path, ninja does not recognize its own file, so that it plans the targets instead of an update.
    done = subprocess.run(["ninja", "-f", build / "build.ninja", "-n", "-v", *targets], cwd=build, text=True,
                          capture_output=True, env={**os.environ, "NINJA_STATUS": MARK})
    commands = [words_of(line[1:]) for line in done.stdout.splitlines() if line.startswith(MARK)]
    sources = Sources()
    steps = [step for step in (step_of(words, build, sources) for words in commands) if step]
    # Of the steps that can start, ninja starts the first in its file.
    outputs = re.findall(r"^build ([^\s:|]+)", (build / "build.ninja").read_text(), re.MULTILINE)
    places = {output: i for i, output in enumerate(outputs)}
    steps.sort(key=lambda step: places.get(step.name, 0))
    headers = next((word for words in commands for word in words if word.endswith("/torch/include")), None)
    return commands, steps, headers and pathlib.Path(headers).parents[1]


# ---- the time left

class Estimate:
    """The time left of a build, from the expected costs of its steps and the times of the finished ones."""

    def __init__(self, steps, jobs):
        self.steps, self.jobs = steps, jobs
        self.costs = {step.name: cost(step) for step in steps}
        self.done = {}  # name: (start, end), in seconds since the first step began

    def finish(self, name, start, end):
        if name in self.costs:
            self.done[name] = start, end

    def rates(self, now):
        """Returns seconds for each unit of cost, the share of steps in the compiler cache, and the seconds of such a step."""
        times = [(self.costs[name], end - start, end) for name, (start, end) in self.done.items()]
        speed = 1.0
        recent = now - max(60, 0.5 * now)  # because other programs slow the machine down for some of the time
        for _ in range(3):
            cached = [taken < max(0.3, 0.15 * speed * expected) for expected, taken, _ in times]
            compiled = [time for time, hit in zip(times, cached) if not hit and time[2] >= recent]
            speed = (10 + sum(taken for _, taken, _ in compiled)) / (10 + sum(expected for expected, _, _ in compiled))
        # The share comes from recent steps, because changed sources are not spread evenly, and from expensive steps, because
        # cheap ones show little difference.
        weights = [(expected**0.4 * (expected >= 2 and end >= now - max(20, 0.6 * now)), hit)
                   for (expected, _, end), hit in zip(times, cached)]
        share = sum(weight for weight, hit in weights if hit) / (0.5 + sum(weight for weight, _ in weights))
        hits = [taken for (_, taken, _), hit in zip(times, cached) if hit]
        return speed, share, (0.2 + sum(hits)) / (1 + len(hits))

    def left(self, now, download=0.0):
        """Returns the expected seconds until the last step ends, and the step that has run longest or is the next to run.

        `download`: seconds until libtorch is available.
        """
        speed, share, cached = self.rates(now)
        workers = [0.0] * self.jobs  # since when a processor has worked on a step that is not finished
        for start, end in sorted(self.done.values()):
            before = [i for i in range(self.jobs) if workers[i] <= start + 0.1]
            i = max(before, key=workers.__getitem__) if before else min(range(self.jobs), key=workers.__getitem__)
            workers[i] = end
        workers = [since - now for since in workers]
        heapq.heapify(workers)
        todo = [step for step in self.steps if step.name not in self.done and step.kind not in ("archive", "link")]
        end = {name: end - now for name, (_, end) in self.done.items()}
        end.update((step.name, float("inf")) for step in todo)
        running, first = None, todo[0] if todo else None
        while todo:
            free = heapq.heappop(workers)
            starts = [max(free, end.get(step.after, free), download if step.waits and download else free) for step in todo]
            i = next((i for i, start in enumerate(starts) if start <= max(free, 0)), None)
            if i is None:
                heapq.heappush(workers, min(starts))
                continue
            step, start = todo.pop(i), starts[i]
            if start <= 0:
                running = running or step
            compiled = speed * self.costs[step.name]
            if start < -2 * cached:  # running, and not in the cache
                end[step.name] = max(start + compiled, 0.25 * compiled)
            else:
                end[step.name] = start + share * min(cached, compiled) + (1 - share) * compiled
            heapq.heappush(workers, end[step.name])
        links = any(step.kind == "link" and step.name not in self.done for step in self.steps)
        return max([0.0, *end.values()]) + links, running or first


# ---- the line

def duration(seconds):
    if seconds >= 100:
        return f"{round(seconds / 60)} min"
    return f"{max(5, 5 * round(seconds / 5))} s"


class Line:
    """Shows the step, the share done and the time left on stderr."""

    LOG_SECONDS = 15

    def __init__(self, elapsed):
        self.started = time.monotonic() - elapsed
        self.terminal = sys.stderr.isatty()
        self.share = 0
        self.logged = time.monotonic() - self.LOG_SECONDS + 1  # steps of less than a second are not logged
        self.drawn = False

    def show(self, step, left=None, detail=""):
        text = f"kvscope: {step}"
        if left is not None:
            elapsed = time.monotonic() - self.started
            self.share = max(self.share, min(99, round(100 * elapsed / (elapsed + left + 0.1))))  # never falls
            text += f" {self.share} % · {duration(left)} left"
        if detail:
            text += f" · {detail}"
        if self.terminal:
            width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
            print(f"\r\033[K{text[:width - 1]}", end="", file=sys.stderr, flush=True)
            self.drawn = True
        elif time.monotonic() - self.logged >= self.LOG_SECONDS:
            print(text, file=sys.stderr, flush=True)
            self.logged = time.monotonic()

    def clear(self):
        if self.drawn:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
            self.drawn = False

    def say(self, text):
        self.clear()
        print(text, file=sys.stderr, flush=True)


# ---- causes of failures

class Failure(Exception):
    """The message is one sentence: CAUSE; REMEDY."""


def free_mb(folder):
    """Free megabytes of the file system that contains the folder, which need not exist yet."""
    folder = pathlib.Path(folder)
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free // 1_000_000


CAUSES = [
    (r"^(?:ninja: error: )?kvscope: (.+; .+)$", "{0}"),  # cmake/fetch.py
    (r"Killed signal terminated program|std::bad_alloc|virtual memory exhausted|[Cc]annot allocate memory|out of memory",
     "the compiler ran out of memory; close other programs and repeat the command with KVSCOPE_JOBS=1 before it"),
    (r"([^\s'\":]+)'?:? [Rr]ead-only file system", "{0} is on a read-only file system; make it writable, or use a copy of the "
     "source folder and set KVSCOPE_CACHE to a writable folder"),
    (r"([^\s'\":]+)'?:? [Pp]ermission denied", "access to {0} is denied; change its owner or permissions and repeat the command"),
    (r"No CMAKE_(?:C|CXX)_COMPILER could be found|Could not find compiler|(?:c\+\+|g\+\+|cc|gcc): not found"
     r"|is not able to compile a simple test program", "the C++ compiler is missing or does not work; install g++ 12 or newer"),
    (r"CMake was unable to find a build program|ninja: (?:command )?not found", "ninja is missing; install ninja-build"),
    (r"CMake Error.*\n.*\n?.*Could NOT find (\S+)", "CMake does not find {0}; install it, under Debian by scripts/setup"),
    (r"package configuration file provided by\s+\"(\w+)\"", "CMake does not find {0}; install it, under Debian by scripts/setup"),
    (r"required packages were not found:\s+- (\S+)", "CMake does not find {0}; install it, under Debian by scripts/setup"),
    (r"^(?:In file included from )?([^:\n]+):\d+:\d+: (?:fatal )?error:", "{0} does not compile; correct the error above"),
    (r"undefined reference to|ld: error|mold: (?:fatal|error)", "the linker failed; correct the error above"),
]


def cause(output, otherwise):
    """Returns one sentence with the cause that the output of a program contains, or with the cause `otherwise`."""
    least = min((cache_folder(), ROOT / "build", tempfile.gettempdir()), key=free_mb)
    if re.search(r"No space left on device|Disk full|Disk quota exceeded|Errno 28", output) or free_mb(least) < 10:
        return f"the disk of {least} is full, {free_mb(least)} MB are free; free some space and repeat the command"
    for pattern, sentence in CAUSES:
        match = re.search(pattern, output, re.MULTILINE)
        if match:
            return sentence.format(*match.groups())
    return f"{otherwise}; correct the error and repeat the command"


def check_places(build, first):
    """Fails if the cache is read-only or, before the first build, if a disk is too small."""
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=cache).close()
    except OSError as error:
        raise Failure(f"{cache} is not writable ({error.strerror}); make it writable, or set KVSCOPE_CACHE to a folder for "
                      "downloads and compiler results") from error
    if not first:
        return
    needs = collections.Counter()  # of each device
    size = sum(file.stat().st_size for file in build.rglob("*") if file.is_file()) // 1_000_000
    needs[build.stat().st_dev] += max(0, BUILD_MB - size)
    missing = [amount for name, amount in (("ccache", COMPILER_CACHE_MB), ("libtorch-*", LIBTORCH_MB),
                                           ("llama-source-*", PACKAGES_MB)) if not any(cache.glob(name))]
    needs[cache.stat().st_dev] += sum(missing)
    for folder in (build, cache):
        need = needs[folder.stat().st_dev]
        if free_mb(folder) < need:
            raise Failure(f"the disk of {folder} has {free_mb(folder)} MB free, the build needs {need} MB; free some space"
                          + (", or set KVSCOPE_CACHE to a folder on a larger disk" if folder == cache else ""))


# ---- steps

# Progress of cmake/fetch.py: what is downloaded, and the seconds left
PROGRESS = re.compile(r"kvscope: (?:waiting .*|(?:fetching|unpacking) [^:]*(?:: (\d.*), (\d+) s left|: pip [^:]*)?)$")


def run(command, folder, on_line, tick, environment=None):
    """Runs a command. Passes each line of its output to on_line and calls tick twice a second. Returns the exit code."""
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **(environment or {})}) as process, selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        rest, ticked = b"", 0.0
        try:
            while True:
                if selector.select(timeout=0.5):
                    data = os.read(process.stdout.fileno(), 1 << 16)
                    if not data:
                        break
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines:
                        on_line(line.decode(errors="replace"))
                if time.monotonic() - ticked >= 0.5:
                    tick()
                    ticked = time.monotonic()
            if rest:
                on_line(rest.decode(errors="replace"))
        except KeyboardInterrupt:
            process.terminate()  # also without a terminal that signals the whole group
            raise
    return process.returncode


def configure(build, preset, tests, line):
    # After a build with the same compiler cache, the remaining time shows only when steps finish.
    empty = not (build / ".ninja_log").exists() and not (cache_folder() / "ccache").exists()
    compiling = COLD_SECONDS / jobs_of(build)
    started = time.monotonic()
    output, step, detail, download = [], "configuring", "", 0

    def on_line(text):
        nonlocal step, detail, download
        output.append(text)
        fetched = re.match(r"kvscope: (fetching|unpacking) (\S+)(?: [^:]+: (.*), (\d+) s left)?", text)
        if fetched:
            step, detail, download = fetched[1], f"{fetched[2]} {fetched[3] or ''}", int(fetched[4] or 0)
        elif text.startswith("-- "):
            step, detail = "configuring", text[3:].strip()

    def tick():
        left = max(3, download, CONFIGURE_SECONDS - (time.monotonic() - started)) + compiling
        # Half of the steps need libtorch.
        line.show(step, max(left, download_left(build)[1] + compiling / 2) if empty else None, detail)

    command = ["cmake", "--preset", preset, f"-DKVSCOPE_TESTS={'ON' if tests else 'OFF'}"]
    try:
        failed = run(command, ROOT, on_line, tick) != 0
    except FileNotFoundError as error:
        raise Failure("cmake is missing; install cmake 3.25 or newer") from error
    finally:
        (build / "configure.log").write_text("\n".join(output) + "\n")
    if failed:
        shown = [text for text in output if not PROGRESS.match(text)]
        begin = next((i for i, text in enumerate(shown) if text.startswith(("CMake Error", "kvscope: "))), 0)
        line.say("\n".join(shown[begin:]))
        raise Failure(cause("\n".join(output), "configuring failed"))


def jobs_of(build):
    """The number of commands that ninja runs at the same time."""
    jobs = os.environ.get("KVSCOPE_JOBS")
    if jobs and not re.fullmatch("[1-9][0-9]*", jobs):
        raise Failure(f"KVSCOPE_JOBS is '{jobs}'; set it to a number of parallel compilers, such as 1")
    if not jobs:
        usage = subprocess.run(["ninja", "--help"], capture_output=True, text=True).stderr
        jobs = re.search(r"default=(\d+)", usage)[1]
    try:
        depth = re.search(r"pool compilers\s+depth = (\d+)", (build / "CMakeFiles" / "rules.ninja").read_text())
    except OSError:
        depth = None
    return min(int(jobs), int(depth[1]) if depth else int(jobs))


def download_left(build):
    """Returns what fetch.py does in the background, and the expected seconds until it ends."""
    try:
        last = (build / "fetch-later.log").read_text(errors="replace").rstrip().rpartition("\n")[2]
    except OSError:
        last = ""
    match = PROGRESS.match(last)
    return (match[1], int(match[2]) + 15) if match and match[2] else ("", 30)


def is_interrupted(output):
    return output[-1:] == ["ninja: build stopped: interrupted by user."]


def compile_targets(build, targets, line):
    output = []
    began = time.time()
    # Looks for new files, and configures again if the build's own files changed.
    if run(["ninja", "build.ninja"], build, output.append, lambda: line.show("configuring")) != 0:
        if is_interrupted(output):
            raise KeyboardInterrupt
        line.say("\n".join(output))
        raise Failure(cause("\n".join(output), "configuring failed"))
    commands, steps, torch = plan(build, targets)
    jobs = jobs_of(build)
    estimate = Estimate(steps, jobs)
    log = build / ".ninja_log"
    position = log.stat().st_size if log.exists() else 0
    started = time.monotonic()
    output = []

    def on_line(text):
        if text.startswith(MARK) or text == "ninja: no work to do." or PROGRESS.match(text):
            return
        output.append(text)
        line.say(text)

    def tick():
        nonlocal position
        if not commands:
            return
        with contextlib.suppress(FileNotFoundError), open(log, "rb") as file:  # ninja creates it after the first step
            file.seek(position)
            for entry in file:
                if not entry.endswith(b"\n"):
                    break
                position += len(entry)
                fields = entry.decode(errors="replace").split("\t")
                if len(fields) == 5:
                    estimate.finish(fields[3], int(fields[0]) / 1000, int(fields[1]) / 1000)
        downloads = torch is not None and not torch.exists()
        detail, download = download_left(build) if downloads else ("", 0)
        left, running = estimate.left(time.monotonic() - started, download)
        if running is None:
            line.show("linking", left)
        elif downloads and running.waits:
            line.show("waiting for the download of libtorch", left, detail)
        else:
            line.show("compiling", left, os.path.basename(running.name).replace(".o", "").replace(".gch", ""))

    command = ["ninja", "-v", *(["-j", str(jobs)] if os.environ.get("KVSCOPE_JOBS") else []), *targets]
    if run(command, build, on_line, tick, {"NINJA_STATUS": MARK}) != 0:
        if is_interrupted(output):
            raise KeyboardInterrupt
        raise Failure(cause("\n".join(output), "building failed"))
    for target in targets:  # A source saved during the build may be newer than the program, but not compiled yet.
        stamp = build / f".built-{target.replace('/', '-')}"
        stamp.touch()
        os.utime(stamp, (began, began))


def record(build):
    """Prints the steps of the target kvscope in the order of their start, with the seconds that they took."""
    short = lambda name: re.sub(r".*CMakeFiles/([^/]+\.dir)/(?:.*/)?", r"\1/", name)
    taken = {}
    for entry in (build / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, name, _ = entry.split("\t")
        taken[name] = int(start), (int(end) - int(start)) / 1000
    listed = subprocess.run(["ninja", "-t", "commands", "kvscope"], cwd=build, capture_output=True, text=True, check=True)
    sources = Sources()
    steps = [step_of(words_of(command), build, sources) for command in listed.stdout.splitlines()]
    steps = [step for step in steps if step and step.name in taken and step.kind != "archive"]
    for step in sorted(steps, key=lambda step: taken[step.name]):
        values = step._replace(name=short(step.name), after=short(step.after) or "-", optimization=step.optimization or "-",
                               library=int(step.library), torch=int(step.torch), waits=int(step.waits))
        print(*values, f"{taken[step.name][1]:.1f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tests", action="store_true")
    parser.add_argument("--elapsed", type=float, default=0)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("preset")
    parser.add_argument("targets", nargs="*")
    arguments = parser.parse_args()
    build = ROOT / "build" / arguments.preset
    if arguments.record:
        return record(build)

    def stop(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    line = Line(arguments.elapsed)
    try:
        fetched, cached = build / "fetched.txt", build / "CMakeCache.txt"
        had_tests = cached.exists() and "\nKVSCOPE_TESTS:BOOL=ON" in cached.read_text()
        complete = (build / "build.ninja").exists() and fetched.exists() and all(
            os.path.exists(place) for place in fetched.read_text().splitlines())
        if not complete or (arguments.tests and not had_tests):
            check_places(build, first=not any((build / "bin").glob("*")))
            # Without --tests, the setting of the tests does not change, because their libraries may be missing.
            configure(build, arguments.preset, arguments.tests or had_tests, line)
        compile_targets(build, arguments.targets, line)
        line.clear()
    except Failure as failure:
        line.say(f"kvscope: {failure}")
        sys.exit(1)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        line.say("kvscope: interrupted; repeat the command to continue")
        sys.exit(130)
    except OSError as error:
        text = f"{error.filename or build}: {error.strerror}"
        line.say(f"kvscope: {cause(text, text)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
