"""Second implementation of EchoKV, in NumPy and PyTorch: maps from a formula, by least squares and by gradient descent.

    echokv.py runs        tests/data/engine/echokv_runs.json alone
    echokv.py training    tests/data/engine/echo_training.json alone
    echokv.py descent     tests/data/engine/echo_descent.json alone

echokv_runs.json: runs of the default model in float64
  max_tokens, eos
  prompts: name -> a list of
      policy         in the syntax of the command line, except the maps, which map_of computes
      group_layers, local_dims, sinks, recent
      rebuilt_layers all layers except the first of each group
      exact_tokens   positions that are exact in those layers after the prompt
      bytes          (L) stored numbers of the prompt
      key_error      (L, G) 2-norm of rebuilt minus true keys over the prompt's tokens, relative to the true keys
      value_error    (L, G) the same for values
      step_kl, step_agreement, agreement_margin, output_ids, output_margin, output_error   as in runs.json, with
                     the run's cache at each step

Also during decoding, only the sinks and the last `recent` tokens are exact. A new token attends to the cache before it
causes the reduction of another token. After its attention in a rebuilt layer, the tokens from `sinks` on are reduced, except
the last `recent` tokens, which include the new token. Each keeps its first local_dims numbers, and the map rebuilds the rest
from the run's values in the group's first layer. With recent=0, a token is reduced right after its own attention. If the
prompt is shorter than sinks + recent, no token is reduced after the prompt, and reductions begin during decoding.

Element (i, j) of a layer's map has input row i and output column j; kind is 0 for keys and 1 for values:
float32((i == j + local_dims ? 0.8 : 0) + 0.02 sin(0.37 (i + 1) (j + 1) + layer + 0.5 kind)), computed in float64.

echo_training.json: errors over all tokens of a text, including sinks
  text, held_out: prompt (name in prompt_ids.json), tokens (number of its first ids, including the BOS token), ids
  ridge
  cases: group_layers, local_dims,
      layers   the rebuilt layers
      text, held_out: keys, values: (layers) |X W - Y| / |Y| over all tokens, X = [first layer ; own first dimensions],
               Y = its other dimensions, W = (X^T X + ridge mean(diag(X^T X)) I)^-1 X^T Y of `text`
      copied_text, copied_held_out: the same errors if the prediction is a copy of the first layer's other dimensions;
               predicting zero has the error 1

echo_descent.json: torch.optim.AdamW with CosineAnnealingLR in float64, with autograd
  ids, sequence, skipped, steps, rate, seed
  cases: group_layers, local_dims
      loss_of  keys-values: maps start as nn.Linear, with the draws of `untrained`; outputs, qk-kl: maps start as map_of
      loss     (steps) before each step, summed over the layers: MSE(K^, K) + MSE(V^, V) of the rebuilt dimensions; MSE of
               attention outputs; mean KL(A || A~) over queries and heads
      error    (steps) sqrt(loss / the summed mean squares of the target); qk-kl: loss / number of layers
"""

import json
import sys

import numpy as np
import torch
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from observe import attend
from reference_model import DATA, load_prompts
from runs import forced, generate, rounded
from stored import Ageing, cache_errors, exact_model, projection_inputs, projection_weights, replace, replaced, run_cases, write_runs

CASES = {
    "short": [
        ("echokv:group_layers=2,local_dims=0", (2, 0, 4, 128)),
        ("echokv:group_layers=3,local_dims=64,recent=16", (3, 64, 4, 16)),
        ("echokv:group_layers=2,local_dims=64,recent=0", (2, 64, 4, 0)),
    ],
    "rewrite": [
        ("echokv:group_layers=4,local_dims=16", (4, 16, 4, 128)),
        ("echokv:group_layers=2,local_dims=64,recent=254", (2, 64, 4, 254)),
    ],
}
TRAINED = [(2, 0), (4, 16)]
TEXT, HELD_OUT = ("demo", 512), ("short", None)
RIDGE = 1e-4
DESCENTS = [(2, 0, "keys-values"), (4, 16, "keys-values"), (4, 16, "outputs"), (2, 0, "qk-kl")]
STEPS, SEQUENCE, SKIPPED, RATE, SEED = 8, 64, 4, 2e-3, 42


def map_of(layer, kind, width, local_dims):
    """Returns the map (width + local_dims, width - local_dims), with values of float32."""
    i, j = np.arange(width + local_dims)[:, None], np.arange(width - local_dims)[None, :]
    return (np.where(i == j + local_dims, 0.8, 0) + 0.02 * np.sin(0.37 * (i + 1) * (j + 1) + layer + 0.5 * kind)).astype(np.float32).astype(float)


def first_of(layer, group_layers):
    return layer - layer % group_layers


def inputs_of(caches, layer, group_layers, local_dims):
    """Returns the inputs (N, D + local_dims) of a layer's map."""
    return np.concatenate((caches[first_of(layer, group_layers)], caches[layer][:, :local_dims]), 1)


def rebuilt_layers(n_layers, group_layers):
    return [layer for layer in range(n_layers) if layer % group_layers]


def rebuild(caches, kind, group_layers, local_dims, exact_tokens):
    """Returns each layer's cache (N, D) after rebuilding. `caches` are the caches before it."""
    result = [cache.copy() for cache in caches]
    n, width = caches[0].shape
    gone = np.setdiff1d(np.arange(n), exact_tokens)
    for layer in rebuilt_layers(len(caches), group_layers):
        given = inputs_of(caches, layer, group_layers, local_dims)[gone]
        result[layer][gone, local_dims:] = given @ map_of(layer, kind, width, local_dims)
    return result


def caches_of(exact, ids):
    """Returns the observation and, per layer, keys before RoPE and values, each (N, D)."""
    observation, inputs = projection_inputs(exact, ids)
    weights = projection_weights(exact)
    keys, values = ([x @ w[part].T for x, w in zip(inputs, weights)] for part in (0, 1))
    unchanged = cache_errors(observation, replaced(exact, observation, keys, values))
    assert max(np.max(unchanged["key_error"]), np.max(unchanged["value_error"])) < 1e-12
    return observation, keys, values


def exact_of(n, sinks, recent):
    """Returns the positions among the first n tokens that are stored exactly."""
    return np.unique(np.r_[np.arange(min(sinks, n)), np.arange(max(n - recent, 0), n)])


def reduced_of(sinks, recent):
    return lambda n: np.setdiff1d(np.arange(n), exact_of(n, sinks, recent))


def store(exact, prepared, parameters):
    observation, keys, values = prepared
    group_layers, local_dims, sinks, recent = parameters
    n, width = keys[0].shape
    reduced = rebuilt_layers(len(keys), group_layers)

    def hold(cache, *parts):
        exact_tokens = exact_of(len(parts[0][0]), sinks, recent)
        parts = [rebuild(part, kind, group_layers, local_dims, exact_tokens) for kind, part in enumerate(parts)]
        replace(exact, cache, *parts, reduced)

    run = Ageing(exact, prepared, hold, reduced_of(sinks, recent), reduced)
    exact_tokens = exact_of(n, sinks, recent)
    whole, part = 2 * n * width, 2 * (exact_tokens.size * width + (n - exact_tokens.size) * local_dims)
    return run, {
        "group_layers": group_layers, "local_dims": local_dims, "sinks": sinks, "recent": recent,
        "rebuilt_layers": reduced,
        "exact_tokens": exact_tokens.tolist(),
        "bytes": [part if layer in reduced else whole for layer in range(len(keys))],
        **cache_errors(observation, run.changed),
    }


def check_full(exact, cases, store):
    """Checks that a run in which every token is recent equals the full run."""
    prepared = caches_of(exact, load_prompts()["short"]["ids"])
    tokens, _ = generate(exact, prepared[0], limit=4)
    full, full_decoded = forced(exact, prepared[0], tokens)
    run, facts = store(exact, prepared, (*cases["short"][0][1][:3], 1000))
    logits, errors = run.forced(tokens, full_decoded)
    assert (logits - full).abs().max() < 1e-9 and np.max(errors) < 1e-9 and np.max(facts["key_error"]) < 1e-12


def write_stored_runs(exact):
    check_full(exact, CASES, store)
    write_runs("echokv_runs.json", exact, run_cases(exact, CASES, caches_of, store), "echokv.py")


def least_squares(x, y):
    moment = x.T @ x
    return np.linalg.solve(moment + RIDGE * np.diag(moment).mean() * np.eye(len(moment)), x.T @ y)


def errors(predict, caches, group_layers, local_dims):
    """Returns the errors of keys and values in rebuilt layers. predict(kind, layer, X) returns (N, D - local_dims)."""
    result = {}
    for kind, name in enumerate(("keys", "values")):
        result[name] = []
        for layer in rebuilt_layers(len(caches[kind]), group_layers):
            truth = caches[kind][layer][:, local_dims:]
            given = inputs_of(caches[kind], layer, group_layers, local_dims)
            result[name].append(np.linalg.norm(predict(kind, layer, given) - truth) / np.linalg.norm(truth))
    return result


def write_training(exact):
    texts, caches = {}, {}
    for role, (prompt, n) in (("text", TEXT), ("held_out", HELD_OUT)):
        ids = load_prompts()[prompt]["ids"][:n]
        texts[role] = {"prompt": prompt, "tokens": len(ids), "ids": ids}
        caches[role] = caches_of(exact, ids)[1:]
    cases = []
    for group_layers, local_dims in TRAINED:
        layers = rebuilt_layers(exact.config.num_hidden_layers, group_layers)
        maps = [
            {
                layer: least_squares(inputs_of(part, layer, group_layers, local_dims), part[layer][:, local_dims:])
                for layer in layers
            }
            for part in caches["text"]
        ]
        width = caches["text"][0][0].shape[1]
        found = {"group_layers": group_layers, "local_dims": local_dims, "layers": layers}
        for role in caches:
            for name, predict in (
                (role, lambda kind, layer, given: given @ maps[kind][layer]),
                ("copied_" + role, lambda kind, layer, given: given[:, local_dims:width]),
            ):
                measured = errors(predict, caches[role], group_layers, local_dims)
                found[name] = {part: rounded(values, 6) for part, values in measured.items()}
                print(f"S = {group_layers}, D_local = {local_dims}, {name}:",
                      *(f"{part} mean {np.mean(values):.4f} ({np.min(values):.4f} to {np.max(values):.4f})" for part, values in measured.items()))
        cases.append(found)
    document = {"about": "scripts/golden/echokv.py", **texts, "ridge": RIDGE, "cases": cases}
    (DATA / "engine" / "echo_training.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")


class SplitMix64:
    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = z = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    def unit(self):
        return (self.next() >> 11) / 2**53


def untrained(layer, kind, width, local_dims):
    """Returns an initial map (width + local_dims, width - local_dims), with values of float32."""
    random = SplitMix64(SplitMix64(SEED ^ (layer << 32 | kind)).next())
    shape = width + local_dims, width - local_dims
    numbers = np.array([2 * random.unit() - 1 for _ in range(shape[0] * shape[1])]) / np.sqrt(shape[0])
    return numbers.astype(np.float32).astype(float).reshape(shape)


def sequence_of(exact, ids):
    """Returns, per layer, queries (H, n, d) after RoPE, keys before RoPE and values (n, D)."""
    _, inputs = projection_inputs(exact, ids)
    layers = []
    for x, block in zip(inputs, exact.model.model.layers):
        q, k, v = (torch.tensor(x @ part.weight.numpy().T) for part in
                   (block.self_attn.q_proj, block.self_attn.k_proj, block.self_attn.v_proj))
        layers.append((rope(exact, heads_of(exact, q)), k, v))
    return layers


def heads_of(exact, x):
    """Reshapes (n, heads * d) to (heads, n, d)."""
    return x.reshape(len(x), -1, exact.config.hidden_size // exact.config.num_attention_heads).transpose(0, 1)


def rope(exact, heads):
    cos, sin = exact.model.model.rotary_emb(heads, torch.arange(heads.shape[1])[None])
    return apply_rotary_pos_emb(heads[None], heads[None], cos, sin)[0][0]


def layer_loss(exact, loss_of, queries, true, rebuilt, local_dims):
    """Returns (loss, mean square of the target). true, rebuilt: keys before RoPE and values, (n, D) each"""
    if loss_of == "keys-values":
        parts = [(now[SKIPPED:, local_dims:], was[SKIPPED:, local_dims:]) for now, was in zip(rebuilt, true)]
        return sum((now - was).square().mean() for now, was in parts), sum(was.square().mean() for _, was in parts)
    n = queries.shape[1]
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    (was, weights), (now, changed) = (
        attend(queries, rope(exact, heads_of(exact, k)), heads_of(exact, v), mask) for k, v in (true, rebuilt))
    if loss_of == "outputs":
        return (now - was).square().mean(), was.square().mean()
    ratio = torch.where(mask, weights / changed.where(mask, 1), 1)
    return (weights * ratio.log()).sum(-1).mean(), torch.tensor(1.0)


def rebuilt_parts(layers, layer, maps, group_layers, local_dims):
    result = []
    for kind in (0, 1):
        own, first = layers[layer][1 + kind], layers[first_of(layer, group_layers)][1 + kind]
        predicted = torch.cat((first, own[:, :local_dims]), 1) @ maps[layer, kind]
        result.append(torch.cat((own[:SKIPPED], torch.cat((own[:, :local_dims], predicted), 1)[SKIPPED:])))
    return result


def descend(exact, sequences, group_layers, local_dims, loss_of):
    start = untrained if loss_of == "keys-values" else map_of
    width = sequences[0][0][1].shape[1]
    layers = rebuilt_layers(exact.config.num_hidden_layers, group_layers)
    maps = {(layer, kind): torch.tensor(start(layer, kind, width, local_dims), requires_grad=True) for layer in layers for kind in (0, 1)}
    optimizer = torch.optim.AdamW(maps.values(), lr=RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)
    losses, errors = [], []
    for sequence in sequences:
        pairs = [
            layer_loss(exact, loss_of, sequence[layer][0], sequence[layer][1:],
                       rebuilt_parts(sequence, layer, maps, group_layers, local_dims), local_dims)
            for layer in layers
        ]
        loss, whole = (sum(parts) for parts in zip(*pairs))
        losses.append(loss.item())
        errors.append((loss / whole).item() if loss_of == "qk-kl" else (loss / whole).sqrt().item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    print(f"S = {group_layers}, D_local = {local_dims}, {loss_of}: error", *(f"{error:.4f}" for error in errors))
    return {"group_layers": group_layers, "local_dims": local_dims, "loss_of": loss_of, "loss": losses, "error": errors}


def write_descent(exact):
    ids = load_prompts()[TEXT[0]]["ids"][:TEXT[1]]
    random = SplitMix64(SEED)
    starts = [random.next() % (len(ids) - SEQUENCE + 1) for _ in range(STEPS)]
    sequences = [sequence_of(exact, ids[start:start + SEQUENCE]) for start in starts]
    document = {
        "about": "scripts/golden/echokv.py", "ids": ids, "sequence": SEQUENCE, "skipped": SKIPPED, "steps": STEPS, "rate": RATE,
        "seed": SEED, "cases": [descend(exact, sequences, *case) for case in DESCENTS],
    }
    (DATA / "engine" / "echo_descent.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")


def main():
    exact = exact_model()
    if sys.argv[1:] in ([], ["runs"]):
        write_stored_runs(exact)
    if sys.argv[1:] in ([], ["training"]):
        write_training(exact)
    if sys.argv[1:] in ([], ["descent"]):
        write_descent(exact)


if __name__ == "__main__":
    main()
