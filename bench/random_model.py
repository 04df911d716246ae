"""usage: random_model.py TOKENIZER.gguf OUT.gguf [--layers N ...]: writes a Llama model with random Q4_0 weights, to measure speed.

Tokenizer and vocabulary size are copied from another file. The default sizes are those of Llama-3.1-8B.
--vocabulary-only writes the tokenizer without weights, for making the model on another machine.
"""

import argparse
import pathlib

import gguf
import numpy as np

BLOCK = np.dtype([("scale", "<f2"), ("numbers", "u1", 16)])  # 32 weights of Q4_0


def copy_tokenizer(reader, writer):
    for name, field in reader.fields.items():
        if name.startswith("tokenizer."):
            inner = field.types[1] if len(field.types) > 1 else None
            writer.add_key_value(name, field.contents(), field.types[0], inner)


def blocks(n, generator):
    """Returns n weights with standard deviation 0.02. Long tensors repeat a block of about 8 million weights."""
    made = np.zeros(min(n // 32, 1 << 18), BLOCK)
    made["scale"] = 0.02 / 4.6
    made["numbers"] = generator.integers(0, 256, made["numbers"].shape, np.uint8)
    return np.resize(made, n // 32).view(np.uint8)


def shapes(sizes, n_vocabulary):
    d, kv = sizes.embedding, sizes.embedding // sizes.heads * sizes.kv_heads
    yield "token_embd.weight", (n_vocabulary, d)
    for layer in range(sizes.layers):
        for name, shape in {"attn_q": (d, d), "attn_k": (kv, d), "attn_v": (kv, d), "attn_output": (d, d),
                            "ffn_gate": (sizes.feed_forward, d), "ffn_up": (sizes.feed_forward, d),
                            "ffn_down": (d, sizes.feed_forward), "attn_norm": (d,), "ffn_norm": (d,)}.items():
            yield f"blk.{layer}.{name}.weight", shape
    yield "output_norm.weight", (d,)
    yield "output.weight", (n_vocabulary, d)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--embedding", type=int, default=4096)
    parser.add_argument("--feed-forward", type=int, default=14336)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--kv-heads", type=int, default=8)
    parser.add_argument("--vocabulary-only", action="store_true")
    sizes = parser.parse_args()
    reader = gguf.GGUFReader(sizes.tokenizer)
    writer = gguf.GGUFWriter(sizes.out, "llama")
    copy_tokenizer(reader, writer)
    writer.add_name("random")
    writer.add_block_count(sizes.layers)
    writer.add_context_length(131072)
    writer.add_embedding_length(sizes.embedding)
    writer.add_feed_forward_length(sizes.feed_forward)
    writer.add_head_count(sizes.heads)
    writer.add_head_count_kv(sizes.kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(sizes.embedding // sizes.heads)
    writer.add_rope_freq_base(500000.0)
    all_shapes = [] if sizes.vocabulary_only else list(
        shapes(sizes, len(reader.fields["tokenizer.ggml.tokens"].data)))
    for name, shape in all_shapes:
        if len(shape) == 1:
            writer.add_tensor_info(name, shape, np.dtype(np.float32), shape[0] * 4)
        else:
            stored = (shape[0], shape[1] // 32 * BLOCK.itemsize)
            writer.add_tensor_info(name, stored, np.dtype(np.uint8), stored[0] * stored[1], gguf.GGMLQuantizationType.Q4_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    generator = np.random.default_rng(0)
    for _, shape in all_shapes:
        writer.write_tensor_data(np.ones(shape, np.float32) if len(shape) == 1 else blocks(shape[0] * shape[1], generator))
    writer.close()


if __name__ == "__main__":
    main()
