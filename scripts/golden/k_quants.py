"""Tiny models that llama.cpp quantized to K-quants, with reference results from transformers.

    scripts/golden/python scripts/golden/k_quants.py

writes tests/data/models/gguf-…-q…_k…/model.gguf and golden.json (described in tiny_models.py). A random model is written in
f32 and quantized by llama.cpp, which chooses a format per matrix, so one file contains several formats. The golden numbers
come from transformers with blocks dequantized by the NumPy code of the package `gguf`, without llama.cpp. Needs the package
llama-cpp-python, which `bench/run --setup` compiles in the same environment.
"""

import ctypes
import tempfile
import pathlib
from collections import Counter

import gguf
import llama_cpp
import numpy as np
import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from prompt_ids import QUIET
from reference_model import unpermute
from tiny_models import gguf_name, permute, rotated_heads, write_file, write_metadata, write_model


def write_f32(path: pathlib.Path, model: torch.nn.Module, architecture: str, name: str) -> None:
    config = model.config
    writer = gguf.GGUFWriter(path, architecture)
    write_metadata(writer, config, architecture, name)
    for parameter_name, parameter in model.named_parameters():
        value = parameter.detach().numpy()
        n_heads = rotated_heads(parameter_name, config, architecture)
        writer.add_tensor(gguf_name(parameter_name), np.ascontiguousarray(permute(value, n_heads) if n_heads else value))
    write_file(writer)


def quantise(source: pathlib.Path, to: pathlib.Path, kind: int) -> None:
    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.ftype = kind
    parameters.nthread = 1
    if llama_cpp.llama_model_quantize(str(source).encode(), str(to).encode(), ctypes.byref(parameters)) != 0:
        raise SystemExit(f"llama.cpp cannot quantize {source}")


def take_over(model: torch.nn.Module, path: pathlib.Path, architecture: str) -> Counter:
    """Copies the file's weights into the model. @returns the number of matrices per format"""
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    formats = Counter(tensor.tensor_type.name for tensor in stored.values() if len(tensor.shape) > 1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            tensor = stored.pop(gguf_name(name))
            value = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(parameter.shape)
            n_heads = rotated_heads(name, model.config, architecture)
            parameter.copy_(torch.from_numpy(np.array(unpermute(value, n_heads) if n_heads else value)))
    assert not stored, f"left over: {[*stored]}"
    return formats


def write_quantised(name: str, kind: type, config, architecture: str, quantisation: int) -> None:
    formats = Counter()

    def store(model: torch.nn.Module, path: pathlib.Path) -> None:
        nonlocal formats
        with tempfile.TemporaryDirectory() as temporary:
            source = pathlib.Path(temporary) / "f32.gguf"
            write_f32(source, model, architecture, name)
            quantise(source, path, quantisation)
        formats = take_over(model, path, architecture)

    write_model(name, kind, config, store)
    print("  " + ", ".join(f"{n} {kind}" for kind, n in sorted(formats.items())))


def main() -> None:
    llama_cpp.llama_log_set(QUIET, None)
    common = dict(max_position_embeddings=512, rms_norm_eps=1e-5, bos_token_id=0, eos_token_id=2, hidden_size=256,
                  intermediate_size=256, num_hidden_layers=1, tie_word_embeddings=True)
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    write_quantised("gguf-llama-q3_k_m", LlamaForCausalLM,
                    LlamaConfig(**common, vocab_size=264, num_attention_heads=4, num_key_value_heads=1, rope_parameters=rope),
                    "llama", llama_cpp.LLAMA_FTYPE_MOSTLY_Q3_K_M)
    # The outputs of the heads are 64 wide, less than a block of 256, so llama.cpp uses another format.
    write_quantised("gguf-qwen2-q2_k", Qwen2ForCausalLM,
                    Qwen2Config(**common, vocab_size=272, num_attention_heads=2, num_key_value_heads=1, head_dim=32,
                                rope_parameters=rope),
                    "qwen2", llama_cpp.LLAMA_FTYPE_MOSTLY_Q2_K)


if __name__ == "__main__":
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    main()
