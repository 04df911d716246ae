"""Prompts that RULER's own scripts write: tests/data/ruler/prompts.json.

The scripts run at commit c3f5e3b. This script writes small files in the formats of those that users fetch, and a small
tokenizer, into the same folder.

  prompts   a list of {subset, length, seed, samples}; a sample has sha256 (of input + answer_prefix), outputs and
            length; the first of a subset's list also has `begin` and `end`, up to 1000 characters of its text
  python    numbers of CPython's random.Random by seed
  numpy     numbers of numpy.random.RandomState by seed

usage: python scripts/golden/ruler.py --ruler FOLDER    # a clone of https://github.com/NVIDIA/RULER
"""

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import random
import runpy
import shlex
import subprocess
import sys
import tempfile
import types
import uuid
from unittest import mock

import numpy as np
import tokenizers
import wonderwords

COMMIT = "c3f5e3b"
ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/data/ruler"
TOKENIZER = FOLDER / "tokenizer"
N_ENGLISH_WORDS = 30_000  # english_words.json: {"0": "word0", …}; the test makes the same file
ESSAY_NEEDLES = ("niah_single_2", "niah_single_3", "niah_multikey_1", "niah_multivalue", "niah_multiquery")
CASES = [(subset, length, 42, 4) for subset, lengths in {
    "niah_single_1": (500, 5000), **{name: (1500, 4000) for name in ESSAY_NEEDLES}, "niah_multikey_2": (600, 5000),
    "niah_multikey_3": (1200, 6000), "vt": (1000, 5000), "cwe": (1500, 5000), "fwe": (500, 5000), "qa_1": (1000, 5000),
    "qa_2": (2500, 5000)}.items() for length in lengths]
CASES += [(subset, length, seed, 3) for subset, length in {"niah_multikey_3": 2000, "niah_multiquery": 2000, "vt": 2000,
                                                           "cwe": 2000, "fwe": 2000, "qa_1": 1500}.items()
          for seed in (0, 2**32 - 1)]
CASES += [("cwe", 300_000, 42, 1)]  # more words than wonderwords has

SENTENCES = """
The red fox ran up the hill. | It was late, and no one saw it! | Did it get to the top? | Dr. Lee said no. |
We met Mr. J. Bach at 3.5 p.m. on a hot day. | He sat by J. Smith and ate. | "Is it so?" she said. | (It was so.) |
He left... and then he came back. | They went up . . . and down. | It cost 3. We paid 4.50 for it. | No. 5 is off. |
I saw the U.S. in May. | The U.S. He has left. | See e.g. the map. | It is odd -- is it not? -- but true. | Stop<|end|>here. |
It ended.'' Then it began. | \u201cA quote.\u201d Then more. | \u00abOui.\u00bb Et puis. | Wait?! No... Yes. |
\u00c9mile ate. \u00e9mile did not. | A list: a, b, c, etc. The end. | a-mr. Fox came.--And left. | It was in Jan. It froze. |
One--two. three. Four | "It is." ("So.") [Yes.] Go. | Ask St. Paul. | Mt. Fuji is tall. | It is at 10 a.m. the next day.
"""
PUNKT = {"abbrev_types.txt": ["dr", "mr", "p.m", "a.m", "u.s", "e.g", "etc", "jan", "st", "mt", "j"],
         "collocations.tab": ["st\tpaul", "##number##\twe"],
         "sent_starters.txt": ["it", "he", "the", "then"],
         "ortho_context.tab": ["the\t126", "it\t114", "he\t50", "we\t112", "bach\t4", "smith\t14", "yes\t2",
                               "\u00e9mile\t12", "and\t34", "a\t126", "to\t96", "fuji\t4"]}


def essays():
    choose = random.Random(1)
    sentences = [" ".join(one.split()) for one in SENTENCES.split("|")]
    gaps = [" ", " ", " ", "\n", "\n\n", "\t", "  ", "\u00a0", "\u2003", "\x1f"]
    return {"text": "\n" + "".join(choose.choice(sentences) + choose.choice(gaps) for _ in range(120))}


def documents(choose, n):
    names = "river castle garden engine planet museum forest bridge market island".split()
    return [f"The {choose.choice(names)} {i} lies in {choose.choice(names)} land, has {choose.randint(2, 99)} doors and "
            f"{'was built long ago by its owner. ' * choose.randint(1, 4)}".strip() for i in range(n)]


def squad():
    choose, articles = random.Random(2), []
    texts = documents(choose, 60)
    for article in range(12):
        paragraphs = []
        for i in range(article * 5, article * 5 + 5):
            context = texts[i] if i % 7 else texts[0]  # some paragraphs are equal
            answer = context.split(" has ")[0].split(" in ")[1]
            paragraphs.append({"context": context, "qas": [
                {"question": f"Where is number {i}?", "is_impossible": i % 3 == 2,
                 "answers": [] if i % 3 == 2 else [{"text": answer}, {"text": answer.upper()}]}]})
        articles.append({"title": str(article), "paragraphs": paragraphs})
    return {"version": "v2.0", "data": articles}


def hotpotqa():
    choose = random.Random(3)
    texts = documents(choose, 50)
    return [{"question": f"Which \u201cland\u201d is in {i}?", "answer": texts[5 * i].split(" lies ")[0],
             "context": [[f"Title {k}", [texts[k % 50], " It is old.", " It is \u00fcber all."]]
                         for k in range(5 * i, 5 * i + 10)]} for i in range(10)]


def write_inputs(json_folder, nltk_folder):
    FOLDER.mkdir(exist_ok=True)
    words = {str(i): f"word{i}" for i in range(N_ENGLISH_WORDS)}
    (json_folder / "english_words.json").write_text(json.dumps(words))
    for ours, theirs, content in (("essays", "PaulGrahamEssays", essays()), ("squad", "squad", squad()),
                                  ("hotpotqa", "hotpotqa", hotpotqa())):
        for file in (FOLDER / f"{ours}.json", json_folder / f"{theirs}.json"):
            file.write_text(json.dumps(content) + "\n")
    english = nltk_folder / "tokenizers/punkt_tab/english"
    english.mkdir(parents=True)
    (nltk_folder / "tokenizers/punkt").mkdir()  # prepare.py searches the name of the older package
    for name, lines in PUNKT.items():
        (english / name).write_text("".join(line + "\n" for line in lines))
    merged = "".join(f"{name}:{line}\n" for name, lines in sorted(PUNKT.items()) for line in lines)
    (FOLDER / "punkt.txt").write_text(merged)


def train_tokenizer():
    """Writes a tokenizer of 1,500 tokens. With fewer characters per token, the example in vt would never fit."""
    words = [(pathlib.Path(wonderwords.__file__).parent / f"assets/{name}list.txt").read_text()
             for name in ("noun", "adjective", "verb")]
    texts = [json.dumps(content, ensure_ascii=False) for content in (essays(), squad(), hotpotqa())]
    noise = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
    variables = "Memorize and track the chain(s) of variable assignment: VAR ABC = VAR XYZ "
    needle = "Some special magic numbers are hidden within the following text. One of the special magic uuids for a is: 1."
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.train_from_iterator(texts + words + [noise, variables, needle] * 20, tokenizers.trainers.BpeTrainer(
        vocab_size=1500, special_tokens=["<|begin|>", "<|end|>"], show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(  # RULER counts no such token
        single="<|begin|> $A", special_tokens=[("<|begin|>", 0)])
    TOKENIZER.mkdir(exist_ok=True)
    tokenizer.save(str(TOKENIZER / "tokenizer.json"), pretty=False)
    (TOKENIZER / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|begin|>", "eos_token": "<|end|>"}) + "\n")


def run_script(file, arguments):
    sys.argv = [str(file), *arguments]
    runpy.run_path(str(file), run_name="__main__")


def run_command(command, **_):
    """Replaces subprocess.run in prepare.py, so that transformers is imported once."""
    _, file, *arguments = shlex.split(command)
    run_script(file, arguments)
    return types.SimpleNamespace(returncode=0, stdout="")


def prompts(scripts, subset, length, seed, n_samples):
    with tempfile.TemporaryDirectory() as out, contextlib.redirect_stdout(sys.stderr), \
            mock.patch("subprocess.run", run_command):
        run_script(scripts / "data/prepare.py", [
            "--save_dir", out, "--benchmark", "synthetic", "--task", subset, "--tokenizer_path", str(TOKENIZER),
            "--tokenizer_type", "hf", "--max_seq_length", str(length), "--num_samples", str(n_samples),
            "--random_seed", str(seed)])
        return [json.loads(line) for line in (pathlib.Path(out) / subset / "validation.jsonl").read_text().splitlines()]


def shuffled(r, n):
    numbers = list(range(n))
    r.shuffle(numbers)
    return numbers


def python_numbers(seed):
    r = random.Random(seed)
    return {"seed": seed, "random": [r.random() for _ in range(3)], "below": [r.randrange(n) for n in (1, 2, 7, 6_000_000)],
            "randint": [r.randint(10**6, 10**7 - 1) for _ in range(3)],
            "uuid": str(uuid.UUID(int=r.getrandbits(128), version=4)), "letters": "".join(r.choices("abcdefg", k=20)),
            "sample": [{"n": n, "k": k, "chosen": r.sample(range(n), k)}
                       for n, k in ((10, 10), (21, 5), (22, 5), (40, 4), (85, 6), (86, 6), (5000, 30), (9, 0))],
            "shuffled": shuffled(r, 20)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ruler", required=True, help="clone of RULER, or its git directory")
    folder = parser.parse_args().ruler
    golden = {"prompts": [], "python": [python_numbers(seed) for seed in (0, 1, 42, 2**32 - 1, 2**32, 2**64 - 1)],
              "numpy": []}
    for seed in (0, 42, 2**32 - 1):
        r = np.random.RandomState(seed)
        bounds = [(10000, 99999)] * 3 + [(0, 1), (0, 2), (5, 70000)]
        golden["numpy"].append({"seed": seed, "randint": [[low, high, int(r.randint(low, high))] for low, high in bounds]})
    with tempfile.TemporaryDirectory() as temporary:
        temporary = pathlib.Path(temporary)
        archive = subprocess.run(["git", "-C", folder, "archive", COMMIT, "scripts"], check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", temporary], input=archive.stdout, check=True)
        scripts = temporary / "scripts"
        write_inputs(scripts / "data/synthetic/json", temporary / "nltk")
        train_tokenizer()
        os.environ |= {"NLTK_DATA": str(temporary / "nltk"), "HF_HUB_OFFLINE": "1"}
        sys.path += [str(scripts), str(scripts / "data"), str(scripts / "data/synthetic")]
        seen = set()
        for subset, length, seed, n_samples in CASES:
            print(subset, length, seed, file=sys.stderr)
            samples = []
            for line in prompts(scripts, subset, length, seed, n_samples):
                text = line["input"] + line["answer_prefix"]
                sample = {"sha256": hashlib.sha256(text.encode()).hexdigest(), "outputs": line["outputs"],
                          "length": line["length"]}
                if subset not in seen:
                    sample |= {"begin": text[:1000], "end": text[-1000:]}
                seen.add(subset)
                samples.append(sample)
            golden["prompts"].append({"subset": subset, "length": length, "seed": seed, "samples": samples})
    (FOLDER / "prompts.json").write_text(json.dumps(golden, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
