"""Second implementation of KVSlimmer and AsymKV in the default model: the merges of kvslimmer_merges.py, the model from
transformers, AsymKV's gradients from PyTorch's autograd.

    scripts/golden/python scripts/golden/kvslimmer.py            tests/data/engine/chunked_runs.json
    scripts/golden/python scripts/golden/kvslimmer.py decoding   only the cases of that file that merge during decoding
    scripts/golden/python scripts/golden/kvslimmer.py new        only the cases that the file lacks

chunked_runs.json: runs of the default model in float64
  gradients: of a chunk's loss with respect to the keys of earlier tokens, without merging
      prompt, past, chunk       the chunk follows the first `past` tokens
      norms                     (L, G) 2-norm over the keys of a head
      sums                      (L, G) weighted sum over all coordinates; weight of coordinate i of a head: 1 + i modulo 7
  prompts: name -> a list of
      policy, budget
      positions    prompt position of each entry's last token, per layer; also with `cap`
      masses       n of each entry, per layer; without `cap` the number of its tokens
      key_norms    (L, G) 2-norm over a head's keys of entries with more than one token, before RoPE
      key_error    (L, G) 2-norm, over all tokens, of a token's key minus its entry's key, relative to the keys, before RoPE
      value_error  (L, G) the same for values; each token has an equal share of its entry's value
      step_kl, output_ids, output_margin   as in runs.json
    Cases with `decode_merge=on` are at the end of the list. Their positions, masses, norms and errors describe the cache after
    the prompt. They also contain
      step_agreement, agreement_margin, output_error   as in runs.json, with the run's cache at each step
      decode_entries     number of entries per layer after all tokens of the full run's answer
      decode_masses      layer -> masses of its entries, for three layers
      pair_gap           smallest difference of log scores, over the whole run, between a pair that is not merged and the
                         nearest pair merged in its place
      least_denominator  smallest denominator of Eq. 33, over the run, relative to |c11| + |c22|; 1e-6 gives the plain mean
  During decoding, after the attention of every `chunk`-th token after the prompt, a layer merges its entries before the last
  `chunk` tokens down to the budget, if the entries exceed the budget. The scores are the attention of these tokens' queries to
  the entries that each query sees. In the prompt, the scores are the next chunk's attention. Nothing is recomputed.
  With `cap`, the n of a merged entry is min(n1 + n2, cap), and its value is the whole sum. The position of an entry in
  attention is (sum of n up to and including the entry) - 1, and the queries continue after the sum of all n. So positions
  differ between layers: in a chunk, after the prompt and during decoding. If the past is merged a second time in a layer,
  the queries continue after the merged layer.
  Cases whose pairs depend on less than 1e-5 of a score are refused, because the C++ engine ranks float32 scores.
"""

import json
import sys

import numpy as np

from kvslimmer_merges import DATA, fisher_keys, merge, merged_keys, pair_gap, pairs_of, Published


# ---- the default model -------------------------------------------------------------------------------------------------

CASES = {"short": [("kvslimmer:sinks=4,chunk=32", 96), ("kvslimmer:sinks=4,chunk=200", 64),
                   ("kvslimmer:sinks=4,chunk=32,cap=5", 64), ("kvslimmer:sinks=4,chunk=32,cap=1", 96)],
         "rewrite": [("kvslimmer:sinks=8,chunk=25,final_merge=off", 60), ("kvslimmer:sinks=0", 80),
                     ("kvslimmer:sinks=4,chunk=64,cap=2,weights=published", 96)]}
GRADIENTS = {"prompt": "short", "past": 96, "chunk": 32}
ASYMKV = {"short": [("asymkv:sinks=4,chunk=32", 96)],
          "rewrite": [("asymkv:sinks=8,chunk=25,final_merge=off", 60), ("asymkv:sinks=0,chunk=200", 80)]}
# Answers of 19 and 64 tokens, which are not multiples of the chunk.
DECODING = {"short": [("kvslimmer:sinks=4,chunk=8,final_merge=off,decode_merge=on", 64)],
            "rewrite": [("kvslimmer:sinks=4,chunk=15,decode_merge=on", 64)]}
MASSES_OF = (0, 14, 29)


def parameters_of(policy, budget, n):
    given = dict(pair.split("=") for pair in filter(None, policy.partition(":")[2].split(",")))
    chunk = int(given.get("chunk", min(512, -(-budget // 4))))
    return {"sinks": int(given.get("sinks", 32)), "chunk": min(chunk, n), "cap": float(given.get("cap", "inf")),
            "final_merge": given.get("final_merge", "on") == "on", "decode_merge": given.get("decode_merge") == "on",
            "published": given.get("weights") == "published"}


def places(masses):
    """Returns the positions (n) that attention uses for a layer's entries, and the next free position."""
    ends = np.cumsum(masses)
    return ends - 1, masses.sum()


class Slimmer:
    """The model with a merged cache. A layer has keys before RoPE and values (G, n, d), and masses and positions (n).

    A position is the prompt position of an entry's last token. `places` returns the positions that attention uses.
    """

    def __init__(self, reference, budget, sinks, cap=np.inf, published=False):
        import torch

        self.torch, self.model, self.config = torch, reference.model, reference.config
        self.heads, self.kv_heads = self.config.num_attention_heads, self.config.num_key_value_heads
        self.d = self.config.hidden_size // self.heads
        self.budget, self.sinks, self.cap = budget, sinks, cap
        self.published = [Published(sinks) for _ in self.model.model.layers] if published else None
        self.n_chunks, self.after_prompt = 0, False
        empty = np.zeros((self.kv_heads, 0, self.d))
        self.read_all = [[] for _ in self.model.model.layers]  # original keys and values of all tokens
        self.layers = [(empty, empty, np.zeros(0), np.zeros(0, int)) for _ in self.model.model.layers]
        base = self.config.rope_parameters["rope_theta"]
        self.frequencies = base ** (-2 * np.arange(self.d // 2) / self.d)
        self.jitter = np.random.default_rng(1)
        self.unstable, self.pair_gap, self.least_denominator = 0, np.inf, np.inf

    def turn(self, x, positions):
        angles = np.asarray(positions)[:, None] * self.frequencies
        cos, sin = np.cos(angles), np.sin(angles)
        a, b = x[..., : self.d // 2], x[..., self.d // 2 :]
        return np.concatenate((a * cos - b * sin, b * cos + a * sin), -1)

    def attend(self, q, layer, own_keys, own_values):
        """Returns outputs (H, m, d) of queries q (H, m, d) after the layer's entries, and the entries' attention (H, m, n)."""
        keys, values, masses, _ = layer
        m = q.shape[1]
        at, behind = places(masses)
        k = self.turn(np.concatenate((keys, own_keys), 1), np.concatenate((at, behind + np.arange(m))))
        v = np.concatenate((values, own_values), 1)
        count = np.concatenate((masses, np.ones(m)))
        group = self.heads // self.kv_heads
        logits = self.turn(q, behind + np.arange(m)) @ np.repeat(k, group, 0).transpose(0, 2, 1) / self.d**0.5
        n = masses.size
        logits[:, :, n:][:, np.triu_indices(m, 1)[0], np.triu_indices(m, 1)[1]] = -np.inf
        weight = np.exp(logits - logits.max(2, keepdims=True))
        weight /= (weight * count).sum(2, keepdims=True)
        return weight @ np.repeat(v, group, 0), (weight * count)[:, :, :n]

    def project(self, block, x):
        torch = self.torch
        h = block.input_layernorm(torch.from_numpy(x))
        def split(linear, heads):
            return linear(h).reshape(len(x), heads, self.d).permute(1, 0, 2).numpy()
        a = block.self_attn
        return split(a.q_proj, self.heads), split(a.k_proj, self.kv_heads), split(a.v_proj, self.kv_heads)

    def finish(self, block, x, output):
        torch = self.torch
        x = torch.from_numpy(x) + block.self_attn.o_proj(torch.from_numpy(output.transpose(1, 0, 2).reshape(len(x), -1)))
        return (x + block.mlp(block.post_attention_layernorm(x))).numpy()

    def look(self, ids):
        """`read` calls this method before a chunk's queries observe the cache."""

    def look_back(self, ids, before):
        """`read` calls this method before the merge after the prompt. before: the layers without the last chunk's tokens"""

    def keys_of(self, index, first, layer, attention, outputs):
        if self.published:
            weights = self.published[index]
            merged = weights.merged(first, self.n_chunks, *layer[:3], attention, outputs, self.after_prompt)
            self.least_denominator = min(self.least_denominator, weights.least_denominator)
            return merged
        merged, _, shares = merged_keys(first, *layer[:3], attention, outputs)
        self.least_denominator = min(self.least_denominator, shares.min())
        return merged

    def merge_back(self, index, layer, attend_again):
        """Merges until the layer fits the budget. attend_again(layer) returns outputs (H, m, d) and attention (H, m, n)."""
        while layer[2].size > self.budget:
            outputs, attention = attend_again(layer)
            outputs, attention = outputs.mean(1), attention.mean(1)
            n_merges = layer[2].size - self.budget
            first = pairs_of(attention, layer[2], n_merges, self.sinks)
            self.unstable += any(pairs_of(attention, layer[2], n_merges, self.sinks, self.jitter) != first for _ in range(3))
            self.pair_gap = min(self.pair_gap, pair_gap(first, attention, layer[2], self.sinks))
            layer = merge(first, *layer, self.keys_of(index, first, layer, attention, outputs), self.cap)
        return layer

    def attend_behind(self, q, layer):
        """Returns outputs and attention of the last token's query q (H, 1, d). The layer contains the token's entry."""
        at, behind = places(layer[2])
        k = self.turn(layer[0], at)
        group = self.heads // self.kv_heads
        logits = self.turn(q, [behind - 1]) @ np.repeat(k, group, 0).transpose(0, 2, 1) / self.d**0.5
        weight = np.exp(logits - logits.max(2, keepdims=True))
        weight /= (weight * layer[2]).sum(2, keepdims=True)
        return weight @ np.repeat(layer[1], group, 0), weight * layer[2]

    def read(self, ids, first, merges, is_last=False, final_merge=True):
        """Reads a chunk that starts at position `first`. Returns the last token's logits, or all logits without merging."""
        looks = merges and self.layers[0][2].size > self.budget
        if looks:
            self.look(ids)
        self.queries, before = [], []
        with self.torch.inference_mode():
            embed = self.model.model.embed_tokens(self.torch.tensor(ids)).numpy()
            positions = np.arange(first, first + len(ids))
            look, x = embed.copy(), embed.copy()
            for index, block in enumerate(self.model.model.layers):
                layer = self.layers[index]
                if looks:
                    q, k, v = self.project(block, look)
                    output, _ = self.attend(q, layer, k, v)
                    layer = self.merge_back(index, layer, lambda now: self.attend(q, now, k, v))
                    look = self.finish(block, look, output)
                before.append(layer)
                q, k, v = self.project(block, x)
                self.queries.append(q[:, -1:])
                output, _ = self.attend(q, layer, k, v)
                x = self.finish(block, x, output)
                if merges:
                    self.read_all[index].append((k, v))
                self.layers[index] = (np.concatenate((layer[0], k), 1), np.concatenate((layer[1], v), 1),
                                      np.concatenate((layer[2], np.ones(len(ids)))), np.concatenate((layer[3], positions)))
            x = self.model.model.norm(self.torch.from_numpy(x))
            logits = self.model.lm_head(x)
        if merges and is_last and final_merge and self.layers[0][2].size > self.budget:
            self.look_back(ids, before)
            self.after_prompt = True
            for index, layer in enumerate(self.layers):
                self.layers[index] = self.merge_back(index, layer, lambda now: self.attend_behind(self.queries[index], now))
        self.n_chunks += 1
        return logits

    def follow(self, layers, n, chunk):
        """Starts decoding after a prompt of n tokens with the cache `layers`. Every `chunk` tokens, earlier entries are merged."""
        self.layers, self.n, self.chunk, self.fed = list(layers), n, chunk, []

    def feed(self, token, seen=lambda: None):
        """Returns logits (vocab). Calls `seen` while self.layers is the cache that the token attends to."""
        logits = self.read([token], self.n + len(self.fed), False)[-1]
        seen()
        self.fed.append(self.queries)
        if len(self.fed) % self.chunk == 0:
            at = self.n + np.arange(len(self.fed) - self.chunk, len(self.fed))
            for index, (keys, values, masses, positions) in enumerate(self.layers):
                q = np.concatenate([queries[index] for queries in self.fed[-self.chunk :]], 1)
                past, own = ((keys[:, part], values[:, part], masses[part], positions[part])
                             for part in (slice(None, -self.chunk), slice(-self.chunk, None)))
                assert (own[2] == 1).all() and (own[3] == at).all()
                past = self.merge_back(index, past, lambda now: self.attend(q, now, *own[:2]))
                self.layers[index] = tuple(np.concatenate(pair, -2 if pair[0].ndim == 3 else 0) for pair in zip(past, own))
        return logits


class Asym(Slimmer):
    """Weights keys by squared gradients of the loss, as AsymKV does. Averages gradients over the chunks that saw an entry."""

    def __init__(self, reference, budget, sinks, cap=np.inf):
        super().__init__(reference, budget, sinks, cap)
        self.averages = [(np.zeros((self.kv_heads, 0, self.d)), np.zeros(0)) for _ in self.layers]  # mean gradients and counts

    def gradients(self, ids, past, by_own=False):
        """Returns each layer's gradients of the mean loss without the first token: (G, n, d), or (G, n + m, d) if `by_own`."""
        torch = self.torch
        group, m = self.heads // self.kv_heads, len(ids)
        leaves = [torch.from_numpy(layer[0].copy()).requires_grad_() for layer in past]
        own, x = [], self.model.model.embed_tokens(torch.tensor(ids)).detach().requires_grad_()

        def turn(vectors, positions):
            angles = torch.from_numpy(np.asarray(positions)[:, None] * self.frequencies)
            a, b = vectors[..., : self.d // 2], vectors[..., self.d // 2 :]
            return torch.cat((a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()), -1)

        for leaf, (_, values, masses, _), block in zip(leaves, past, self.model.model.layers):
            at, behind = places(masses)
            positions = behind + np.arange(m)
            h, a = block.input_layernorm(x), block.self_attn
            q = a.q_proj(h).reshape(m, self.heads, self.d).transpose(0, 1)
            k = a.k_proj(h).reshape(m, self.kv_heads, self.d).transpose(0, 1)
            v = a.v_proj(h).reshape(m, self.kv_heads, self.d).transpose(0, 1)
            own.append(k)
            k = turn(torch.cat((leaf, k), 1), np.concatenate((at, positions))).repeat_interleave(group, 0)
            v = torch.cat((torch.from_numpy(values), v), 1).repeat_interleave(group, 0)
            count = torch.from_numpy(np.concatenate((masses, np.ones(m))))
            visible = torch.ones(m, count.numel(), dtype=torch.bool).tril(count.numel() - m)
            weight = (turn(q, positions) @ k.transpose(1, 2) / self.d**0.5).masked_fill(~visible, -torch.inf).exp()
            output = weight @ v / (weight @ count[:, None])
            x = x + a.o_proj(output.transpose(0, 1).reshape(m, -1))
            x = x + block.mlp(block.post_attention_layernorm(x))
        logits = self.model.lm_head(self.model.model.norm(x))
        loss = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:]))
        found = [g.numpy() for g in torch.autograd.grad(loss, leaves + (own if by_own else []))]
        if by_own:
            found = [np.concatenate(pair, 1) for pair in zip(found, found[len(leaves) :])]
        return found

    def look(self, ids):
        if len(ids) > 1:
            self.take(self.gradients(ids, self.layers), False)

    def look_back(self, ids, before):
        if len(ids) > 1:
            self.take(self.gradients(ids, before, True), True)

    def take(self, found, keeps_known):
        for index, gradient in enumerate(found):
            average, looks = self.grown(index, gradient.shape[1])
            share = np.where(looks == 0, 1, 0 if keeps_known else 1 / (looks + 1))[:, None]
            self.averages[index] = (average * (1 - share) + gradient * share, looks + 1)

    def grown(self, index, n):
        average, looks = self.averages[index]
        return (np.concatenate((average, np.zeros((self.kv_heads, n - looks.size, self.d))), 1),
                np.concatenate((looks, np.zeros(n - looks.size))))

    def keys_of(self, index, first, layer, attention, outputs):
        average, looks = self.grown(index, layer[2].size)
        one, two = np.array(first), np.array(first) + 1
        keys = fisher_keys(first, layer[0], average)
        average[:, one] += average[:, two]
        looks[one] = np.maximum(looks[one], looks[two])
        self.averages[index] = (np.delete(average, two, 1), np.delete(looks, two))
        return keys


def plain_gradients(exact, ids, past, chunk):
    """Returns the gradients of a chunk's loss with respect to the keys of earlier tokens."""
    asym = Asym(exact, len(ids), 0)
    asym.read(ids[:past], 0, True)
    found = np.array(asym.gradients(ids[past : past + chunk], asym.layers))
    numbers = 1 + np.arange(found[0, 0].size).reshape(found[0, 0].shape) % 7
    return np.sqrt((found**2).sum((2, 3))), (found * numbers).sum((2, 3))


def tokens_of(layer):
    """Returns the number of tokens in each entry (n), independent of its mass."""
    return np.diff(layer[3], prepend=-1)


def errors_of(slimmer, index):
    """Returns the errors (G) of keys and of values. Compares each token with its entry."""
    keys, values = (np.concatenate([chunk[part] for chunk in slimmer.read_all[index]], 1) for part in (0, 1))
    merged_keys_, merged_values, _, positions = slimmer.layers[index]
    entry = np.searchsorted(positions, np.arange(keys.shape[1]))
    off = np.linalg.norm(merged_keys_[:, entry] - keys, axis=(1, 2)) / np.linalg.norm(keys, axis=(1, 2))
    shares = merged_values[:, entry] / tokens_of(slimmer.layers[index])[entry][:, None]
    return off, np.linalg.norm(shares - values, axis=(1, 2)) / np.linalg.norm(values, axis=(1, 2))


def generate_with(logits, feed, eos, limit):
    """Returns at most `limit` greedy ids, including end-of-text, and the smallest margin."""
    own, margin = [], float("inf")
    while True:
        best = logits.topk(2)
        margin = min(margin, (best.values[0] - best.values[1]).item())
        own.append(int(best.indices[0]))
        if own[-1] == eos or len(own) == limit:
            return own, margin
        logits = feed(own[-1])


def decode_merging(slimmer, state, n, chunk, logits, tokens, full, full_decoded, eos, limit):
    """Returns the results of a run that merges during decoding, for the full run's answer and for the run's own answer."""
    import torch

    from observe import attend
    from runs import divergence, rounded

    errors = []

    def compare():
        t = len(slimmer.fed)
        for (index, q, k, v), layer in zip(full_decoded, slimmer.layers):
            whole = attend(q[:, t : t + 1], k[:, : n + t + 1], v[:, : n + t + 1])[0].numpy()[:, 0]
            part, _ = slimmer.attend_behind(slimmer.turn(q[:, t : t + 1].numpy(), [-n - t]), layer)
            errors.append(np.linalg.norm(part[:, 0] - whole, axis=1) / np.linalg.norm(whole, axis=1))

    slimmer.follow(state, n, chunk)
    steps = torch.stack([logits] + [slimmer.feed(token, compare) for token in tokens])
    layers = slimmer.layers
    assert all(layer[2].sum() == n + len(tokens) and (np.cumsum(layer[2]) - 1 == layer[3]).all() for layer in layers)
    slimmer.follow(state, n, chunk)
    own, margin = generate_with(logits, slimmer.feed, eos, limit)
    return {
        **divergence(full, steps[:-1]),
        "output_error": rounded(np.mean(np.array(errors).reshape(len(tokens), len(layers), -1), 0), 6),
        "decode_entries": [layer[2].size for layer in layers],
        "decode_masses": {str(index): layers[index][2].astype(int).tolist() for index in MASSES_OF},
        "pair_gap": rounded(slimmer.pair_gap, 3), "least_denominator": rounded(slimmer.least_denominator, 3),
        "output_ids": own, "output_margin": rounded(margin),
    }


def write_runs(which):
    """which: "decoding" or "new" writes only these cases and leaves the others unchanged; None writes all"""
    import copy

    import torch

    from observe import make_exact, observe
    from reference_model import Reference, load_prompts
    from runs import MAX_TOKENS, forced, generate, rounded

    exact = Reference()
    make_exact(exact)
    path, prompts = DATA / "engine" / "chunked_runs.json", {}
    stays = {}
    if which:
        known = json.loads(path.read_text())
        gradients = known["gradients"]
        stays = {(name, one["policy"], one["budget"]): one for name, cases in known["prompts"].items() for one in cases
                 if which == "new" or "decode_masses" not in one}
    else:
        norms, sums = plain_gradients(exact, load_prompts()[GRADIENTS["prompt"]]["ids"], GRADIENTS["past"], GRADIENTS["chunk"])
        gradients = GRADIENTS | {"norms": rounded(norms.tolist()), "sums": rounded(sums.tolist())}
    for name, cases in CASES.items():
        ids = load_prompts()[name]["ids"]
        observation = observe(exact, ids)
        tokens, _ = generate(exact, observation)
        full, full_decoded = forced(exact, observation, tokens)
        prompts[name] = []
        for policy, budget in cases + ASYMKV[name] + DECODING[name]:
            if (name, policy, budget) in stays:
                prompts[name].append(stays[name, policy, budget])
                continue
            given = parameters_of(policy, budget, len(ids))
            sinks, chunk, cap = given["sinks"], given["chunk"], given["cap"]
            if policy.startswith("asymkv"):
                slimmer = Asym(exact, budget, sinks, cap)
            else:
                slimmer = Slimmer(exact, budget, sinks, cap, given["published"])
            for first in range(0, len(ids), chunk):
                part = ids[first : first + chunk]
                logits = slimmer.read(part, first, True, first + chunk >= len(ids), given["final_merge"])[-1]
            state, n = copy.copy(slimmer.layers), len(ids)
            errors = [errors_of(slimmer, index) for index in range(len(state))]
            if given["decode_merge"]:
                found = decode_merging(slimmer, state, n, chunk, logits, tokens, full, full_decoded, exact.eos, MAX_TOKENS)
            else:
                steps = torch.cat((logits[None], slimmer.read(tokens, n, False)[:-1]))
                a, b = torch.log_softmax(full, -1), torch.log_softmax(steps, -1)
                slimmer.follow(state, n, MAX_TOKENS + 1)
                own, margin = generate_with(logits, slimmer.feed, exact.eos, MAX_TOKENS)
                found = {"step_kl": rounded((a.exp() * (a - b)).sum(1).clamp(min=0).tolist()),
                         "output_ids": own, "output_margin": rounded(margin)}
            if slimmer.unstable:
                raise SystemExit(f"{name}, {policy} @ {budget}: {slimmer.unstable} merges depend on rounding")
            prompts[name].append(
                {
                    "policy": policy, "budget": budget,
                    "positions": [layer[3].tolist() for layer in state],
                    "masses": [layer[2].astype(int).tolist() for layer in state],
                    "key_norms": rounded([[np.linalg.norm(layer[0][g][tokens_of(layer) > 1]) for g in range(slimmer.kv_heads)] for layer in state]),
                    "key_error": rounded([error[0] for error in errors], 6),
                    "value_error": rounded([error[1] for error in errors], 6),
                    **found,
                }
            )
            print(name, n, policy, budget, "mean KL", np.mean(found["step_kl"]), "margin", found["output_margin"],
                  "pair gap", slimmer.pair_gap, "least denominator", slimmer.least_denominator,
                  "entries", state[0][2].size, repr(exact.text(found["output_ids"])), flush=True)
    document = {"about": "scripts/golden/kvslimmer.py", "max_tokens": MAX_TOKENS, "eos": exact.eos, "gradients": gradients, "prompts": prompts}
    path.write_text(json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    which = sys.argv[1] if len(sys.argv) > 1 else None
    if which not in (None, "decoding", "new"):
        raise SystemExit(__doc__)
    write_runs(which)
