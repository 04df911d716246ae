"""Measures kvscope and its peers alternately on this machine and prints the ratios as a Markdown table.

All programs use one data type (--dtype) and 4,096 prompt tokens unless a row says otherwise; llama.cpp uses the model's
own Q4_1. The peers run in separate processes with a loaded model (measure_peer.py). Each cell is the median over the rounds.
Load, read bandwidth and GEMM rates are measured for each row. No time includes loading a model.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

import h5py

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts" / "golden"))

from twelve_policies import DOZEN, PRESSES  # noqa: E402
from machine_rates import Machine  # noqa: E402
from reference_model import default_gguf, demo_text  # noqa: E402

POLICIES = ("snapkv", "pyramidkv", "ada-snapkv", "streaming-llm")
BUDGETS = (256, 512, 1024)
DOZEN_BUDGETS = (64, 128, 256, 512)


class Peer:
    def __init__(self, name, threads, dtype):
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "bench" / "measure_peer.py"), name, str(threads), dtype],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"OMP_NUM_THREADS": str(threads), "TRANSFORMERS_VERBOSITY": "error"},
        )
        self._read()

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a peer ended unexpectedly; see its message above")
        return json.loads(line)

    def ask(self, do, **request):
        self.process.stdin.write(json.dumps({"do": do} | request) + "\n")
        self.process.stdin.flush()
        answer = self._read()
        # kvscope inherits this process's priority. A peer with another priority cannot be compared.
        mine, its = (os.getpriority(os.PRIO_PROCESS, pid) for pid in (0, self.process.pid))
        if mine != its:
            raise SystemExit(f"the benchmark runs at nice {mine}, the peer at {its}: the comparison would not be fair")
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Kvscope:
    """Runs kvscope once per measurement and reads the times from --timings and from the trace."""

    def __init__(self, command, threads, dtype, prompt, folder):
        self.command, self.threads, self.dtype = command, threads, dtype
        self.prompt, self.folder = prompt, pathlib.Path(folder)
        usage = subprocess.run([*command, "run", "--help"], capture_output=True, text=True)
        if usage.returncode:
            raise SystemExit(f"{command[0]} run --help ended with {usage.returncode}:\n{usage.stderr[-2000:]}")
        self.options = ["--ignore-eos"] if "--ignore-eos" in usage.stdout else []

    def run(self, policies, budgets, tokens, *extra):
        trace, timings = self.folder / "run.h5", self.folder / "timings.json"
        command = [*self.command, "run", "-m", str(default_gguf()), "-f", str(self.prompt), "--chat-template", "off"]
        for policy in policies:
            command += ["--policy", policy]
        if policies:
            command += ["--budget", ",".join(map(str, budgets))]
        command += ["-n", str(tokens), "--dtype", self.dtype, "-t", str(self.threads), "--quiet", *self.options]
        command += ["--timings", str(timings), "--force", "-o", str(trace), *extra]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stderr[-2000:]}")
        result = json.loads(timings.read_text())
        result["runs"] = []
        with h5py.File(trace, "r") as file:
            for run in file["prompts/0/runs"].values():
                entry = {k: v.item() if hasattr(v, "item") else v for k, v in run.attrs.items()}
                if entry["status"] != "complete":
                    raise SystemExit(f"{entry['label']} failed: {entry['message']}")
                entry["tokens"] = len(run["output_ids"])
                result["runs"].append(entry)
        return result


def automatic_dtype():
    """Returns the type that kvscope's `--dtype auto` uses: bf16 only if the processor can multiply it."""
    return "bf16" if "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text() else "f32"


def exact_prompt(peer, n):
    """Returns the repeated demo report, cut to exactly n tokens of llama.cpp's tokenizer."""
    words = (demo_text("demo_context.txt") + "\n\n").split(" ")
    count = lambda text: len(peer.ask("tokenize", text=text)["ids"])
    repeats = 1
    while count(" ".join(words * repeats)) < n:
        repeats += 1
    words = words * repeats
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(" ".join(words[:middle])) <= n else (low, middle - 1)
    text = " ".join(words[:low])
    while count(text) < n:
        text += " a"
    ids = peer.ask("tokenize", text=text)["ids"]
    if len(ids) != n:
        raise SystemExit(f"no text of exactly {n} tokens was found")
    return text, ids


class Table:
    def __init__(self, machine):
        self.machine, self.rows, self.notes = machine, [], []

    def row(self, work, ours, peer, ratio, goal):
        state = self.machine.measure()
        met, aim, form = "", "", "{:.1f}×"
        if goal is not None:
            reached, aim, form = goal
            met = "" if ratio is None else ("yes" if reached(ratio) else "**no**")
        shown = "" if ratio is None else form.format(ratio)
        self.rows.append(
            f"| {work} | {ours} | {peer} | {shown} | {aim} | {met} | {state['load']:.2f} "
            f"| {state['bandwidth']:.0f} | {state['bf16']:.0f} | {state['f32']:.0f} |"
        )
        print(self.rows[-1], file=sys.stderr, flush=True)

    def text(self):
        head = ("| work | kvscope | peer | ratio | goal | met | load | GB/s | bf16 GFLOP/s | f32 GFLOP/s |\n"
                "|---|---|---|---|---|---|---|---|---|---|")
        return "\n".join([head, *self.rows, "", *self.notes])


def at_least(x):
    return (lambda ratio: ratio >= x, f"≥ {x:g}×", "{:.1f}×")


def below(share):
    return (lambda ratio: ratio < share, f"< {share:.0%}", "{:.1%}")


def median(values):
    return statistics.median(values)


def rate(count, seconds):
    return f"{count / seconds:.0f} tok/s"


def compare_prefill(table, ours, hf, llama, ids, rounds):
    n = len(ids)
    mine, theirs, cpp = [], [], []
    for _ in range(rounds):
        theirs.append(hf.ask("prefill", ids=ids)["seconds"])
        if ours:
            mine.append(ours.run([], [], 1, "--no-record", "--no-compare")["prefill_s"])
        cpp.append(llama.ask("prefill", ids=ids)["seconds"])
    hf_s, cpp_s = median(theirs), median(cpp)
    best = min(hf_s, cpp_s)
    table.row(f"prefill, {n:,} tokens", rate(n, median(mine)) if ours else "",
              f"transformers {rate(n, hf_s)}, llama.cpp {rate(n, cpp_s)}",
              best / median(mine) if ours else None, at_least(2.5))


def compare_twelve(table, ours, hf, ids, tokens, rounds):
    runs = len(POLICIES) * len(BUDGETS)
    mine, theirs, generated = [], 0.0, {}
    for budget in BUDGETS:
        if ours and len(mine) < rounds:
            mine.append(ours.run(POLICIES, BUDGETS, tokens))
            generated = {(run["policy"], run["budget"]): run["tokens"] for run in mine[-1]["runs"]}
        for policy in POLICIES:
            asked = generated.get((policy, budget), tokens)  # the number of steps that kvscope took
            answer = hf.ask("press", press=policy, budget=budget, ids=ids, tokens=asked)
            theirs += answer["prefill"] + answer["decode"]
    if any(count < tokens for count in generated.values()):
        table.notes.append(f"Some runs met end-of-text before {tokens} tokens ({sum(generated.values())} in all); "
                           "kvpress decoded as many steps as the same run of kvscope.")
    total = median([m["total_s"] for m in mine]) if ours else None
    table.row(f"{runs} runs × {tokens} tokens, one prompt (with step KL, written)", f"{total:.1f} s" if ours else "",
              f"kvpress {theirs:.1f} s", theirs / total if ours else None, at_least(20))
    return mine


def compare_forty_eight(table, ours, hf, ids, tokens):
    """Compares twelve policies at four budgets. kvscope runs before each quarter of the peer's runs, so that load affects both."""
    bare, whole, theirs = [], [], 0.0
    for budget in DOZEN_BUDGETS:
        if ours:
            bare.append(ours.run(DOZEN, DOZEN_BUDGETS, tokens, "--no-compare", "--no-record")["total_s"])
            whole.append(ours.run(DOZEN, DOZEN_BUDGETS, tokens)["total_s"])
        for press in PRESSES:
            answer = hf.ask("press", press=press, budget=budget, ids=ids, tokens=tokens)
            theirs += answer["prefill"] + answer["decode"]
    work = f"{len(DOZEN)} policies × {len(DOZEN_BUDGETS)} budgets × {tokens} tokens, one prompt, "
    for name, times, goal in (("answers only", bare, at_least(60)), ("with step KL and `full/*`, written", whole, at_least(45))):
        total = median(times) if ours else None
        table.row(work + name, f"{total:.1f} s" if ours else "", f"kvpress {theirs:.1f} s",
                  theirs / total if ours else None, goal)
    table.notes.append(f"The dozen: {', '.join(DOZEN)}; kvpress's: {', '.join(PRESSES)}.")


def compare_batch(table, ours, batch, tokens):
    alone = ours.run(POLICIES, BUDGETS, tokens, "--isolated", "--no-compare")
    separate = sum(run["decode_s"] for run in alone["runs"])
    together = median([m["decode_s"] for m in batch])
    table.row(f"decode of those {len(alone['runs'])} runs, including `full`, {tokens} tokens", f"batch {together:.2f} s",
              f"isolated runs one by one {separate:.2f} s", separate / together, at_least(6))


def compare_decode(table, ours, hf, llama, ids, tokens, rounds):
    mine, theirs, full, hf_full, cpp_full, cpp_short = [], [], [], [], [], []
    for _ in range(rounds):
        theirs.append(hf.ask("press", press="snapkv", budget=512, ids=ids, tokens=tokens)["decode"])
        hf_full.append(hf.ask("decode", ids=ids, tokens=tokens)["seconds"])
        cpp_full.append(llama.ask("decode", ids=ids, tokens=tokens)["seconds"])
        cpp_short.append(llama.ask("decode", ids=ids[:512], tokens=tokens)["seconds"])
        if ours:
            for run in ours.run(["snapkv"], [512], tokens, "--isolated", "--no-compare")["runs"]:
                (full if run["policy"] == "full" else mine).append(1 / run["decode_tokens_per_s"])
    for work, own, others in (
        ("decode, 512 entries kept, isolated", mine, (("kvpress", theirs, 6), ("llama.cpp", cpp_short, 1))),
        (f"decode, {len(ids):,} entries, isolated", full, (("transformers", hf_full, 8), ("llama.cpp", cpp_full, 1.3))),
    ):
        for name, times, goal in others:
            peer = median(times) / (tokens - 1)
            table.row(work, rate(1, median(own)) if ours else "", f"{name} {rate(1, peer)}",
                      peer / median(own) if ours else None, at_least(goal))


def compare_recording(table, ours, rounds):
    bare, window, sums = [], [], []
    for _ in range(rounds):
        bare.append(ours.run([], [], 1, "--no-record", "--no-compare")["prefill_s"])
        for policy, times in (("snapkv", window), ("h2o", sums)):
            timings = ours.run([policy], [512], 1)
            times.append(timings["prefill_s"] + timings["observe_s"])
    for name, times, goal in (("without H2O's sums", window, 0.05), ("with H2O's sums", sums, 0.08)):
        table.row(f"recording `full/*`, {name}", f"{median(times):.2f} s", f"prefill alone {median(bare):.2f} s",
                  median(times) / median(bare) - 1, below(goal))


def main():
    parser = argparse.ArgumentParser(prog="bench/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "scripts" / "kvscope"), help="the kvscope program (default: scripts/kvscope)")
    parser.add_argument("--peers-only", action="store_true", help="measure the peers without kvscope")
    parser.add_argument("--rounds", type=int, default=3, help="number of repetitions of each short measurement (default: 3)")
    parser.add_argument("--tokens", type=int, default=64, help="number of decoded tokens (default: 64)")
    parser.add_argument("--length", type=int, default=4096, help="number of prompt tokens (default: 4096)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="number of threads of each program (default: all cores)")
    parser.add_argument("--dtype", choices=("auto", "bf16", "f32"), default="auto",
                        help="data type of kvscope, transformers and kvpress; auto: bf16 if the processor can multiply it, else f32")
    parser.add_argument("--only", default="prefill,decode,twelve,recording",
                        help="comparisons to run: prefill,decode,twelve,recording (default) and forty-eight, which takes long")
    parser.add_argument("--output", type=pathlib.Path, help="also write the table to this Markdown file")
    options = parser.parse_args()
    parts = set(options.only.split(","))
    dtype = automatic_dtype() if options.dtype == "auto" else options.dtype
    llama, hf = Peer("llama", options.threads, dtype), Peer("transformers", options.threads, dtype)
    table = Table(Machine(options.threads))
    with tempfile.TemporaryDirectory() as folder:
        text, ids = exact_prompt(llama, options.length)
        prompt = pathlib.Path(folder) / "prompt.txt"
        prompt.write_text(text, encoding="utf-8")
        ours = None if options.peers_only else Kvscope([options.program], options.threads, dtype, prompt, folder)
        if ours:
            ours.run([], [], 1)  # builds the program and fills the page cache
        if "prefill" in parts:
            compare_prefill(table, ours, hf, llama, ids, options.rounds)
        if "decode" in parts:
            compare_decode(table, ours, hf, llama, ids, options.tokens, options.rounds)
        if "twelve" in parts:
            batch = compare_twelve(table, ours, hf, ids, options.tokens, options.rounds)
            if ours:
                compare_batch(table, ours, batch, options.tokens)
        if "forty-eight" in parts:
            compare_forty_eight(table, ours, hf, ids, options.tokens)
        if ours and "recording" in parts:
            compare_recording(table, ours, options.rounds)
    llama.close()
    hf.close()
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.processor())
    when = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    report = (f"Measured {when}, {cpu}, {dtype}, {options.threads} threads, {options.rounds} rounds, medians.\n"
              f"Command: `bench/run {' '.join(sys.argv[1:])}`\n\n{table.text()}\n")
    print(report)
    if options.output:
        options.output.write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
