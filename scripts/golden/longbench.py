"""Prompts and scores of LongBench's and LongBench-v2's own code: tests/data/longbench/golden.json.

The scores are those of LongBench's metrics.py and of LongBench-v2's pred.py at commit 2e00731, with rouge 1.0.1 and
fuzzywuzzy 0.18.0 without python-Levenshtein. The prompts follow pred.py, whose function also runs the model: they are made
here, from LongBench's files, with the default model's tokenizer in the package `tokenizers`. This script also writes small
files of samples in the benchmarks' formats into the same folder.

The Chinese scores use jieba 0.42.1 with those words and characters of its data that occur in the texts; dict.txt and
prob_emit.py contain them.

  scores    a list of {set, classes, pairs}; a pair has prediction, answers, score and as_kvpress
  letters   a list of [response to LongBench-v2, chosen letter or null]
  prompts   a list of {file, number, max_length, n_tokens (before the cut), text}
  n_new     largest number of answer tokens, by set

usage: python scripts/golden/longbench.py --longbench FOLDER --model FILE.gguf
           # a clone of https://github.com/THUDM/LongBench and the default model
"""

import argparse
import ast
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

import gguf
import jieba
import tokenizers

COMMIT = "2e00731"
ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/data/longbench"
FIRST_LINE_SETS = ("trec", "triviaqa", "samsum", "lsht")  # eval.py
N_PAIRS = 220  # of predictions and answers, per set
MAX_LENGTHS = (120, 333, 100_000)

WORDS = """a an the The AN cat dog Cat's dog-house it's U.S. e.g. 3.5 1,000 $5 résumé Ünder İstanbul ΣΑΣ ΟΔΟΣ. straße x_y
under_score the_end (a) [an] {the} "quoted" 'single' a\u0301 naïve 東京 大阪。 ٣ ½ ² ª The. yes no unanswerable Yes. No! 42
""".split()
SPACES = [" "] * 12 + ["  ", "\n", "\t", "\u00a0", "\u2003", "\x1c", "\x85", "\u3000"]
QUESTION_TYPES = ["Abbreviation", "Animal", "Organ of body", "Color", "Description", "Description of a person", "Food",
                  "Number", "Other number", "Other entity", "Individual", "Title of a person", "City", "Other location",
                  "Other", "Entity", "Person"]
NEWS_TYPES = ["体育", "政治", "社会", "科学技术", "科学", "技术", "军事", "外交、国际关系", "国际关系", "教育", "体育教育"]
CODE = """    return self.value | def f(x): | # a comment | // another | ```python | x = x + 1 | for (int i = 0; i < n; ++i) { | } |
public static void main(String[] args) { | if x is None: return | self.assertEqual(a, b) | System.out.println("a"); | é = 'ß'
"""


def words(rng, n):
    return "".join(rng.choice(WORDS) + rng.choice(SPACES) for _ in range(n))


def changed(rng, text):
    """Returns the text with some words replaced, removed or moved."""
    parts = text.split(" ")
    for _ in range(rng.randint(0, 3)):
        at = rng.randrange(len(parts))
        action = rng.randrange(4)
        if action == 0:
            parts[at] = rng.choice(WORDS)
        elif action == 1 and len(parts) > 1:
            del parts[at]
        elif action == 2:
            parts.insert(at, rng.choice(parts))
        else:
            parts[at] = parts[at].upper()
    return " ".join(parts)


def sentences(rng, n):
    return " ".join(words(rng, rng.randint(1, 6)).strip() + rng.choice([".", ".", "?", "...", ". .", ""]) for _ in range(n))


def qa_pair(rng):
    answers = [words(rng, rng.randint(1, 4)).strip() for _ in range(rng.randint(1, 3))]
    prediction = rng.choice([changed(rng, rng.choice(answers)), words(rng, rng.randint(0, 8))])
    return rng.choice(["", "", "\n", "\n\n", " \n"]) + prediction + rng.choice(["", "\nQuestion: more"]), answers, None


def rouge_pair(rng):
    answer = sentences(rng, rng.randint(1, 4))
    prediction = rng.choice([changed(rng, answer), sentences(rng, rng.randint(0, 4)), answer, ""])
    return rng.choice(["", "\n", " "]) + prediction, [answer], None


def rouge_pair_of_lines(rng):
    prediction, answers, _ = rouge_pair(rng)
    return prediction.replace(" the", "\nthe", 1), answers, None


def class_pair(classes):
    def pair(rng):
        named = rng.sample(classes, rng.randint(0, 4))
        prediction = rng.choice(["Type: ", "", "\n", " "]) + rng.choice([", ", "\n", ""]).join(named)
        return prediction, [rng.choice(named + [rng.choice(classes)])], classes
    return pair


def retrieval_pair(label):
    def pair(rng):
        right = rng.randint(1, 30)
        said = [rng.choice([str(right), str(rng.randint(1, 30)), f"{label}{right}", f"0{right}", "٣", "no"])
                for _ in range(rng.randint(0, 4))]
        return rng.choice([" ", ", ", "", "."]).join(said), [f"{label}{right}" + rng.choice(["", f", {label}2", "。"])], None
    return pair


def count_pair(rng):
    right = rng.randint(1, 30)
    said = [rng.choice([str(right), str(rng.randint(1, 30)), f"{right}.0", "seven", f"x{right}y"]) for _ in range(rng.randint(0, 4))]
    return rng.choice([" ", ", ", ""]).join(said), [str(right)], None


def code_pair(rng):
    lines = [line.strip("\n").strip(" ") if rng.random() < 0.5 else line.strip("\n") for line in CODE.split("|")]
    answer = rng.choice(lines)
    if rng.random() < 0.15:  # long enough for frequent characters (difflib)
        answer = " ".join(rng.choice(lines) for _ in range(rng.randint(10, 16)))
    prediction = changed(rng, answer) if rng.random() < 0.6 else rng.choice(lines)
    before = rng.choice([[], [], ["", ""], ["# a comment", "```"], ["// x"]])
    return "\n".join([*before, prediction, rng.choice(lines)]), [rng.choice([answer, answer, answer, "", prediction])], None


CHINESE = """他来到了网易杭研大厦。|今天的会议讨论了新的计划，记者从北京报道！|小明硕士毕业于中国科学院计算所，后在日本京都大学深造|
比赛以3比2结束；GDP增长3.5%，AT&T公司和C++语言。|李小福是创新办主任也是云计算方面的专家|𠮷野家开业了（ABC-12）|工信处女干事每月经过下属科室|
结婚的和尚未结婚的|永和服装饰品有限公司|“欢迎光临”…他说：Hello World. It is 10.5|中华人民共和国万岁|研究生命的起源|蔡英文龚照胜到底谁赢
""".split("|")


def chinese_text(rng):
    text = "".join(rng.choice(CHINESE) for _ in range(rng.randint(0, 3)))
    for _ in range(rng.randint(0, 4)):
        at = rng.randint(0, len(text))
        text = rng.choice([text[:at] + rng.choice([" ", "\r\n", "\n", "。", "的", ".", "x9.5%", "—", "，", "三"]) + text[at:],
                           text[:at] + text[at + 1:], text[at:] + text[:at]])
    return text


def chinese_pair(rng):
    answers = [chinese_text(rng) for _ in range(rng.randint(1, 2))]
    return rng.choice([changed(rng, rng.choice(answers)), chinese_text(rng), rng.choice(answers)[: rng.randint(0, 30)]]), answers, None


PAIRS = {"multifieldqa_zh": chinese_pair, "dureader": chinese_pair, "vcsum": chinese_pair, "qasper": qa_pair, "triviaqa": qa_pair, "gov_report": rouge_pair, "samsum": rouge_pair_of_lines,
         "trec": class_pair(QUESTION_TYPES), "lsht": class_pair(NEWS_TYPES),
         "passage_retrieval_en": retrieval_pair("Paragraph "), "passage_retrieval_zh": retrieval_pair("段落"),
         "passage_count": count_pair, "lcc": code_pair}


def response(rng):
    phrases = ["The correct answer is ", "The correct answer is ", "**The correct answer is** ", "The correct *answer* is ",
               "The correct answer is: ", "the correct answer is ", "The correct answer is (", "I think that ", ""]
    letters = ["(A)", "(B)", "C", "D", "*(C)*", "(**D**)", "(E)", "E", "(A", "B)", "(a)", ""]
    return "".join(rng.choice(["", " ", "\n", "Well. "]) + rng.choice(phrases) + rng.choice(letters)
                   for _ in range(rng.randint(1, 3)))


def score_of(module, name, prediction, answers, classes, removed="\n"):
    """The score in eval.py before its sum and rounding.

    removed: characters before the prediction; None for white space, as in evaluation/benchmarks/longbench of kvpress
    """
    if name in FIRST_LINE_SETS:
        prediction = prediction.lstrip(removed).split("\n")[0]
    return float(max([0.0] + [module.dataset2metric[name](prediction, answer, all_classes=classes) for answer in answers]))


def use_data_of_texts(texts):
    """Lets jieba use only the words and characters of the texts, and writes them into files."""
    lines = (pathlib.Path(jieba.__file__).parent / "dict.txt").read_text().splitlines()
    joined = "\n".join(texts)
    (FOLDER / "dict.txt").write_text("".join(line + "\n" for line in lines if line.split(" ")[0] in joined))
    characters = set(joined)
    emissions = {tag: {c: value for c, value in of_tag.items() if c in characters} for tag, of_tag in jieba.finalseg.emit_P.items()}
    shown = ",\n ".join(f"{tag!r}: {{" + ",\n       ".join(f"'\\u{ord(c):04x}': {value!r}" for c, value in of_tag.items()) + "}"
                       for tag, of_tag in emissions.items())
    (FOLDER / "prob_emit.py").write_text(f"P={{{shown}}}\n")
    jieba.finalseg.emit_P = emissions
    jieba.setLogLevel(60)
    jieba.dt.tmp_dir = tempfile.mkdtemp()
    jieba.set_dictionary(str(FOLDER / "dict.txt"))


def load_eval(folder):
    """Returns LongBench's eval.py."""
    sys.path.insert(0, str(folder / "LongBench"))
    warnings.filterwarnings("ignore", message="Using slow pure-python SequenceMatcher")
    import eval as module  # pylint: disable=import-outside-toplevel
    return module


def load_function(path, name):
    """Returns one function of a script without running the script."""
    node = next(node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef) and node.name == name)
    scope = {"re": re}
    exec(compile(ast.Module([node], []), str(path), "exec"), scope)  # pylint: disable=exec-used
    return scope[name]


def all_scores(folder):
    module, found, all_pairs = load_eval(folder), [], {}
    for name, pair_of in PAIRS.items():
        rng = random.Random(name)
        all_pairs[name] = [pair_of(rng) for _ in range(N_PAIRS)]
    use_data_of_texts([text for name, pairs in all_pairs.items() if PAIRS[name] is chinese_pair
                       for prediction, answers, _ in pairs for text in (prediction, *answers)])
    for name, all_of_set in all_pairs.items():
        pairs = []
        for prediction, answers, classes in all_of_set:
            score = score_of(module, name, prediction, answers, classes)
            assert round(100 * score, 2) == module.scorer(name, [prediction], [answers], classes)
            as_kvpress = score_of(module, name, prediction, answers, classes, None)
            pairs.append({"prediction": prediction, "answers": answers, "score": score, "as_kvpress": as_kvpress})
        print(name, "mean", sum(pair["score"] for pair in pairs) / N_PAIRS,
              "distinct", len({pair["score"] for pair in pairs}),
              "other with kvpress", sum(pair["score"] != pair["as_kvpress"] for pair in pairs))
        found.append({"set": name, "classes": classes or [], "pairs": pairs})
    return found


def default_tokenizer(path):
    """Returns the tokenizer of SmolLM2's GGUF file, which adds no token to a text."""
    fields = gguf.GGUFReader(str(path)).fields
    contents = lambda name: fields[f"tokenizer.ggml.{name}"].contents()
    assert contents("pre") == "smollm" and not contents("add_bos_token")
    pieces, control = contents("tokens"), 3
    merges = [tuple(merge.split(" ")) for merge in contents("merges")]
    made = tokenizers.Tokenizer(tokenizers.models.BPE({piece: i for i, piece in enumerate(pieces)}, merges))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Digits(individual_digits=True),
        tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens([tokenizers.AddedToken(piece, special=True, normalized=False)
                             for piece, kind in zip(pieces, contents("token_type")) if kind == control])
    return made


def story(rng, n, language="en"):
    english = ["The keeper of the lighthouse wrote a letter.", "A ship with 12 sails left at 4:30.", "Nobody paid the 1,500 crowns!",
               "The café closed — naïve guests waited 😀.", "It rained in Ærø, and the müller slept.", "“Where is it?” asked Zoë."]
    chinese = ["今天的会议讨论了新的计划。", "记者从北京报道，𠮷野家开业了。", "比赛以三比二结束！", "他们在图书馆里找到了那封信。"]
    return " ".join(rng.choice(english if language == "en" else chinese) for _ in range(n))


def records(prompts):
    rng = random.Random(1)
    answers = {"passage_count": ["7"], "passage_retrieval_en": ["Paragraph 2"], "passage_retrieval_zh": ["段落2"],
               "trec": ["Food"], "lsht": ["体育"], "lcc": ["    return value"], "repobench-p": ["return x"]}
    for name in prompts:
        language = "zh" if name in ("lsht", "passage_retrieval_zh", "multifieldqa_zh", "dureader", "vcsum") else "en"
        classes = {"trec": QUESTION_TYPES, "lsht": NEWS_TYPES}.get(name)
        for n in (3, 40):
            yield {"input": "" if name in ("gov_report", "multi_news", "vcsum", "lcc", "passage_count") else story(rng, 1, language),
                   "context": story(rng, n, language) + (" <|im_end|> {input} {context}" if name == "qasper" else ""),
                   "answers": answers.get(name, ["the keeper", "a letter"]), "length": 3999 if n == 3 else 8000,
                   "dataset": name, "language": language, "all_classes": classes, "_id": f"{name}-{n}"}
    yield {"input": story(rng, 60), "context": story(rng, 60), "answers": ["a letter"], "length": 4000, "dataset": "qasper_e",
           "language": "en", "all_classes": None, "_id": "long question"}


def records_of_v2():
    rng = random.Random(2)
    for n, difficulty, length, answer in ((3, "easy", "short", "B"), (60, "hard", "medium", "D"), (90, "hard", "long", "A")):
        yield {"_id": f"v2-{n}", "domain": "Single-Document QA", "sub_domain": "Literary", "difficulty": difficulty,
               "length": length, "question": f" {story(rng, 1)}\n", **{f"choice_{c}": story(rng, 1) + " " for c in "ABC"},
               "choice_D": "$C_A$ and $DOC$", "answer": answer, "context": f"\n{story(rng, n)} $Q$ $C_B$ \u3000"}


def cut(tokenizer, prompt, max_length):
    """get_pred() in LongBench's pred.py."""
    ids = tokenizer.encode(prompt).ids
    if len(ids) > max_length:
        half = int(max_length / 2)
        return len(ids), tokenizer.decode(ids[:half]) + tokenizer.decode(ids[-half:])
    return len(ids), prompt


def cut_of_v2(tokenizer, prompt, max_length):
    """query_llm() in LongBench-v2's pred.py."""
    ids = tokenizer.encode(prompt).ids
    if len(ids) > max_length:
        return len(ids), tokenizer.decode(ids[:max_length // 2] + ids[-max_length // 2:])
    return len(ids), prompt


def all_prompts(folder, tokenizer, samples, samples_of_v2):
    formats = json.loads((folder / "LongBench/config/dataset2prompt.json").read_text())
    template, found = (folder / "prompts/0shot.txt").read_text(), []
    for max_length in MAX_LENGTHS:
        for number, record in enumerate(samples, 1):
            prompt = formats[record["dataset"].removesuffix("_e")].format(**record)
            n, text = cut(tokenizer, prompt, max_length)
            found.append({"file": "samples.jsonl", "number": number, "max_length": max_length, "n_tokens": n, "text": text})
        for number, item in enumerate(samples_of_v2, 1):
            prompt = template
            for pattern, field in (("$DOC$", "context"), ("$Q$", "question"), *((f"$C_{c}$", f"choice_{c}") for c in "ABCD")):
                prompt = prompt.replace(pattern, item[field].strip())
            n, text = cut_of_v2(tokenizer, prompt, max_length)
            found.append({"file": "v2.json", "number": number, "max_length": max_length, "n_tokens": n, "text": text})
    print(len(found), "prompts, cut:", sum(one["n_tokens"] > one["max_length"] for one in found),
          "with a character cut:", sum("\ufffd" in one["text"] for one in found))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--longbench", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    folder = arguments.longbench
    commit = subprocess.run(["git", "-C", str(folder), "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    assert commit.startswith(COMMIT), f"{folder} is at {commit}, not at {COMMIT}"
    n_new = json.loads((folder / "LongBench/config/dataset2maxlen.json").read_text())

    samples, samples_of_v2 = list(records(n_new)), list(records_of_v2())
    FOLDER.mkdir(exist_ok=True)
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in samples)
    (FOLDER / "samples.jsonl").write_text(lines)
    (FOLDER / "v2.json").write_text(json.dumps(samples_of_v2, ensure_ascii=False, indent=1) + "\n")

    rng, extract = random.Random(3), load_function(folder / "pred.py", "extract_answer")
    responses = [response(rng) for _ in range(N_PAIRS)]
    document = {"about": "scripts/golden/longbench.py", "n_new": n_new, "scores": all_scores(folder),
                "letters": [[text, extract(text.strip())] for text in responses],
                "prompts": all_prompts(folder, default_tokenizer(arguments.model), samples, samples_of_v2)}
    print("letters", {letter: [one for _, one in document["letters"]].count(letter) for letter in (None, *"ABCD")})
    (FOLDER / "golden.json").write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")
    shutil.rmtree(jieba.dt.tmp_dir)


if __name__ == "__main__":
    main()
