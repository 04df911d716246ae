"""Shared code of the command-line tests: starting kvscope, small models and prompts."""

import csv
import ctypes
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

import h5py

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# Each file defines one item of its name. The lists of kvscope are compared with the files.
POLICY_FILES = sorted(path.stem for path in (SOURCE / "policies").glob("*.cpp"))
FIGURE_FILES = sorted(path.stem.replace("_", "-") for path in (SOURCE / "analysis" / "figures").glob("*.cpp"))
MODELS = SOURCE / "tests" / "data" / "models"
PROGRAM = os.environ.get("KVSCOPE_BINARY", "")

HF_MODEL = MODELS / "llama3-gqa-sharded"  # 2 layers, 4 heads, 2 KV heads of 16
GGUF_MODEL = MODELS / "gguf-llama-quantised" / "model.gguf"  # of the same size
DEFAULT_MODEL = os.environ.get("KVSCOPE_DEFAULT_MODEL", "")  # may be missing; its prefill takes seconds
CONTEXT_LENGTH = 512  # of the two small models, in tokens of one or a few bytes

TEXT = ("The quick brown fox jumps over the lazy dog, and then the other fox in the northern forest finds the hen "
        "within the inner garden; there are ten of them, 12 in winter, and naturally all of them are thirsty.")

SECONDS_UNTIL_HUNG = 300


def environment(cache):
    """Returns a clean environment: no earlier caches, one thread, a small default model, no display."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    return {**inherited, "XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "1", "LC_ALL": "C.UTF-8",
            "KVSCOPE_DEFAULT_MODEL": str(GGUF_MODEL)}


def snapshot(path):
    """Returns every name and value of a trace except times."""
    def is_time(name):
        return name.endswith("_s") or name == "peak_bytes"
    found = {}
    with h5py.File(path, "r") as trace:
        def visit(name, item):
            found[name] = {k: str(v) for k, v in item.attrs.items() if not is_time(k)}
            if isinstance(item, h5py.Dataset):
                columns = [column for column in item.dtype.names or () if not is_time(column)]
                found[f"{name} values"] = (item[:][columns] if columns else item[:]).tolist()
        trace.visititems(visit)
    return repr(found)


def clock_model(path):
    """Returns a copy of the small model whose chat template contains the time."""
    shutil.copytree(HF_MODEL, path)
    config = json.loads((path / "tokenizer_config.json").read_text())
    config["chat_template"] = ("Now {{ strftime_now('%Y-%m-%d %H:%M:%S') }}. "
                               "{% for m in messages %}{{ m['content'] }}{% endfor %}")
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    return path


def die_with_parent():
    """Lets the kernel kill this process when its parent ends. An evaluation whose test was killed would fill the memory."""
    pr_set_pdeathsig = 1  # from sys/prctl.h
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def help_of(*command):
    """Returns the text of --help for kvscope or a command."""
    return subprocess.run([PROGRAM, *command, "--help"], capture_output=True, text=True, timeout=SECONDS_UNTIL_HUNG,
                          check=True).stdout


def has_command(name):
    """Whether this build has the command. A build without the engine only reads traces."""
    return any(line.split()[:1] == [name] for line in help_of().splitlines())


HAS_ENGINE = has_command("run")
NEEDS_ENGINE = unittest.skipUnless(HAS_ENGINE, "this build has no engine")


class ProgramTest(unittest.TestCase):
    """Gives each class a folder, in which `self.kvscope` starts kvscope."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="kvscope-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.cache = cls.folder / "cache"
        cls.prepare()

    @classmethod
    def prepare(cls):
        """Makes the files that all tests of the class use."""

    @classmethod
    def start(cls, *arguments, **options):
        options.setdefault("preexec_fn", die_with_parent)
        return subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=cls.folder, env=environment(cls.cache),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                encoding="utf-8", errors="strict", **options)

    @classmethod
    def run_program(cls, *arguments, text=None, variables=None, **options):
        """@param variables additional environment variables"""
        options |= {"input": text} if text is not None else {"stdin": subprocess.DEVNULL}
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=cls.folder,
                              env={**environment(cls.cache), **(variables or {})}, text=True, encoding="utf-8",
                              errors="strict", check=False, timeout=SECONDS_UNTIL_HUNG, **options)

    @classmethod
    def made(cls, *arguments, **options):
        """Runs a command that must succeed and returns its result."""
        done = cls.run_program(*arguments, **options)
        if done.returncode != 0:
            raise AssertionError(f"kvscope {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")
        return done

    @classmethod
    def make_trace(cls, output, *arguments, model=HF_MODEL, prompt=TEXT, n=8):
        """Runs `kvscope run` on a small model in f32."""
        defaults = {"-m": model, "-n": n, "--dtype": "f32", "-t": 1} | ({} if prompt is None else {"-p": prompt})
        given = [word for option, value in defaults.items() if option not in arguments for word in (option, value)]
        return cls.made("run", *given, *arguments, "-o", output)

    def refuses(self, code, messages, *arguments, **options):
        """Checks that the command ends with this code, prints these texts to stderr, and prints nothing to stdout.

        Returns what it said.
        """
        done = self.run_program(*arguments, **options)
        shown = f"kvscope {' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}"
        self.assertEqual(done.returncode, code, shown)
        for message in messages:
            self.assertIn(str(message), done.stderr, shown)
        self.assertEqual(done.stdout, "", shown)
        return done.stderr

    def path(self, name):
        return self.folder / name


def csv_rows(text):
    """Returns the rows as dictionaries. A row of another length than the header is an error."""
    rows = list(csv.reader(io.StringIO(text, newline="")))
    if not rows:
        raise AssertionError("no header")
    if any(len(row) != len(rows[0]) for row in rows):
        raise AssertionError("rows of different lengths")
    return [dict(zip(rows[0], row)) for row in rows[1:]]


def json_rows(text):
    return json.loads(text)


def jsonl_rows(text):
    return [json.loads(line) for line in text.splitlines()]


def cells(line):
    """Returns the cells of a Markdown row; an escaped bar is not a border."""
    return [cell.strip().replace("\0", "|") for cell in line.replace("\\|", "\0").strip("|").split("|")]


def markdown_rows(text):
    lines = text.splitlines()
    heading = cells(lines[0])
    if set(lines[1]) - set("|-:") or len(cells(lines[1])) != len(heading):
        raise AssertionError(f"no rule under the heading: {lines[1]}")
    rows = [cells(line) for line in lines[2:]]
    if any(len(row) != len(heading) for row in rows):
        raise AssertionError("rows of different lengths")
    return [dict(zip(heading, row)) for row in rows]
