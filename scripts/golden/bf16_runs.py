"""Reference runs in bf16, with NumPy only: tests/data/engine/bf16_runs.json.

    python3 scripts/golden/bf16_runs.py        needs only NumPy

  models: name (of tests/data/models) ->
    prompt_ids, first_logits     random ids, and the logits (vocabulary) after the prompt
    full: {output_ids}           TOKENS greedy ids
    cases: a list of
      policy, budget             streaming-llm, whose kept entries depend on neither scores nor rounding
      step_kl, step_agreement, output_ids, output_error       as in runs.json
    spread: {logits, step_kl, output_error}    largest change under other orders of summation, see below
    spread_pairs     the same with rounded attention weights
    to_f32           largest difference to float64 without rounding

kvscope holds weights, activations and caches in bf16 and the residual stream in f32, and sums in f32. This script rounds
the same values at the same places and computes everything else in float64. The two differ if a value is so close to the
middle of two bf16 numbers that sums in f32 round to the other number. One such flip changes all later values by about the
precision of bf16. So prompts are drawn until one has no such values. To check a prompt, the script computes it DRAWS times,
with sums disturbed by the error of f32 (NOISE times the sum of the absolute terms). No logit may change by FLIPLESS. The test
can then require agreement within about FLIPLESS. CPUs with bf16 products also round the attention weights of the prefill, which
changes all values. For these CPUs, the test allows twice the largest change that this rounding makes here.

main() asserts that the logits without rounding equal those of transformers in golden.json (1e-4).
"""

import json
import pathlib
import struct

import numpy as np

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"
MODELS = ["llama3-gqa-sharded", "llama-biases"]
BUDGETS = [10, 16]
SINKS = 4
N_PROMPT = 24
TOKENS = 8
DRAWS = 16
NOISE = 6e-8
FLIPLESS = 1e-4
MARGIN = 1.5  # smallest gap between the best and the second logit, as a factor of the spread with rounded attention


def to_bf16(x):
    """Rounds to the nearest bf16, ties to even. Returns float64."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return rounded.astype(np.uint32).view(np.float32).astype(np.float64)


def to_f32(x):
    return np.asarray(x, np.float32).astype(np.float64)


def read_safetensors(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = data[8 + size + begin : 8 + size + end]
        if entry["dtype"] == "BF16":
            values = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(raw, {"F32": np.float32, "F16": np.float16}[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"]).astype(np.float64)
    return tensors


class Model:
    """With bf16, rounds where kvscope rounds; otherwise computes in float64."""

    def __init__(self, name, bf16=True, disturbance=None, rounded_attention=False):
        folder = DATA / "models" / name
        self.config = json.loads((folder / "config.json").read_text())
        self.golden = json.loads((folder / "golden.json").read_text())
        self.bf16, self.disturbance, self.rounded_attention = bf16, disturbance, rounded_attention
        tensors = {}
        for path in sorted(folder.glob("*.safetensors")):
            tensors |= read_safetensors(path)
        # Norms and biases are f32.
        self.weights = {
            k: self.round(v) if v.ndim == 2 else v for k, v in tensors.items()
        }
        self.d = self.config["head_dim"]
        self.n_heads, self.n_kv_heads = self.config["num_attention_heads"], self.config["num_key_value_heads"]
        self.n_layers = self.config["num_hidden_layers"]
        self.inverse = np.asarray(self.golden["inverse_frequencies"], np.float32).astype(np.float64)
        assert self.golden.get("attention_factor", 1.0) == 1.0

    def round(self, x):
        return to_bf16(x) if self.bf16 else x

    def round_residual(self, x):
        return to_f32(x) if self.bf16 else x

    def product(self, a, b):
        """Returns a b^T. Disturbs the sums if `disturbance` is a random generator."""
        result = a @ b.swapaxes(-1, -2)
        if self.disturbance is not None:
            size = np.abs(a) @ np.abs(b).swapaxes(-1, -2)
            result = result + NOISE * size * self.disturbance.uniform(-1, 1, result.shape)
        return result

    def linear(self, x, name):
        y = self.product(x, self.weights[name + ".weight"])
        return self.round(y + self.weights.get(name + ".bias", 0.0))

    def norm(self, x, name):
        scale = np.sqrt((x * x).mean(-1, keepdims=True) + self.config["rms_norm_eps"])
        return self.round(x / scale * self.weights[name + ".weight"])

    def rotate(self, x, positions):
        """Applies RoPE to x (n, heads, d). Element c pairs with c + d / 2."""
        angles = positions[:, None] * self.inverse
        cosines, sines = to_f32(np.cos(angles))[:, None], to_f32(np.sin(angles))[:, None]
        low, high = np.split(x, 2, axis=-1)
        return self.round(np.concatenate((low * cosines - high * sines, high * cosines + low * sines), -1))

    def attention(self, q, keys, values):
        """Returns causal attention for q (n, H, d). The queries are the last n tokens of keys and values (entries, G, d)."""
        n, entries = len(q), len(keys)
        visible = np.arange(entries)[None] <= np.arange(entries - n, entries)[:, None]
        out = np.empty_like(q)
        for h in range(self.n_heads):
            g = h // (self.n_heads // self.n_kv_heads)
            logits = self.product(q[:, h], keys[:, g]) / np.sqrt(self.d)
            logits = np.where(visible, logits, -np.inf)
            weights = np.exp(logits - logits.max(1, keepdims=True))
            total = weights.sum(1, keepdims=True)
            if self.rounded_attention:
                weights = to_bf16(weights)
            out[:, h] = self.product(weights, values[:, g].T) / total
        return self.round(out)

    def feed(self, ids, first, cache):
        """Appends ids to the cache. Returns logits (n, vocabulary) and each layer's queries and outputs."""
        positions = np.arange(first, first + len(ids), dtype=np.float64)
        residual = self.weights["model.embed_tokens.weight"][ids]
        record = []
        for layer in range(self.n_layers):
            prefix = f"model.layers.{layer}."
            x = self.norm(residual, prefix + "input_layernorm")
            q, k, v = (self.linear(x, f"{prefix}self_attn.{c}_proj").reshape(len(ids), -1, self.d) for c in "qkv")
            q, k = self.rotate(q, positions), self.rotate(k, positions)
            keys, values = cache[layer]
            cache[layer] = np.concatenate((keys, k)), np.concatenate((values, v))
            out = self.attention(q, *cache[layer])
            record.append((q, out))
            projected = self.linear(out.reshape(len(ids), -1), prefix + "self_attn.o_proj")
            residual = self.round_residual(residual + projected)
            x = self.norm(residual, prefix + "post_attention_layernorm")
            gate, up = self.linear(x, prefix + "mlp.gate_proj"), self.linear(x, prefix + "mlp.up_proj")
            inner = self.round(gate / (1 + np.exp(-gate)) * up)
            residual = self.round_residual(residual + self.linear(inner, prefix + "mlp.down_proj"))
        head = self.weights.get("lm_head.weight", self.weights["model.embed_tokens.weight"])
        return self.product(self.norm(residual, "model.norm"), head), record

    def empty(self):
        nothing = np.zeros((0, self.n_kv_heads, self.d))
        return [(nothing, nothing)] * self.n_layers


def generate(model, cache, logits, first):
    ids, margin = [], np.inf
    while True:
        low, high = np.sort(logits)[-2:]
        margin = min(margin, high - low)
        ids.append(int(logits.argmax()))
        if len(ids) == TOKENS:
            return ids, margin
        logits = model.feed(ids[-1:], first + len(ids) - 1, cache)[0][-1]


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def compute(model, ids, answer=None):
    """Returns a model's results and margins. All runs read the ids `answer`, by default the full run's answer."""
    prompt = model.empty()
    first_logits = model.feed(ids, 0, prompt)[0][-1]
    own, margin = generate(model, list(prompt), first_logits, len(ids))
    answer = answer or own
    full = list(prompt)
    full_logits, full_record = model.feed(answer, len(ids), full)
    full_logits = np.concatenate((first_logits[None], full_logits[:-1]))
    cases = []
    for budget in BUDGETS:
        kept = [*range(SINKS), *range(len(ids) - budget + SINKS, len(ids))]
        compressed = [(keys[kept], values[kept]) for keys, values in prompt]
        output, output_margin = generate(model, list(compressed), first_logits, len(ids))
        logits, _ = model.feed(answer, len(ids), compressed)
        logits = np.concatenate((first_logits[None], logits[:-1]))
        p, q = log_softmax(full_logits), log_softmax(logits)
        errors = []
        for layer in range(model.n_layers):
            queries, expected = full_record[layer]
            found = model.attention(queries, *compressed[layer])
            error = np.linalg.norm(found - expected, axis=2) / np.linalg.norm(expected, axis=2)
            errors.append(error.mean(0))
        best = np.sort(logits)[:, -2:]
        cases.append({
            "budget": budget,
            "step_kl": np.maximum((np.exp(p) * (p - q)).sum(1), 0),
            "step_agreement": (full_logits.argmax(1) == logits.argmax(1)).astype(int),
            "output_ids": output,
            "output_error": np.array(errors),
            "logits": logits,
            "margin": min(output_margin, (best[:, 1] - best[:, 0]).min()),
        })
    return {"first_logits": first_logits, "logits": full_logits, "output_ids": own, "margin": margin, "cases": cases}


def spread_of(found, others):
    """Returns the largest changes of logits, step KL and output errors."""
    largest = lambda pick: max(np.abs(pick(found) - pick(other)).max() for other in others)
    case = lambda name: lambda one: np.concatenate([np.ravel(c[name]) for c in one["cases"]])
    logits = lambda one: np.concatenate((one["logits"], *(c["logits"] for c in one["cases"])))
    return {"logits": largest(logits), "step_kl": largest(case("step_kl")),
            "output_error": largest(case("output_error"))}


def rounded(x, digits=7):
    if isinstance(x, (list, tuple, np.ndarray)):
        return [rounded(v, digits) for v in x]
    return float(f"{float(x):.{digits}g}")


def of_model(name):
    exact = Model(name, bf16=False)
    logits = exact.feed(exact.golden["input_ids"], 0, exact.empty())[0]
    difference = np.abs(logits[exact.golden["positions"]] - np.array(exact.golden["logits"])).max()
    assert difference < 1e-4, difference

    for seed in range(10000):
        ids = np.random.default_rng(seed).integers(3, exact.config["vocab_size"], N_PROMPT).tolist()
        found = compute(Model(name), ids)
        margin = min(one["margin"] for one in (found, *found["cases"]))
        if margin < 0.05:
            continue
        answer = found["output_ids"]
        disturbed = lambda draw, **more: compute(Model(name, disturbance=np.random.default_rng(draw), **more), ids, answer)
        same = []
        while len(same) < DRAWS and spread_of(found, same or [found])["logits"] < FLIPLESS:
            same.append(disturbed(len(same)))
        spread = spread_of(found, same)
        if spread["logits"] >= FLIPLESS:
            continue
        pairs = spread_of(found, [disturbed(draw, rounded_attention=True) for draw in range(DRAWS)])
        unrounded = compute(exact, ids, answer)
        of_f32 = spread_of(found, [unrounded])
        print(name, "seed", seed, "margin", margin, "\n  spread", spread, "\n  with rounded attention", pairs, "\n  to f32", of_f32, flush=True)
        if margin > MARGIN * pairs["logits"]:
            break
    else:
        raise SystemExit("no prompt whose answers are certain")
    return {
        "prompt_ids": ids,
        "first_logits": rounded(found["first_logits"]),
        "full": {"output_ids": answer},
        "cases": [{
            "policy": "streaming-llm",
            "budget": c["budget"],
            "step_kl": rounded(c["step_kl"]),
            "step_agreement": c["step_agreement"].tolist(),
            "output_ids": c["output_ids"],
            "output_error": rounded(c["output_error"]),
        } for c in found["cases"]],
        **{name: {k: rounded(v, 3) for k, v in one.items()}
           for name, one in {"spread": spread, "spread_pairs": pairs, "to_f32": of_f32}.items()},
    }


def main():
    document = {"about": "scripts/golden/bf16_runs.py", "models": {name: of_model(name) for name in MODELS}}
    (DATA / "engine" / "bf16_runs.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
