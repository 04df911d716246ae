"""Runs the commands in README.md and docs/: first the README's first command literally, without and with a display, then every
command of each page in a fresh folder. All share one trace of the demo.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import tempfile
import time
import unittest

from documented_commands import commands_of_page
from program import NEEDS_ENGINE, PROGRAM, SOURCE, has_command

BUILD = SOURCE / "build" / "release"
PAGES = [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]
PATIENCE = 300  # seconds, on a busy machine
# Options that shorten each command, so that all commands take seconds.
CHARACTERS = 2000  # of a text; makes budgets of 64 entries and of 10 % larger than the policies' windows
SHORTER = {
    "run": {"-n": "4"},
    "eval": {"--lengths": "400", "--depths": "0.5", "--samples": "1", "-n": "4"},
    "profile-heads": {"--lengths": "300", "--depths": "0.5", "--samples": "1"},
    "train-echo": {"--tokens": "1500"},
    "analyze": {"--trials": "1"},
    "view": {"--screenshot": "window.png"},
}


def default_model():
    return pathlib.Path(os.environ["KVSCOPE_DEFAULT_MODEL"])


def environment(folder, display=None):
    """Returns a user's environment, with settings in the folder and `kvscope` as a command."""
    mine = {name: value for name, value in os.environ.items()
            if not name.startswith("KVSCOPE_") and name not in ("DISPLAY", "WAYLAND_DISPLAY", "PYTHONPATH")}
    mine.update(XDG_CONFIG_HOME=str(folder / "config"), XDG_STATE_HOME=str(folder / "state"), LC_ALL="C.UTF-8")
    mine.setdefault("XDG_CACHE_HOME", str(pathlib.Path.home() / ".cache"))
    mine["PATH"] = f"{folder.parent / 'bin'}:{mine['PATH']}"
    if display:
        mine["DISPLAY"] = display
    return mine


def wait_for(what, condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.2)
    raise AssertionError(f"waited {seconds} s for {what}")


class Display:
    """A virtual X server whose picture can be read."""

    WIDTH, HEIGHT = 1400, 900

    def __init__(self, test_class, folder):
        folder.mkdir()
        reading, writing = os.pipe()
        server = subprocess.Popen(["Xvfb", "-displayfd", str(writing), "-noreset", "-fbdir", str(folder), "-screen",
                                   "0", f"{self.WIDTH}x{self.HEIGHT}x24"], pass_fds=[writing], stderr=subprocess.DEVNULL)
        test_class.addClassCleanup(server.wait)
        test_class.addClassCleanup(server.terminate)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            self.name = f":{pipe.readline().strip()}"
        self.frame = folder / "Xvfb_screen0"

    def colors(self):
        """Returns the number of pixels of each color in the server's X window dump."""
        data = self.frame.read_bytes()
        header = struct.unpack(">25I", data[:100])
        width, height, bits, line, n_colors = header[4], header[5], header[11], header[12], header[19]
        pixels = data[header[0] + 12 * n_colors:]
        found = {}
        for row in range(0, height, 3):
            for pixel in struct.unpack(f"<{width}I", pixels[row * line:row * line + width * bits // 8]):
                found[pixel] = found.get(pixel, 0) + 1
        return found

    def xdotool(self, *arguments):
        done = subprocess.run(["xdotool", *arguments], env={**os.environ, "DISPLAY": self.name}, capture_output=True,
                              text=True, check=False)
        return done.stdout


def set_option(words, name, value):
    """Returns the command with this value of the option."""
    if name in words:
        at = words.index(name)
        return [*words[:at + 1], value, *words[at + 2:]]
    return [*words, name, value]


def shortened(command):
    """Returns a shortened version of the command."""
    words = shlex.split(command)
    if words[0] != "kvscope" or words[1] not in SHORTER or "--help" in words:
        return command
    for name, value in SHORTER[words[1]].items():
        is_there = name in words
        if (name == "--screenshot" and is_there) or (name == "--trials" and "--queries" not in words):
            continue
        if "ruler" in words and name in ("--lengths", "--depths"):  # its prompts have a smallest length and no depth
            continue
        if "--depth-intervals" in words and name == "--depths":  # only one of both is allowed
            continue
        if "timing" in words and name != "--lengths":  # it has no depths, samples or -n
            continue
        words = set_option(words, name, value)
    if "timing" in words:
        words = set_option(words, "--repeat", "1")
    return shlex.join(words)


class CommandsOnAPage(unittest.TestCase):
    """The extraction finds the commands on a page."""

    def test_blocks_inline_and_marks(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text("""
Text with `kvscope run` and `kvscope inspect t.h5` and `kvscope export TRACE -o x.pdf`.

<!-- not run: it would take a day -->
```sh
kvscope a --b    # why
```

<!-- not run: `kvscope b`: no model -->
```sh
kvscope b \\
    --c "d # e"  # why
kvscope c …
kvscope d  # why
```

```cpp
kvscope e;
```
<!-- not run: `kvscope view`: no -->
`kvscope view
x.h5` and `kvscope viewer x.h5`.
""", encoding="utf-8")
            found = [(command.line, command.text, command.not_run) for command in commands_of_page(page)]
        self.assertEqual(found, [(2, "kvscope inspect t.h5", ""), (6, "kvscope a --b", "it would take a day"),
                                 (11, 'kvscope b --c "d # e"', "no model"), (13, "kvscope c …", ""),
                                 (14, "kvscope d", ""),
                                 (21, "kvscope view x.h5", "no"), (22, "kvscope viewer x.h5", "")])

    def test_shortened(self):
        self.assertEqual(shortened("kvscope run -n 64 -o x.h5"), "kvscope run -n 4 -o x.h5")
        self.assertEqual(shortened("kvscope view x.h5"), "kvscope view x.h5 --screenshot window.png")
        self.assertEqual(shortened("cat a > b"), "cat a > b")


def why_not_here():
    """Returns why the script cannot run in this checkout, or an empty text."""
    if pathlib.Path(PROGRAM).resolve() != (BUILD / "bin" / "kvscope").resolve():
        return "the tests of another build than scripts/kvscope's"
    for tool in "Xvfb", "xdotool":
        if not shutil.which(tool):
            return f"{tool} is missing"
    # The script builds missing targets. During the tests it would build everything in parallel.
    plan = subprocess.run(["ninja", "-C", str(BUILD), "-n", "kvscope"], capture_output=True, text=True, check=False)
    steps = [line for line in plan.stdout.splitlines() if line.startswith("[") and "globbed" not in line]
    return f"build/release is not built: {len(steps)} steps are left" if plan.returncode or len(steps) > 1 else ""


@NEEDS_ENGINE
@unittest.skipUnless(has_command("view"), "this build has no window")
class Documentation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = why_not_here()
        if reason:
            raise unittest.SkipTest(reason)
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="kvscope-docs-"))
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        (cls.root / "bin").mkdir()
        (cls.root / "bin" / "kvscope").symlink_to(PROGRAM)
        cls.display = Display(cls, cls.root / "display")
        commands = commands_of_page(PAGES[0])
        cls.first = commands[0].text
        cls.here = cls.root / "demo"
        cls.here.mkdir()
        cls.done = cls.typed(cls.first, cls.here)

    @staticmethod
    def as_typed(command):
        """Returns the command with absolute paths for files in the checkout."""
        return f"{SOURCE}/{command}" if command.startswith("scripts/") else command

    @classmethod
    def typed(cls, command, folder, display=None, **variables):
        return subprocess.run(["bash", "-c", cls.as_typed(command)], cwd=folder, stdin=subprocess.DEVNULL,
                              env={**environment(folder, display), **variables}, capture_output=True, text=True,
                              timeout=PATIENCE, check=False)

    def test_1_the_first_command_without_a_display(self):
        said = f"{self.done.stdout}\n{self.done.stderr}"
        self.assertEqual(self.first, "scripts/kvscope")
        self.assertEqual(self.done.returncode, 0, said)
        self.assertIn("no display", self.done.stderr)
        table, _, files = self.done.stdout.partition("Trace and figures:")
        self.assertIn("asked: ", table)  # table and answers come before the figures
        for run in "full", "snapkv @ 64", "oracle @ 256":
            self.assertGreaterEqual(table.count(run), 2, said)  # in the table and before its answer
        written, _, left_out = files.partition("Omitted")
        self.assertIn("task-scores: ", left_out)
        self.assertNotIn("task-scores", written)
        for name in written.split():
            self.assertGreater((self.here / name).stat().st_size, 0, name)
        figures = self.typed("kvscope figures --format csv", self.here).stdout.splitlines()[1:]
        reasons = dict(re.findall(r"([\w-]+): (.*)", left_out))
        for figure in figures:
            name = figure.partition(",")[0]
            if f"kvscope-demo/demo-{name}.pdf" in written.split():
                self.assertNotIn(name, reasons)
            else:  # the reason names a command that adds the data
                self.assertRegex(reasons[name], r"run a policy|kvscope eval", name)
        self.assertGreaterEqual(len(written.split()), len(figures) - 5, said)

    def test_2_the_first_command_with_a_display(self):
        fresh = self.root / "fresh"
        fresh.mkdir()
        for folder in fresh, self.here:  # first without the demo's trace, then with it
            with self.subTest(folder.name):
                self.open_look_and_quit(folder)
        self.assertFalse((fresh / "kvscope-demo" / "demo.h5").exists())

    def open_look_and_quit(self, folder):
        log = folder / "log"
        with open(log, "w", encoding="utf-8") as out:
            program = subprocess.Popen(["bash", "-c", f"exec {self.as_typed(self.first)}"], cwd=folder, stdout=out,
                                       stderr=out, stdin=subprocess.DEVNULL,
                                       env=environment(folder, self.display.name))
        self.addCleanup(program.kill)
        find = lambda: self.display.xdotool("search", "--onlyvisible", "--name", "kvscope").split()
        window = wait_for("a window", lambda: program.poll() is not None or find())
        self.assertIsNone(program.poll(), log.read_text())
        window = window[-1]

        def is_drawn():
            colors = self.display.colors()
            return len(colors) > 60 and max(colors.values()) < 0.97 * sum(colors.values())

        wait_for("a picture", is_drawn)
        for _ in range(10):  # a busy machine may miss a key
            self.display.xdotool("windowfocus", window)
            for _ in range(2):  # during a run, the first attempt to quit asks and the second confirms
                self.display.xdotool("keydown", "ctrl")
                time.sleep(0.2)
                self.display.xdotool("key", "q")
                time.sleep(0.3)
                self.display.xdotool("keyup", "ctrl")
                time.sleep(0.3)
            try:
                program.wait(6)
                break
            except subprocess.TimeoutExpired:
                continue
        self.assertEqual(program.wait(PATIENCE), 0, log.read_text())

    def test_3_every_command_of_the_pages(self):
        """Runs pages in parallel, one per processor, and the commands of a page in order."""
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for page, outcomes in zip(PAGES, pool.map(self.run_page, PAGES)):
                for command, done in outcomes:
                    with self.subTest(page=page.name, line=command.line, command=command.text):
                        self.assertEqual(done.returncode, 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}")

    def run_page(self, page):
        commands = self.to_run(page)
        if not commands:
            return []
        folder = self.root / page.stem
        self.fill(folder)
        return [(command, self.typed_in_time(shortened(command.text), folder)) for command in commands]

    def typed_in_time(self, command, folder):
        try:
            return self.typed(command, folder, self.display.name, HOME=str(folder))
        except subprocess.TimeoutExpired as late:  # the page's other commands still run
            return subprocess.CompletedProcess(command, 124, "", str(late))

    def to_run(self, page):
        """Runs each command once; blocks first, because they make the files that paragraphs use."""
        found = [command for command in commands_of_page(page) if not command.not_run and command.text != self.first]
        found.sort(key=lambda command: command.inline)
        first = {}
        for command in found:
            first.setdefault(command.text, command)
        return list(first.values())

    def test_4_what_is_not_run_says_why(self):
        for page in PAGES:
            for command in commands_of_page(page):
                if command.not_run:
                    self.assertGreater(len(command.not_run), 10, f"{page.name}:{command.line} {command.text}")

    def fill(self, folder):
        """Makes the files that the pages assume: a text, traces and a user's model."""
        folder.mkdir()
        for text in (SOURCE / "assets").rglob("*.txt"):  # only the beginning of each, to save time
            copy = folder / text.relative_to(SOURCE)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text.read_text(encoding="utf-8")[:CHARACTERS], encoding="utf-8")
        shutil.copy(folder / "assets" / "demo" / "demo_context.txt", folder / "report.txt")
        (folder / "texts").mkdir()
        for name in "one.txt", "two.txt":
            (folder / "texts" / name).write_text(f"{name}: " + 20 * "The ladder is red, and the door is green. ")
        question = {"context": 20 * "The ladder is red. ", "question": "Which color has the ladder?", "answers": ["red"]}
        (folder / "questions.jsonl").write_text(2 * (json.dumps(question) + "\n"))
        demo = self.here / "kvscope-demo" / "demo.h5"
        (folder / "kvscope-demo").mkdir()
        os.link(demo, folder / "kvscope-demo" / "demo.h5")
        names = ["demo.h5", "mine.h5", "theirs.h5", "a.h5", "b.h5", "t.h5"]
        if folder.name != "README":  # its first command makes the trace
            names.append("report.h5")
        for name in names:  # copies, because `export` refuses one trace under two names
            shutil.copy(demo, folder / name)
        model = default_model()
        (folder / "model.Q4_K_M.gguf").symlink_to(model)
        (folder / "models").mkdir()
        (folder / "models" / model.name).symlink_to(model)


if __name__ == "__main__":
    unittest.main()
