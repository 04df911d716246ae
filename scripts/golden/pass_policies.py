"""Second implementation of the policies that change the pass or need more than one pass.

NumPy and torch in float64. `apply(reference, observation, policy, budget)` takes a policy in the syntax of the command line
and returns an Outcome: the decision, and the cache from which the compressed run decodes.
"""

import copy
from dataclasses import dataclass, field

import numpy as np
import torch
from gguf import GGUFReader
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import policies
from observe import Observation, attend, decode, observe
from policies import Decision, Selector, grouped, pool, top
from runs import generate, masks

DEFAULTS = {
    "dapq": dict(pseudo_tokens=32, content="first-last", first=4, last=None, phrase="Sorry, I don't know. ", offset=0,
                 reduce="mean"),
    "laq": dict(window=32, pooling="max", kernel=7, reduce="mean", lookahead=8),
    "gemfilter": dict(layer=None, kernel=5),
    "cam": dict(recent=None, merge=32, denominator="max", reduce="mean"),
    "oracle": dict(reduce="mean"),
}
DEFAULTS["laq++"] = DEFAULTS["laq"]
SINKS = 4


@dataclass
class Outcome:
    decision: Decision
    source: Observation  # the prefill that decoding continues from, possibly changed
    kept: list = None  # masks over the entries of the source; None: all entries
    extra: dict = field(default_factory=dict)  # data that the case records in addition to its kept sets


class SplitMix:
    """SplitMix64, with kvscope's functions that draw random numbers."""

    LIMIT = (1 << 64) - 1

    def __init__(self, seed):
        self.state = seed & self.LIMIT

    @classmethod
    def of_row(cls, seed, layer, row):
        return cls(cls(seed ^ (layer << 32 | row)).next())

    def next(self):
        z = policies.splitmix(self.state)
        self.state = (self.state + 0x9E3779B97F4A7C15) & self.LIMIT
        return z

    def unit(self):
        return (self.next() >> 11) / 2**53

    def below(self, n):
        return int(self.unit() * n)


def tokenizer(path):
    """Returns the default model's byte-level BPE from its GGUF file, for the library `tokenizers`."""
    reader = GGUFReader(str(path))
    pieces, merges = (reader.fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges"))
    bpe = Tokenizer(models.BPE({p: i for i, p in enumerate(pieces)}, [tuple(m.split(" ")) for m in merges]))
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    bpe.decoder = decoders.ByteLevel()
    return bpe


def repeated(ids, count):
    return [ids[i % len(ids)] for i in range(count)]


def pseudo_tokens(reference, ids, p, seed):
    """Returns the tokens that DapQ appends."""
    m, random = p["pseudo_tokens"], SplitMix(seed)
    if p["content"] == "first-last":
        last = m - p["first"] if p["last"] is None else p["last"]
        assert p["first"] + last == m
        return repeated(ids, p["first"]) + repeated(ids[::-1], last)[::-1]
    if p["content"] == "fixed-phrase":
        return tokenizer(reference.path).encode(p["phrase"] * m).ids[:m]  # the repeated phrase is tokenized as one text
    if p["content"] == "random-tokens":
        return [ids[random.below(len(ids))] for _ in range(m)]
    if p["content"] == "random-span":
        start = random.below(max(1, len(ids) - m + 1))
        return repeated(ids[start:], m)
    assert p["content"] == "vocabulary"
    return [random.below(reference.config.vocab_size) for _ in range(m)]


def attention_of(decoded, n):
    """Returns, per layer, the attention (H, queries, n) of recorded queries on the first n entries, normalized over all entries."""
    result = []
    for _, q, k, v in decoded:
        queries, total = q.shape[1], k.shape[1]
        visible = torch.arange(total)[None, :] <= torch.arange(total - queries, total)[:, None]
        result.append(attend(q, k, v, visible.expand(q.shape[0], queries, total))[1][:, :, :n].numpy())
    return result


def answer_attention(decoded, n):
    """Returns, per layer, the attention (H, n) summed over the queries of an answer with the full cache.

    Decoding never reads the answer's last token, so its query is omitted, unless it is the only one.
    """
    return [weights[:, : max(1, weights.shape[1] - 1)].sum(axis=1) for weights in attention_of(decoded, n)]


def best(decision, scores, budget, n):
    """Keeps each row's best candidates and all positions after the candidates. Candidates are the positions 0, 1, ..."""
    count = budget - (n - scores.shape[1])
    tail = np.arange(scores.shape[1], n)
    decision.kept.append([np.r_[top(row, count), tail] for row in scores])
    decision.ranked.append(scores)
    decision.counts.append(np.full(len(scores), count))


def dapq(reference, observation, p, budget, seed):
    n, rows = observation.n, reference.config.num_key_value_heads
    pseudo = pseudo_tokens(reference, observation.ids, p, seed)
    cache = copy.deepcopy(observation.cache)
    _, recorded = decode(reference, cache, pseudo, record=True, first=n + p["offset"])
    decision = Decision()
    for weights in attention_of(recorded, n):
        best(decision, grouped(weights.sum(axis=1), rows, p["reduce"]), budget, n)
    return Outcome(decision, observation, masks(reference, decision, n), {"pseudo_ids": pseudo})


def laq(reference, observation, p, budget, seed, with_window=False):
    n, rows, window = observation.n, reference.config.num_key_value_heads, p["window"]
    shared = ",".join(f"{name}={p[name]}" for name in ("window", "pooling", "kernel", "reduce"))
    first = Selector(observation, reference.config).select(f"snapkv:{shared}", budget)
    draft = masks(reference, first, n)
    tokens, margin = generate(reference, observation, draft, limit=p["lookahead"])
    _, recorded = decode(reference, copy.deepcopy(observation.cache), tokens, draft, record=True)
    decision = Decision()
    for layer, weights in zip(observation.layers, attention_of(recorded, n)):
        if with_window:
            weights = np.concatenate((policies.last_weights(layer, window), weights), axis=1)
        scores = grouped(weights.mean(axis=1), rows, p["reduce"])[:, : n - window]
        best(decision, pool(scores, p["pooling"], p["kernel"]), budget, n)
    ties = sum(len(row) for layer in policies.near_ties(first, 1e-5) for row in layer)
    extra = {"lookahead_ids": tokens, "lookahead_margin": margin, "draft_near_ties": ties}
    return Outcome(decision, observation, masks(reference, decision, n), extra)


def gemfilter(reference, observation, p, budget, seed):
    n, config = observation.n, reference.config
    layer = int(13 * config.num_hidden_layers / 32 + 0.5) if p["layer"] is None else p["layer"]
    query = observation.layers[layer].queries[:, -1].numpy()
    keys = observation.layers[layer].keys.numpy()
    keys = keys.repeat(query.shape[0] // keys.shape[0], axis=0)
    scores = np.einsum("hd,hnd->n", query, keys)[None]
    scores = pool(scores, "avg", p["kernel"])[:, : n - 1]
    # Near ties are relative, but these scores can be negative. Adding a constant makes them positive in the same order.
    chosen = Decision()
    best(chosen, scores + np.abs(scores).max(), budget, n)
    positions = chosen.kept[0][0]
    decision = Decision()
    rows = config.num_key_value_heads
    decision.kept = [[positions] * rows] * config.num_hidden_layers
    decision.ranked = [np.repeat(chosen.ranked[0], rows, axis=0)] * config.num_hidden_layers
    decision.counts = [np.repeat(chosen.counts[0], rows)] * config.num_hidden_layers
    return Outcome(decision, observe(reference, [observation.ids[i] for i in positions]))


def merged_values(values, attention, kept, p, budget, layer, seed):
    """Returns CaM's values (G, N, d), and the smallest distance of a random number from its threshold.

    Evicted values are merged at random into kept values at later positions.
    """
    result, closest = values.copy(), 1.0
    n = values.shape[1]
    recent = budget // 2 if p["recent"] is None else p["recent"]
    for row, positions in enumerate(kept):
        random, a = SplitMix.of_row(seed, layer, row), attention[row]
        for evicted in np.setdiff1d(np.arange(n), positions):
            behind = positions[positions > evicted][: p["merge"]]
            against = a[behind].mean() if p["denominator"] == "mean" else max(a[:SINKS].max(), a[n - recent :].max())
            probability, draw = min(max(a[evicted] / against, 0.0), 1.0), random.unit()
            closest = min(closest, abs(draw - probability))
            if draw < probability:
                result[row, behind] += values[row, evicted] / p["merge"]
    return result, closest


def cam(reference, observation, p, budget, seed):
    n, rows = observation.n, reference.config.num_key_value_heads
    recent = "" if p["recent"] is None else f",recent={p['recent']}"
    decision = Selector(observation, reference.config).select(f"h2o:reduce={p['reduce']}{recent}", budget)
    changed = copy.copy(observation)
    changed.cache, margin = copy.deepcopy(observation.cache), 1.0
    for i, (layer, entries) in enumerate(zip(observation.layers, changed.cache.layers)):
        attention = grouped(layer.attention_sums.numpy(), rows, p["reduce"])
        values, closest = merged_values(layer.values.numpy(), attention, decision.kept[i], p, budget, i, seed)
        entries.values = torch.from_numpy(values)[None]
        margin = min(margin, closest)
    return Outcome(decision, changed, masks(reference, decision, n), {"draw_margin": margin})


def oracle(reference, observation, p, budget, attention):
    n, rows = observation.n, reference.config.num_key_value_heads
    decision = Decision()
    for layer in attention:
        best(decision, grouped(layer, rows, p["reduce"]), budget, n)
    return Outcome(decision, observation, masks(reference, decision, n))


def apply(reference, observation, text, budget, attention, seed=0):
    """attention: answer_attention() of the full run, for the oracle"""
    name, p = policies.parse(text, DEFAULTS)
    if name == "oracle":
        return oracle(reference, observation, p, budget, attention)
    if name == "laq++":
        return laq(reference, observation, p, budget, seed, with_window=True)
    return {"dapq": dapq, "laq": laq, "gemfilter": gemfilter, "cam": cam}[name](reference, observation, p, budget, seed)
