"""Scores of GSM8K's, MATH's and kvpress's own code: tests/data/mathematics/golden.json, and small files of problems.

  gsm8k       a list of [text, number after the hashes or null], of extract_answer() in GSM8K's dataset.py
  boxed       a list of [text, content of the last box or null], of remove_boxed(last_boxed_only_string()) of MATH
  equivalent  a list of [answer, answer, whether MATH's is_equiv() finds them equal]
  math500     a list of [prediction, answer, score of MATH, score of kvpress]
  aime        a list of [prediction, answer, score of kvpress]

usage: python scripts/golden/mathematics.py --gsm8k REPOSITORY --math REPOSITORY --kvpress REPOSITORY
           # git repositories, also without a work tree: openai/grade-school-math, hendrycks/math, NVIDIA/kvpress
"""

import argparse
import contextlib
import io
import json
import pathlib
import random
import re
import warnings

from reference_code import function_of, functions_of, source

COMMITS = {"gsm8k": "3101c7d", "math": "985bdc1", "kvpress": "8bb29b9"}
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/data/mathematics"
N = 260  # answers per list

NUMBERS = ["18", "-18", "1,000", "18.", "3.50", ".5", "-.5", "1,2,3", "--5", "- 5", "$18", "٣", ",", "007", "1e5", "5 apples", "x"]
ATOMS = ["0", "5", "-3", "12", "0.5", ".5", "x", "y_1", "\\pi", "é", "10", "007", "-0", "3/4", "-1/2", "1/02", "a/b", "1/2/3", "",
         "\\frac12", "\\frac1{72}", "\\frac{72}1", "\\frac{1}{2}", "\\dfrac{3}{4}", "\\tfrac34", "\\frac", "\\frac1", "\\fracé2",
         "\\frac{", "\\sqrt3", "\\sqrt{3}", "\\sqrt", "\\sqrté", "2\\sqrt2\\sqrt3", "\\left(1,2\\right)", "(1, 2)", "90^\\circ",
         "90^{\\circ}", "50\\%", "50%", "\\$5", "$5$", "5\\text{ cm}", "5 \\text{cm}", "\\text{ a}\\text{ b}", "x=3", "xy=3", "xyz=3",
         "x=y=3", "=3", "1,000", "1{,}000", "1\\!000", "\\begin{pmatrix}1\\\\2\\end{pmatrix}", "{.5}", "2 .5", "\\text{(A)}", "a\nb",
         "10^{10}", "\\{1,2\\}", "∞"]
BOXES = ["\\boxed{", "\\boxed{", "\\boxed{", "\\boxed{", "\\boxed {", "\\fbox{", "\\boxed", "boxed{", "$\\boxed{"]


def expression(rng):
    parts = [rng.choice(ATOMS) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    return rng.choice(["", "", " ", "+"]).join(parts)


def changed(rng, answer):
    """Returns an answer that is often equivalent."""
    changes = [("\\frac", "\\dfrac"), ("(", "\\left("), (" ", ""), (",", ", "), ("0.5", "1/2"), ("\\frac{1}{2}", "0.5"),
               ("\\frac{3}{4}", "3/4"), ("5", "5\\%"), ("3", "x=3"), ("cm", "m"), ("{3}", "3"), (".5", "0.5"), ("1", "2"), ("", "\\!")]
    old, new = rng.choice(changes)
    return answer.replace(old, new, 1)


def boxed_text(rng, inside):
    box = rng.choice(BOXES)
    end = rng.choice(["}", "}", "}", "}", "}$.", "", "}}", " }"])
    return f"So {box}{inside}{end}" + rng.choice(["", ".", " Done.", " (from {x})"])


def prediction(rng, answer):
    inside = [rng.choice([answer, changed(rng, answer), expression(rng)]) for _ in range(rng.choice([0, 1, 1, 1, 2]))]
    return " ".join(boxed_text(rng, one) for one in inside) or rng.choice([answer, "", "no answer", answer + "} end"])


def hashes_text(rng):
    marks = ["#### ", "#### ", "####", "##### ", "### ", "####  ", "The answer is "]
    return "\n".join(rng.choice(["", "Step. "]) + rng.choice(marks) + rng.choice(NUMBERS) + rng.choice(["", ".", " apples", ",", "\n"])
                     for _ in range(rng.randint(1, 3)))


def answers_of_all(gsm8k, math, util, evaluate, of_math500, of_aime):
    rng = random.Random(1)
    texts = [hashes_text(rng) for _ in range(N)]
    extracted = [[text, None if gsm8k["extract_answer"](text) == gsm8k["INVALID_ANS"] else gsm8k["extract_answer"](text)]
                 for text in texts]

    def box(text):
        return evaluate["remove_boxed"](util["last_boxed_only_string"](text))

    boxed = [[text, box(text)] for text in (" ".join(boxed_text(rng, expression(rng)) for _ in range(rng.randint(1, 2)))
                                            for _ in range(N))]
    pairs = [(answer, rng.choice([changed(rng, answer), changed(rng, answer), expression(rng)]))
             for answer in (expression(rng) for _ in range(2 * N))]
    pairs += [(atom, changed(rng, atom)) for atom in ATOMS]
    equivalent = [[a, b, math["is_equiv"](a, b)] for a, b in pairs]
    answers = [expression(rng) for _ in range(N)]
    predictions = [prediction(rng, answer) for answer in answers]
    scores = [[text, answer, float(math["is_equiv"](box(text), answer)), float(of_math500["score_aime"](text, answer))]
              for text, answer in zip(predictions, answers)]
    numbers = [str(rng.randint(0, 999)) for _ in range(N)]
    texts = [prediction(rng, number) for number in numbers]
    of_three = [[text, number, float(of_aime["score_aime"](text, number))] for text, number in zip(texts, numbers)]
    return {"gsm8k": extracted, "boxed": boxed, "equivalent": equivalent, "math500": scores, "aime": of_three}


GSM8K = [
    {"question": "A keeper lights 3 lamps each night. How many lamps does she light in a week?",
     "answer": "She lights 3*7 = <<3*7=21>>21 lamps.\n#### 21"},
    {"question": "A harbor has 1,250 boats. 250 of them leave. How many stay?",
     "answer": "1,250-250 = <<1250-250=1000>>1,000 boats stay.\n#### 1,000"},
    {"question": "It is 4 degrees. The temperature falls by 9 degrees. How many degrees is it?", "answer": "4-9 = -5\n#### -5"}]
MATH500 = [
    {"problem": "What is half of $\\frac{3}{2}$?", "solution": "It is $\\boxed{\\frac{3}{4}}.$", "answer": "\\frac{3}{4}",
     "subject": "Prealgebra", "level": 1, "unique_id": "made/prealgebra/1.json"},
    {"problem": "Write the point at 3 on the $x$-axis.", "solution": "$\\boxed{(3,0)}$", "answer": "(3,0)", "subject": "Geometry",
     "level": 2, "unique_id": "made/geometry/2.json"}]
AIME_2024 = [{"ID": "made-1", "Problem": "Find the remainder of $2^{10}$ divided by $1000$.", "Solution": "24", "Answer": 24},
             {"ID": "made-2", "Problem": "Find $20^2-1$.", "Solution": "399", "Answer": 399}]
AIME_2025 = [{"question": "Find the sum of the digits of $10^5$.", "answer": "1"}, {"question": "Find $3^4-8$.", "answer": "073"}]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in COMMITS:
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", category=SyntaxWarning)
    warnings.filterwarnings("ignore", category=DeprecationWarning)

    def text(name, path):
        return source(getattr(arguments, name), COMMITS[name], path)

    with contextlib.redirect_stdout(io.StringIO()):
        found = answers_of_all(functions_of(text("gsm8k", "grade_school_math/dataset.py"), re=re),
                               functions_of(text("math", "modeling/math_equivalence.py")),
                               functions_of(text("math", "modeling/dataset/util.py")),
                               functions_of(function_of(text("math", "modeling/evaluate_gpt3.py"), "remove_boxed")),
                               functions_of(text("kvpress", "evaluation/benchmarks/math500/calculate_metrics.py")),
                               functions_of(text("kvpress", "evaluation/benchmarks/aime25/calculate_metrics.py")))
    for name, rows in found.items():
        print(name, len(rows), "of which right or found:", sum(bool(row[-1]) for row in rows))
    FOLDER.mkdir(exist_ok=True)
    document = {"about": "scripts/golden/mathematics.py", **found}
    (FOLDER / "golden.json").write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")
    for name, problems in (("gsm8k", GSM8K), ("math500", MATH500), ("aime2024", AIME_2024)):
        lines = "".join(json.dumps(problem, ensure_ascii=False) + "\n" for problem in problems)
        (FOLDER / f"{name}.jsonl").write_text(lines)
    (FOLDER / "aime2025.json").write_text(json.dumps(AIME_2025, indent=1) + "\n")


if __name__ == "__main__":
    main()
