"""Token ids of the reference prompts, from llama.cpp's tokenizer: tests/data/engine/prompt_ids.json.

The prompts are rendered with the model's Jinja template. Needs the package llama-cpp-python, which `bench/run --setup` compiles
in the same environment.
"""

import json

import llama_cpp

from reference_model import DATA, Reference, default_gguf, demo_text


QUIET = llama_cpp.llama_log_callback(lambda level, text, data: None)


def tokenizer(path):
    parameters = llama_cpp.llama_model_default_params()
    parameters.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), parameters)
    vocabulary = llama_cpp.llama_model_get_vocab(model)

    def tokenize(text: str) -> list[int]:
        data = text.encode("utf-8")
        room = (llama_cpp.llama_token * (len(data) + 8))()
        n = llama_cpp.llama_tokenize(vocabulary, data, len(data), room, len(room), True, True)
        if n < 0:
            raise SystemExit("llama_tokenize failed")
        return list(room[:n])

    return tokenize


def main():
    llama_cpp.llama_log_set(QUIET, None)
    reference = Reference()
    tokenize = tokenizer(default_gguf())
    context, question = demo_text("demo_context.txt"), demo_text("demo_question.txt")
    # The short prompt contains only the question and the paragraph that mentions the safe's combination.
    start = context.index("The tower was in better condition.")
    stop = context.index("We opened the safe")
    short = context[start:stop].strip()
    prompts = {}
    for name, user in (
        ("demo", context + "\n\n" + question),
        ("short", short + "\n\n" + question),
        ("rewrite", short + "\n\nRewrite this paragraph in your own words."),
    ):
        text = reference.render(user)
        ids = tokenize(text)
        if reference.text(ids) != text:
            raise SystemExit(f"{name}: the ids do not decode to the text")
        prompts[name] = {"user": user, "text": text, "ids": ids}
        print(name, len(ids))
    document = {
        "about": "Rendered by the model's chat template, tokenised by llama.cpp (llama_tokenize, special tokens parsed). "
        "demo = assets/demo/demo_context.txt + two line feeds + demo_question.txt, each without its last line feed.",
        "prompts": prompts,
    }
    (DATA / "engine" / "prompt_ids.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
