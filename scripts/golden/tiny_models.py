"""Tiny random models of every supported family, with reference results from transformers.

    scripts/golden/python scripts/golden/tiny_models.py

writes tests/data/models/<name>/: a real Hugging Face directory (config.json, generation_config.json,
safetensors weights, and a small byte-level tokenizer with a chat template) or a GGUF file, and
golden.json:

    model          path of the model, relative to the folder: "." or a file name
    input_ids      (48) the prompt
    positions      positions of the logits below
    logits         (positions, vocabulary), float32, eager attention, with the weights as stored
    greedy         (16) ids of the greedy continuation; the two best logits differ by at least MARGIN
    hidden         (layers + 1, hidden) of the last position: the embedding, then the output of each layer
                   (transformers applies the final norm to the last one)
    inverse_frequencies, attention_factor    of the rotary embedding
    tensors        name -> [sum, sum of squares, first value, last value] in transformers' layout

Weights are scaled so that attention is far from uniform. The PyPI package `gguf` writes the GGUF files as llama.cpp's
converter does (rows of Q and K permuted for the architecture llama). Their golden numbers come from transformers with weights
dequantized by the NumPy code of `gguf`.

tests/data/checkpoint/rope.json contains transformers' inverse frequencies for many rotary configurations, and
tests/data/checkpoint/quantisations/ a GGUF file with one tensor of each quantization, with its values.
"""

import json
import math
import pathlib
import shutil

import gguf
import numpy as np
import safetensors.numpy
import torch
import transformers
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MinistralConfig,
    MinistralForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from reference_model import unpermute

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
MODELS = REPOSITORY / "tests" / "data" / "models"
CHECKPOINT = REPOSITORY / "tests" / "data" / "checkpoint"

PROMPT = 48
POSITIONS = [15, 46, 47]
GREEDY = 16
MARGIN = 0.02
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("i", "n"), ("e", "r")]
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


# ---------------------------------------------------------------- tokenizer

def byte_alphabet() -> list[str]:
    """Returns the 256 characters that represent the bytes 0 to 255 in GPT-2's byte-level BPE."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    spare = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(spare)) for b in range(256)]


def vocabulary() -> list[str]:
    """Returns 264 tokens: three special tokens, all bytes, and five merges."""
    return SPECIAL + byte_alphabet() + [a + b for a, b in MERGES]


def write_tokenizer(folder: pathlib.Path) -> None:
    tokens = vocabulary()
    added = [
        {"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        for i, token in enumerate(SPECIAL)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)}, "merges": [list(pair) for pair in MERGES],
        },
    }
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": None, "eos_token": SPECIAL[2],
        "add_bos_token": False, "clean_up_tokenization_spaces": False, "chat_template": TEMPLATE,
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")


# ---------------------------------------------------------------- models

def randomise(model: torch.nn.Module, seed: int, dtype: torch.dtype) -> None:
    """Sets Gaussian weights of about 1.3 / sqrt(inputs) (queries and keys a bit larger), norms around 1, and moderate biases. All
    are representable in `dtype`."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if "norm" in name:
                value = 1 + 0.2 * noise
            elif name.endswith("bias"):
                value = 0.3 * noise
            elif "embed_tokens" in name:
                value = 0.5 * noise
            else:
                scale = 1.7 if ("q_proj" in name or "k_proj" in name) else 1.3
                value = scale / math.sqrt(parameter.shape[-1]) * noise
            parameter.copy_(value.to(dtype).to(torch.float32))
    model.eval()


def summary(value: torch.Tensor) -> list[float]:
    flat = value.detach().double().flatten()
    return [flat.sum().item(), (flat * flat).sum().item(), flat[0].item(), flat[-1].item()]


def floats(values: torch.Tensor) -> list:
    """Rounds to nine significant digits, which represent every float32 exactly."""
    if values.ndim > 1:
        return [floats(row) for row in values]
    return [float(f"{v:.9g}") for v in values.tolist()]


@torch.no_grad()
def golden(model: torch.nn.Module, ids: list[int], file: str) -> dict | None:
    """Returns None if the two best logits of the greedy continuation are too close at some step."""
    out = model(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
    sequence = list(ids)
    for _ in range(GREEDY):
        logits = model(torch.tensor([sequence]), use_cache=False).logits[0, -1]
        best = logits.topk(2)
        if (best.values[0] - best.values[1]).item() < MARGIN:
            return None
        sequence.append(int(best.indices[0]))
    rotary = model.model.rotary_emb
    return {
        "model": file,
        "input_ids": ids,
        "positions": POSITIONS,
        "logits": floats(out.logits[0, POSITIONS]),
        "greedy": sequence[len(ids):],
        "hidden": floats(torch.stack([h[0, -1] for h in out.hidden_states])),
        "inverse_frequencies": floats(rotary.inv_freq),
        "attention_factor": rotary.attention_scaling,
        "tensors": {name: summary(value) for name, value in model.named_parameters()},
    }


def prompt(seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(1000 + seed)
    return torch.randint(3, 259, (PROMPT,), generator=generator).tolist()


def as_transformers_4(config: dict) -> dict:
    """Returns the configuration in the format of transformers before 5.0."""
    config = dict(config)
    rope = dict(config.pop("rope_parameters"))
    config["rope_theta"] = rope.pop("rope_theta")
    kind = rope.pop("rope_type")
    config["rope_scaling"] = None if kind == "default" else {"type": kind, **rope}
    config["torch_dtype"] = config.pop("dtype")
    config.pop("layer_types", None)
    return config


def write_json(path: pathlib.Path, value: dict) -> None:
    path.write_text(json.dumps(value, separators=(",", ":")) + "\n", encoding="utf-8")


def write_directory(name: str, kind: type, config, dtype: torch.dtype, old_config=False, shard="5GB") -> None:
    """Writes a model with the first seed whose greedy continuation is unambiguous."""
    folder = MODELS / name
    for seed in range(100):
        shutil.rmtree(folder, ignore_errors=True)
        model = kind(config)
        randomise(model, seed, dtype)
        model.generation_config.eos_token_id = [0, 2]
        model.to(dtype).save_pretrained(folder, max_shard_size=shard)
        path = folder / "config.json"
        for file in folder.glob("*.safetensors"):
            file.chmod(0o644)
        if old_config:
            path.write_text(json.dumps(as_transformers_4(json.loads(path.read_text())), indent=2) + "\n")
        read_back = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
        result = golden(read_back, prompt(seed), ".")
        if result is not None:
            break
    else:
        raise SystemExit(f"{name}: no seed gives an unambiguous continuation")
    if old_config:  # loading must not have changed the file
        assert "rope_parameters" not in json.loads(path.read_text())
    write_tokenizer(folder)
    write_json(folder / "golden.json", result)
    report(folder)


def report(folder: pathlib.Path) -> None:
    size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    print(f"{folder.relative_to(REPOSITORY)}: {size / 1024:.0f} KiB")


def huggingface_directories() -> None:
    bf16, f16, f32 = torch.bfloat16, torch.float16, torch.float32
    common = dict(vocab_size=264, max_position_embeddings=512, bos_token_id=0, eos_token_id=2, pad_token_id=None)
    write_directory(
        "llama2-mha", LlamaForCausalLM,
        LlamaConfig(**common, hidden_size=48, intermediate_size=56, num_hidden_layers=2, num_attention_heads=3,
                    num_key_value_heads=3, rms_norm_eps=1e-5, tie_word_embeddings=False), bf16, old_config=True)
    llama3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
              "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    write_directory(
        "llama3-gqa-sharded", LlamaForCausalLM,
        LlamaConfig(**common, hidden_size=64, intermediate_size=72, num_hidden_layers=2, num_attention_heads=4,
                    num_key_value_heads=2, rms_norm_eps=1e-5, rope_parameters=llama3, tie_word_embeddings=True), bf16,
        shard="60KB")
    write_directory(
        "llama-biases", LlamaForCausalLM,
        LlamaConfig(**common, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=2,
                    num_key_value_heads=1, attention_bias=True, mlp_bias=True, tie_word_embeddings=False,
                    rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}), f16)
    write_directory(
        "mistral-window", MistralForCausalLM,
        MistralConfig(**common, hidden_size=48, intermediate_size=56, num_hidden_layers=2, num_attention_heads=3,
                      num_key_value_heads=1, sliding_window=11, tie_word_embeddings=False), f16)
    write_directory(
        "ministral-layer-types", MinistralForCausalLM,
        MinistralConfig(**common, hidden_size=48, intermediate_size=56, num_hidden_layers=3, num_attention_heads=3,
                        num_key_value_heads=1, head_dim=16, sliding_window=9, tie_word_embeddings=False,
                        layer_types=["sliding_attention", "full_attention", "sliding_attention"]), f16)
    write_directory(
        "qwen2-biases", Qwen2ForCausalLM,
        Qwen2Config(**{**common, "vocab_size": 272}, hidden_size=64, intermediate_size=72, num_hidden_layers=2,
                    num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True,
                    rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}), bf16, old_config=True)
    yarn = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 32}
    write_directory(
        "qwen2-sliding-yarn", Qwen2ForCausalLM,
        Qwen2Config(**common, hidden_size=48, intermediate_size=56, num_hidden_layers=2, num_attention_heads=3,
                    num_key_value_heads=3, tie_word_embeddings=True, use_sliding_window=True, sliding_window=9,
                    max_window_layers=1, rope_parameters=yarn), bf16)
    write_directory(
        "qwen3-qk-norm", Qwen3ForCausalLM,
        Qwen3Config(**common, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=2,
                    num_key_value_heads=1, head_dim=32, tie_word_embeddings=True,
                    rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}), f32)
    write_directory(
        "smollm2-tied", LlamaForCausalLM,
        LlamaConfig(**common, hidden_size=48, intermediate_size=64, num_hidden_layers=3, num_attention_heads=3,
                    num_key_value_heads=1, rms_norm_eps=1e-5, tie_word_embeddings=True,
                    rope_parameters={"rope_type": "default", "rope_theta": 100000.0}), bf16)


# ---------------------------------------------------------------- GGUF

LAYER_NAMES = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}
GLOBAL_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def gguf_name(name: str) -> str:
    stem, ending = name.rsplit(".", 1)
    if not stem.startswith("model.layers."):
        return f"{GLOBAL_NAMES[stem]}.{ending}"
    layer, rest = stem.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{LAYER_NAMES[rest]}.{ending}"


def permute(value: np.ndarray, n_heads: int) -> np.ndarray:
    """Permutes rows like LlamaModel.permute of llama.cpp's converter."""
    half = value.shape[0] // n_heads // 2
    return value.reshape(n_heads, 2, half, *value.shape[1:]).swapaxes(1, 2).reshape(value.shape)


def write_metadata(writer: gguf.GGUFWriter, config, architecture: str, name: str) -> None:
    writer.add_type("model")
    writer.add_name(name)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    d = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if d * config.num_attention_heads != config.hidden_size:
        writer.add_key_length(d)
        writer.add_value_length(d)
    if architecture == "llama":
        writer.add_vocab_size(config.vocab_size)
        writer.add_rope_dimension_count(d)
    tokens = vocabulary()
    padding = [f"[PAD{i}]" for i in range(config.vocab_size - len(tokens))]
    normal, control, unused = (gguf.TokenType.NORMAL, gguf.TokenType.CONTROL, gguf.TokenType.UNUSED)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm" if architecture == "llama" else "qwen2")
    writer.add_token_list(tokens + padding)
    writer.add_token_types([control] * len(SPECIAL) + [normal] * (len(tokens) - len(SPECIAL)) + [unused] * len(padding))
    writer.add_token_merges([" ".join(pair) for pair in MERGES])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)


def llama3_factors(config) -> np.ndarray:
    """Returns the rope_freqs.weight that llama.cpp's converter stores."""
    plain = LlamaConfig(hidden_size=config.hidden_size, num_attention_heads=config.num_attention_heads,
                        rope_parameters={"rope_type": "default", "rope_theta": config.rope_parameters["rope_theta"]})
    d = config.hidden_size // config.num_attention_heads
    base = 1.0 / (plain.rope_parameters["rope_theta"] ** (torch.arange(0, d, 2, dtype=torch.float32) / d))
    scaled = LlamaForCausalLM(config).model.rotary_emb.inv_freq
    return (base / scaled).numpy().astype(np.float32)


def rotated_heads(name: str, config, architecture: str) -> int:
    """Returns the number of heads of a matrix whose rows llama.cpp's converter reorders; 0 for other matrices."""
    if architecture != "llama":
        return 0
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    return next((n for part, n in heads.items() if part in name), 0)


def write_file(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_model(name: str, kind: type, config, store) -> None:
    """Writes model.gguf and golden.json with the first seed whose greedy continuation is unambiguous. `store(model, path)` writes
    the model to the path, and then gives the model the rounded weights from this file."""
    folder = MODELS / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for seed in range(100):
        model = kind(config)
        model.set_attn_implementation("eager")
        randomise(model, seed, torch.float32)
        store(model, folder / "model.gguf")
        result = golden(model, prompt(seed), "model.gguf")
        if result is not None:
            write_json(folder / "golden.json", result)
            report(folder)
            return
    raise SystemExit(f"{name}: no seed gives an unambiguous continuation")


def write_gguf(name: str, kind: type, config, architecture: str, types: list[gguf.GGMLQuantizationType]) -> None:
    """Writes matrices with the given types in turn, and vectors as f32, like llama.cpp's quantizer."""

    @torch.no_grad()
    def store(model: torch.nn.Module, path: pathlib.Path) -> None:
        writer = gguf.GGUFWriter(path, architecture)
        write_metadata(writer, config, architecture, name)
        if config.rope_parameters["rope_type"] == "llama3":
            writer.add_tensor("rope_freqs.weight", llama3_factors(config))
        turn = 0
        for parameter_name, parameter in model.named_parameters():
            value = parameter.numpy().copy()
            n_heads = rotated_heads(parameter_name, config, architecture)
            stored = permute(value, n_heads) if n_heads else value
            if value.ndim == 1:
                writer.add_tensor(gguf_name(parameter_name), stored)
                continue
            quantisation = types[turn % len(types)]
            turn += 1
            data = gguf.quants.quantize(np.ascontiguousarray(stored), quantisation)
            writer.add_tensor(gguf_name(parameter_name), data, raw_dtype=quantisation)
            back = gguf.quants.dequantize(data, quantisation).reshape(stored.shape)
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(unpermute(back, n_heads) if n_heads else back)))
        write_file(writer)

    write_model(name, kind, config, store)


def gguf_files() -> None:
    q = gguf.GGMLQuantizationType
    common = dict(vocab_size=264, max_position_embeddings=512, rms_norm_eps=1e-5, bos_token_id=0, eos_token_id=2)
    llama3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
              "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    write_gguf("gguf-llama-f32", LlamaForCausalLM,
               LlamaConfig(**common, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
                           num_key_value_heads=1, rope_parameters=llama3, tie_word_embeddings=False), "llama", [q.F32])
    write_gguf("gguf-llama-quantised", LlamaForCausalLM,
               LlamaConfig(**common, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                           num_key_value_heads=2, attention_bias=True, tie_word_embeddings=True,
                           rope_parameters={"rope_type": "default", "rope_theta": 10000.0}), "llama",
               [q.Q8_0, q.Q4_0, q.Q4_1, q.Q5_0, q.Q5_1, q.F16, q.BF16])
    write_gguf("gguf-qwen2-q8_0", Qwen2ForCausalLM,
               Qwen2Config(**{**common, "vocab_size": 272}, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                           num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True,
                           rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}), "qwen2", [q.Q8_0])
    write_gguf("gguf-qwen3-q4_0", Qwen3ForCausalLM,
               Qwen3Config(**common, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
                           num_key_value_heads=1, head_dim=32, tie_word_embeddings=False,
                           rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}), "qwen3", [q.Q4_0, q.F16])


# ---------------------------------------------------------------- quantisations

# Offsets of the float16 scales in a block of each type; negative offsets count from the end.
SCALES = {
    **dict.fromkeys(["Q4_0", "Q5_0", "Q8_0", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S", "IQ4_NL", "IQ4_XS"], [0]),
    **dict.fromkeys(["Q4_1", "Q5_1", "Q4_K", "Q5_K"], [0, 2]),
    **dict.fromkeys(["Q3_K", "Q6_K", "TQ1_0", "TQ2_0"], [-2]),
    "Q2_K": [-4, -2],
    "IQ1_M": [],  # four bits of the scale at each of four places
}


def random_blocks(quantisation: gguf.GGMLQuantizationType, shape: tuple[int, int], random: np.random.Generator) -> np.ndarray:
    """Returns blocks of random bytes with moderate scales, so that all values are finite."""
    block, n_bytes = gguf.GGML_QUANT_SIZES[quantisation]
    for _ in range(1000):
        data = random.integers(0, 256, (shape[0] * shape[1] // block, n_bytes), dtype=np.uint8)
        for at in SCALES[quantisation.name]:
            scales = random.uniform(0.01, 0.3, (len(data), 1)).astype(np.float16)
            data[:, at % n_bytes:at % n_bytes + 2] = scales.view(np.uint8)
        data = data.reshape(shape[0], -1)
        with np.errstate(all="ignore"):
            values = gguf.quants.dequantize(data, quantisation)
        if np.isfinite(values).all() and np.abs(values).max() < 1e4:
            return data
    raise SystemExit(f"{quantisation.name}: no finite random blocks")


def quantisations() -> None:
    """Writes a model with one head of four dimensions. Rows have 256 weights, because the largest blocks have 256."""
    folder = CHECKPOINT / "quantisations"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    q = gguf.GGMLQuantizationType
    types = [q.F16, q.BF16, q.Q4_0, q.Q4_1, q.Q5_0, q.Q5_1, q.Q8_0, q.Q2_K, q.Q3_K, q.Q4_K, q.Q5_K, q.Q6_K, q.TQ1_0,
             q.TQ2_0, q.IQ2_XXS, q.IQ2_XS, q.IQ2_S, q.IQ3_XXS, q.IQ3_S, q.IQ1_S, q.IQ1_M, q.IQ4_NL, q.IQ4_XS]
    slots = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"]
    n_layers = -(-len(types) // len(slots))
    config = LlamaConfig(vocab_size=264, hidden_size=256, intermediate_size=2, num_hidden_layers=n_layers,
                         num_attention_heads=1, num_key_value_heads=1, head_dim=4, max_position_embeddings=64,
                         rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    random = np.random.default_rng(7)
    writer = gguf.GGUFWriter(folder / "model.gguf", "llama")
    write_metadata(writer, config, "llama", "quantisations")
    zeros = lambda *shape: np.zeros(shape, np.float32)
    # The other tensors are small and contain zeros. In IQ1_S, bytes of 0 represent zeros.
    writer.add_tensor("token_embd.weight", np.zeros((264, 50), np.uint8), raw_dtype=q.IQ1_S)
    writer.add_tensor("output_norm.weight", zeros(256))
    expected = {}
    for layer in range(n_layers):
        prefix = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            writer.add_tensor(gguf_name(f"{prefix}{norm}.weight"), zeros(256))
        writer.add_tensor(gguf_name(f"{prefix}self_attn.o_proj.weight"), zeros(256, 4).astype(np.float16))
        writer.add_tensor(gguf_name(f"{prefix}mlp.down_proj.weight"), zeros(256, 2).astype(np.float16))
        for index, slot in enumerate(slots):
            quantisation = types[(layer * len(slots) + index) % len(types)]
            name = f"{prefix}{slot}.weight"
            shape = (2, 256) if "mlp" in slot else (4, 256)
            if quantisation in (q.F16, q.BF16):
                data = gguf.quants.quantize(random.standard_normal(shape).astype(np.float32), quantisation)
            else:
                data = random_blocks(quantisation, shape, random)
            values = gguf.quants.dequantize(data, quantisation).reshape(shape)
            if "q_proj" in slot or "k_proj" in slot:  # stored as interleaved pairs, reordered to two halves
                values = values.reshape(1, 2, 2, 256).swapaxes(1, 2).reshape(shape)
            expected[name] = np.ascontiguousarray(values, dtype=np.float32)
            writer.add_tensor(gguf_name(name), data, raw_dtype=quantisation)
    write_file(writer)
    safetensors.numpy.save_file(expected, folder / "expected.safetensors")
    (folder / "expected.safetensors").chmod(0o644)
    report(folder)


# ---------------------------------------------------------------- rotary embeddings

def rope_table() -> None:
    """Writes config.json files of transformers, and the frequencies computed from them."""
    cases = []
    base = dict(vocab_size=264, hidden_size=256, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
                num_key_value_heads=2, max_position_embeddings=131072)
    for rope in (
        {"rope_type": "default", "rope_theta": 10000.0},
        {"rope_type": "default", "rope_theta": 1000000.0},
        {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
        {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
         "original_max_position_embeddings": 8192},
        {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
         "original_max_position_embeddings": 8192},
        {"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0, "original_max_position_embeddings": 32768},
        {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 16.0, "original_max_position_embeddings": 4096,
         "beta_fast": 64.0, "beta_slow": 2.0, "attention_factor": 1.25},
        {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0, "original_max_position_embeddings": 4096,
         "mscale": 0.7, "mscale_all_dim": 1.0, "truncate": False},
    ):
        model = LlamaForCausalLM(LlamaConfig(**base, rope_parameters=dict(rope), architectures=["LlamaForCausalLM"]))
        rotary = model.model.rotary_emb
        config = json.loads(model.config.to_json_string(use_diff=False))
        keep = ["model_type", "head_dim", *base, "rope_parameters"]
        cases.append({
            "config": {key: config[key] for key in keep},
            "inverse_frequencies": floats(rotary.inv_freq),
            "attention_factor": rotary.attention_scaling,
        })
    CHECKPOINT.mkdir(parents=True, exist_ok=True)
    write_json(CHECKPOINT / "rope.json", {"cases": cases})


if __name__ == "__main__":
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    huggingface_directories()
    gguf_files()
    quantisations()
    rope_table()
