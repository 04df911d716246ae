#!/usr/bin/env python3
"""Reference texts for the tests of chat templates, from apply_chat_template of transformers.

    scripts/golden/python scripts/golden/chat_templates.py

The templates are from llama.cpp's tests: models/templates/*.jinja, and the templates in tests/test-chat-template.cpp, named
by their positions in that file. Writes tests/data/checkpoint/chat_templates.json: the texts for the supported families, and a
checksum of the texts for all other templates.
"""
import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

import transformers.utils.chat_template_utils as chat_template_utils
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/data/checkpoint/chat_templates.json"
NOW = datetime.datetime(2025, 3, 4, 5, 6, 7)

SYSTEM = {"role": "system", "content": "Answer in one word."}
USER = {"role": "user", "content": "What is the capital of France?"}
ASSISTANT = {"role": "assistant", "content": "Paris"}
AGAIN = {"role": "user", "content": "And of Italy?"}
CONVERSATIONS = {
    "one question": ([USER], True),
    "one question, no prompt for an answer": ([USER], False),
    "system message": ([SYSTEM, USER], True),
    "several turns": ([SYSTEM, USER, ASSISTANT, AGAIN], True),
    "ends with an answer": ([USER, ASSISTANT], False),
    "white space around": ([{"role": "user", "content": " \n two  spaces \t\r\n\n"}], True),
    "quotes, braces, other scripts": (
        [{"role": "user", "content": "{{ x }} {% y %} \"'\\ <b>&amp; é 中文 🦙 <|im_end|> </s>"}], True),
    "thoughts": ([USER, {"role": "assistant", "content": "<think>\nFrance?\n</think>\n\nParis"}, AGAIN], True),
    "wrong order": ([ASSISTANT, ASSISTANT], True),
    "empty": ([{"role": "user", "content": ""}], True),
}

# Tokens and options for the templates of each family. Other templates get the tokens of Llama 2.
FAMILIES = {
    "models/templates/meta-llama-Llama-3.1-8B-Instruct.jinja": ("<|begin_of_text|>", "<|eot_id|>"),
    "models/templates/meta-llama-Llama-3.2-3B-Instruct.jinja": ("<|begin_of_text|>", "<|eot_id|>"),
    "models/templates/meta-llama-Llama-3.3-70B-Instruct.jinja": ("<|begin_of_text|>", "<|eot_id|>"),
    "models/templates/Qwen-Qwen2.5-7B-Instruct.jinja": (None, "<|im_end|>"),
    "models/templates/Qwen-Qwen3-0.6B.jinja": (None, "<|im_end|>"),
    "models/templates/mistralai-Mistral-Nemo-Instruct-2407.jinja": ("<s>", "</s>"),
}
LLAMA2 = ("{% if messages[0]['role'] == 'system' %}"
          "{% set rest = messages[1:] %}{% set system = messages[0]['content'] %}"
          "{% else %}{% set rest = messages %}{% set system = false %}{% endif %}{% for m in rest %}"
          "{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
          "{{ raise_exception('Roles must alternate') }}{% endif %}"
          "{% if loop.index0 == 0 and system != false %}"
          "{% set text = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + m['content'] %}"
          "{% else %}{% set text = m['content'] %}{% endif %}"
          "{% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + text.strip() + ' [/INST]' }}"
          "{% elif m['role'] == 'assistant' %}{{ ' '  + text.strip() + ' ' + eos_token }}{% endif %}{% endfor %}")


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def tokenizer_with(bos, eos, template):
    vocabulary = {token: i for i, token in enumerate(["<unk>", *(t for t in (bos, eos) if t)])}
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE(vocab=vocabulary, merges=[])), bos_token=bos,
                                   eos_token=eos, chat_template=template)


def checksum(text):
    """Returns the 64-bit FNV-1a hash."""
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001b3) & 0xffffffffffffffff
    return f"{value:016x}"


def outputs(template, bos, eos, whole):
    rows = {}
    try:
        tokenizer = tokenizer_with(bos, eos, template)
    except Exception as error:
        return {"error": str(error)}
    for name, (messages, prompt) in CONVERSATIONS.items():
        try:
            text = tokenizer.apply_chat_template(messages, add_generation_prompt=prompt, tokenize=False)
            rows[name] = {"text": text} if whole else {"checksum": checksum(text)}
        except Exception as error:  # the template called raise_exception or does not support this context
            rows[name] = {"error": str(error)}
    return rows


def main():
    chat_template_utils.datetime = FixedClock
    done = subprocess.run([sys.executable, str(ROOT / "cmake/fetch.py"), "llama-source"], check=True,
                          capture_output=True, text=True)
    source = Path(done.stdout.strip())
    cases = {}
    for file in sorted((source / "models/templates").glob("*.jinja")):
        name = f"models/templates/{file.name}"
        bos, eos = FAMILIES.get(name, ("<s>", "</s>"))
        cases[name] = {"bos_token": bos, "eos_token": eos,
                       "rows": outputs(file.read_text(encoding="utf-8"), bos, eos, name in FAMILIES)}
    tests = (source / "tests/test-chat-template.cpp").read_text(encoding="utf-8")
    written_out = re.findall(r'\.template_str= \*/ ("(?:[^"\\]|\\.)*")', tests)
    for i, literal in enumerate(written_out):
        template = json.loads(literal.replace("\\'", "'"))
        mistral = "[INST]" in template
        cases[f"tests/test-chat-template.cpp#{i}"] = {"bos_token": "<s>", "eos_token": "</s>",
                                                      "rows": outputs(template, "<s>", "</s>", mistral)}
    cases["Llama 2"] = {"template": LLAMA2, "bos_token": "<s>", "eos_token": "</s>",
                        "rows": outputs(LLAMA2, "<s>", "</s>", True)}
    golden = {"now": NOW.timetuple()[:6], "conversations": {
        name: {"messages": messages, "add_generation_prompt": prompt}
        for name, (messages, prompt) in CONVERSATIONS.items()}, "cases": cases}
    OUT.write_text(json.dumps(golden, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
    print(f"{OUT.name}: {len(cases)} templates, {OUT.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
