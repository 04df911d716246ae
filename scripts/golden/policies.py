"""Second implementation of the policies, in NumPy and float64, as simple as possible.

`select(policy, budget, observation)` takes a policy in the syntax of the command line and returns the kept positions of
every layer and row. It shares no code with the C++ policies.
"""

import itertools
import json
import math
from pathlib import Path

import numpy as np

from observe import attend

DATA = Path(__file__).resolve().parents[2] / "tests/data"

# Defaults from the methods page. Other parameters are refused.
SNAP = dict(window=32, pooling="max", kernel=7, reduce="mean", granularity="kv_head")
SNAP["lambda"] = 0.0
DEFAULTS = {
    "full": {},
    "streaming-llm": dict(sinks=4),
    "h2o": dict(recent=None, reduce="mean"),
    "snapkv": SNAP,
    "pyramidkv": SNAP | dict(beta=20),
    "ada-snapkv": SNAP | dict(alpha=0.2, normalize="off"),
    "ada-pyramidkv": SNAP | dict(alpha=0.2, normalize="off", beta=20),
    "aperturekv": {"window": 8, "lambda": 0.45, "qd": "on", "raba": "on", "sharpen": "softmax", "tau": 1.0,
                   "divergence": "jsd", "alpha": 0.0},
    "k-vec": {"window": 16, "extended_window": 32, "delta": 3, "criterion": "sd", "cross_head": "on",
              "cross_layer": "on", "lambda": 1.0, "beta": 0.25, "pooling": "max", "kernel": 7, "reduce": "mean"},
    # Importance files are given by their path in tests/data.
    "headkv": SNAP | dict(importance="", temperature=1.0, beta=1.2),
    "lacache": dict(sinks=None, span=16, overlap=0),
    "longcache": dict(sinks=4, recent=None, chunk=32, reduce="mean", granularity="kv_head"),
    "random": dict(recent=0, shared="off", granularity="kv_head"),
}


def parse(text, defaults=DEFAULTS):
    """Parses 'ada-snapkv:window=8,lambda=0.45' into the name and all parameters."""
    name, _, rest = text.partition(":")
    parameters = dict(defaults[name])
    for pair in filter(None, rest.split(",")):
        key, _, value = pair.partition("=")
        if key not in parameters:
            raise SystemExit(f"{text}: the reference has no parameter {key}")
        try:
            parameters[key] = int(value)
        except ValueError:
            try:
                parameters[key] = float(value)
            except ValueError:
                parameters[key] = value
    return name, parameters


def integer_shares(shares, total, limits=None):
    """Rounds shares to integers with the sum `total`. Any excess above a limit goes to the other shares in proportion."""
    shares = np.asarray(shares, dtype=np.float64)
    # Fractions such as 0.4 arise in several ways (0.8 n + 0.2 c). Rounding to nine digits makes them equal.
    result = np.floor(np.round(shares, 9)).astype(np.int64)
    fraction = np.round(shares - result, 9)
    order = sorted(range(len(shares)), key=lambda i: (-fraction[i], i))
    for i in itertools.islice(itertools.cycle(order), int(total - result.sum())):
        result[i] += 1
    if limits is None:
        return result
    limits = np.broadcast_to(limits, result.shape)
    while (result > limits).any():
        excess = int(np.maximum(result - limits, 0).sum())
        result = np.minimum(result, limits)
        free = np.flatnonzero(result < limits)
        if len(free) == 0:
            raise SystemExit("more budget than entries")
        weight = shares[free] if shares[free].sum() > 0 else np.ones(len(free))
        result[free] += integer_shares(weight / weight.sum() * excess, excess)
    return result


def top(scores, count):
    """Returns the ascending positions of the `count` highest scores of a row; ties go to the lower position."""
    order = np.lexsort((np.arange(len(scores)), -scores))
    return np.sort(order[:count])


def joint_counts(scores, total):
    """Returns how many of the `total` best scores are in each row. Ties go to the lower row, then to the lower position."""
    rows, columns = scores.shape
    order = np.lexsort((np.tile(np.arange(columns), rows), np.repeat(np.arange(rows), columns), -scores.ravel()))
    return np.bincount(order[:total] // columns, minlength=rows)


def diversify(queries, strength):
    """Adds to each window query lambda times its component that is orthogonal to the mean query (QD)."""
    mean = queries.mean(axis=1, keepdims=True)
    norm = np.linalg.norm(mean, axis=2, keepdims=True)
    unit = np.divide(mean, norm, out=np.zeros_like(mean), where=norm > 0)
    residual = queries - (queries * unit).sum(axis=2, keepdims=True) * unit
    return np.where(norm > 0, queries + strength * residual, queries)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def window_logits(layer, window, strength):
    """Returns logits (H, w, N) without a mask: the products of diversified window queries and all keys."""
    queries = layer.queries.double().numpy()[:, -window:]
    if strength:
        queries = diversify(queries, strength)
    keys = layer.keys.double().numpy()
    keys = np.repeat(keys, queries.shape[0] // keys.shape[0], axis=0)
    return queries @ keys.swapaxes(1, 2) / math.sqrt(queries.shape[2])


def window_scores(layer, window, strength):
    """Returns P (H, N - w): softmax over all visible keys, averaged over the window, for the keys before the window."""
    logits = window_logits(layer, window, strength)
    n = logits.shape[2]
    visible = np.arange(n)[None, :] <= np.arange(n - window, n)[:, None]
    return softmax(np.where(visible, logits, -np.inf)).mean(axis=1)[:, : n - window]


def last_weights(layer, count):
    """Returns the attention (H, count, N) of the last `count` queries; 0 for later keys."""
    logits = window_logits(layer, count, 0.0)
    n = logits.shape[2]
    visible = np.arange(n)[None, :] <= np.arange(n - count, n)[:, None]
    return softmax(np.where(visible, logits, -np.inf))


def grouped(per_head, n_rows, how):
    """Reduces (H, n) to (G, n)."""
    groups = per_head.reshape(n_rows, -1, per_head.shape[1])
    return {"mean": np.mean, "max": np.max, "sum": np.sum}[how](groups, axis=1)


def pool(scores, how, width):
    if how == "none":
        return scores
    half = width // 2
    padding = -np.inf if how == "max" else 0.0
    padded = np.pad(scores, ((0, 0), (half, half)), constant_values=padding)
    views = np.lib.stride_tricks.sliding_window_view(padded, width, axis=1)
    return views.max(axis=2) if how == "max" else views.mean(axis=2)


def pyramid(c, n_layers, prefix, beta):
    """Returns PyramidKV's budget of each layer, which excludes the window. The sum is n_layers * c."""
    low = c // beta
    high = 2 * c - low
    if high >= prefix:
        high = prefix
        low = 2 * c - high
    step = (high - low) / (n_layers - 1) if n_layers > 1 else 0.0
    shares = [high - step * layer for layer in range(n_layers)] if n_layers > 1 else [c]
    return integer_shares(shares, n_layers * c, prefix)


def head_importance(path, n_layers, n_heads):
    """Reads importances (L, H) from {"layer-head": [score, ...]}."""
    published = json.loads((DATA / path).read_text())
    assert len(published) == n_layers * n_heads
    return np.array([[np.mean(published[f"{layer}-{head}"]) for head in range(n_heads)] for layer in range(n_layers)])


def headkv_counts(importance, rows, prefix, c, temperature, beta):
    """Returns the number of kept entries before the window per head, (L, rows). The sum is L * rows * c."""
    n_layers = importance.shape[0]
    share = importance**temperature
    share = (share / share.sum()).reshape(n_layers, rows, -1).sum(axis=2)
    pooled = math.floor(c / beta)
    wanted = (c - pooled) + share * pooled * n_layers * rows
    return integer_shares(wanted.ravel(), n_layers * rows * c, prefix).reshape(n_layers, rows)


def ladder(layer, n_layers, n, budget, sinks, span, overlap):
    """Returns the positions that LaCache keeps in one layer. Thins out the ladder's oldest steps first."""
    if sinks is None:
        sinks = min(128, budget - n_layers - 1)
    overlap = min(overlap, span - 1)
    run = 1 + max(0, math.ceil((n_layers - span) / (span - overlap)))
    stay = min(math.ceil(span / (span - overlap)), run)
    offset = layer % (run - stay + 1)
    kept = list(range(n))
    while len(kept) > budget:
        middle = kept[sinks : len(kept) - n_layers]
        doomed = []
        for start in range(0, len(middle) - run + 1, run):
            doomed += middle[start : start + offset] + middle[start + offset + stay : start + run]
        if not doomed:  # if no step of the ladder can lose entries, the oldest entries are dropped
            doomed = middle
        gone = set(doomed[: len(kept) - budget])
        kept = [position for position in kept if position not in gone]
    return np.array(kept)


def splitmix(x):
    """Returns SplitMix64's output for the state x, with Python integers."""
    limit = (1 << 64) - 1
    x = (x + 0x9E3779B97F4A7C15) & limit
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & limit
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & limit
    return x ^ (x >> 31)


def random_scores(layer, rows, n, ids, shared, seed=0):
    """Returns scores (rows, n) in [0, 1) from seed, prompt, layer, row and position. `shared`: without layer and row"""
    prompt = splitmix(seed)
    for token in ids:
        prompt = splitmix(prompt ^ token)
    scores = np.empty((rows, n))
    for row in range(rows):
        state = prompt if shared else splitmix(splitmix(prompt ^ (layer + 1)) ^ row)
        scores[row] = [(splitmix(state ^ position) >> 40) / 2**24 for position in range(n)]
    return scores


def kl(p, q):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > 0, p * (np.log(p) - np.log(q)), 0.0).sum()


def jsd(p, q):
    """Returns the Jensen-Shannon divergence in nats."""
    m = (p + q) / 2
    return min(max((kl(p, m) + kl(q, m)) / 2, 0.0), math.log(2))


def cross_entropy(p, q):
    return -(p * np.log(q)).sum()


DIVERGENCES = {"jsd": jsd, "kl": kl, "cross-entropy": cross_entropy}


class Decision:
    """The kept positions of every layer and row, with scores and counts."""

    def __init__(self):
        self.kept = []  # [layer][row] -> ascending positions
        self.ranked = []  # [layer] -> scores (rows, candidates), or None; candidates are positions 0, 1, ...
        self.counts = []  # [layer] -> number of candidates kept in each row
        self.divergence = []  # [layer] -> (rows, rows), for ApertureKV


class Selector:
    def __init__(self, observation, config, noise=0.0, seed=0):
        """`noise`: relative perturbation of every attention weight, to find near ties."""
        self.observation = observation
        self.config = config
        self.noise = noise
        self.random = np.random.default_rng(seed)
        self.cache = {}

    def disturbed(self, weights):
        if not self.noise:
            return weights
        return weights * (1 + self.noise * self.random.uniform(-1, 1, weights.shape))

    def select(self, text, budget) -> Decision:
        name, p = parse(text)
        n = self.observation.n
        n_layers = self.config.num_hidden_layers
        rows = self.config.num_key_value_heads
        if p.get("granularity") == "query_head":
            rows = self.config.num_attention_heads
        decision = Decision()
        if name == "full" or budget >= n:
            decision.kept = [[np.arange(n)] * rows for _ in range(n_layers)]
            return decision
        if name == "streaming-llm":
            row = np.r_[0 : p["sinks"], n - (budget - p["sinks"]) : n]
            decision.kept = [[row] * rows for _ in range(n_layers)]
            return decision
        if name == "h2o":
            recent = budget // 2 if p["recent"] is None else p["recent"]
            for layer in self.observation.layers:
                sums = grouped(self.disturbed(layer.attention_sums.numpy()), rows, p["reduce"])[:, : n - recent]
                self._take(decision, sums, np.full(rows, budget - recent))
            return decision
        if name == "lacache":
            for layer in range(n_layers):
                row = ladder(layer, n_layers, n, budget, p["sinks"], p["span"], p["overlap"])
                decision.kept.append([row] * rows)
            return decision
        if name == "longcache":
            for layer in self.observation.layers:
                self._chunks(decision, layer, p, rows, budget)
            return decision
        if name == "random":
            ids = getattr(self.observation, "ids", [])
            for layer in range(n_layers):
                scores = random_scores(layer, rows, n, ids, p["shared"] == "on")
                self._take(decision, scores[:, : n - p["recent"]], np.full(rows, budget - p["recent"]))
            decision.ranked = []  # quotients of integers have no rounding error
            return decision
        if budget <= p["window"]:
            raise SystemExit(f"{text}: budget {budget} must exceed the window")
        prefix, c = n - p["window"], budget - p["window"]
        if name == "k-vec":
            self._coverage(decision, p, rows, prefix, c, budget)
            return decision
        if name == "aperturekv":
            for layer in self.observation.layers:
                self._aperture(decision, layer, p, rows, prefix, c)
            return decision
        per_layer = [c] * n_layers
        if "pyramid" in name:
            per_layer = pyramid(c, n_layers, prefix, p["beta"])
        if name == "headkv":
            importance = head_importance(p["importance"], n_layers, self.config.num_attention_heads)
            of_heads = headkv_counts(importance, rows, prefix, c, p["temperature"], p["beta"])
        for i, (layer, c) in enumerate(zip(self.observation.layers, per_layer)):
            key = (id(layer), p["window"], p["lambda"])
            if key not in self.cache:
                self.cache[key] = window_scores(layer, p["window"], p["lambda"])
            scores = pool(grouped(self.disturbed(self.cache[key]), rows, p["reduce"]), p["pooling"], p["kernel"])
            counts = of_heads[i] if name == "headkv" else np.full(rows, c)
            if name.startswith("ada-"):
                if p["normalize"] == "on":
                    held = -np.sort(-scores, axis=1)[:, :c].sum(axis=1) / scores.sum(axis=1)
                    scores = scores * held[:, None]
                best = joint_counts(scores, rows * int(c))
                counts = integer_shares(best * (1 - p["alpha"]) + p["alpha"] * c, rows * int(c), prefix)
            self._take(decision, scores, counts)
        return decision

    def _take(self, decision, scores, counts):
        n = self.observation.n
        tail = np.arange(scores.shape[1], n)
        decision.kept.append([np.r_[top(scores[r], counts[r]), tail] for r in range(len(counts))])
        decision.ranked.append(scores)
        decision.counts.append(np.asarray(counts))

    def _chunks(self, decision, layer, p, rows, budget):
        n, sinks = self.observation.n, p["sinks"]
        recent = (budget - sinks) // 2 if p["recent"] is None else p["recent"]
        key = (id(layer), "last")
        if key not in self.cache:
            self.cache[key] = last_weights(layer, 1)[:, 0]
        scores = grouped(self.disturbed(self.cache[key]), rows, p["reduce"])
        between = np.arange(sinks, n - recent)
        chunk = (between - sinks) // p["chunk"]
        count = budget - sinks - recent
        kept, ranked = [], np.empty((rows, len(between)))
        for row in range(rows):
            best = np.array([scores[row, between[chunk == i]].max() for i in range(chunk[-1] + 1)])
            ranked[row] = best[chunk]
            # Entries are ordered by their chunk's best score, their chunk's position, their own score and their own position.
            order = np.lexsort((between, -scores[row, between], chunk, -ranked[row]))
            kept.append(np.r_[0:sinks, np.sort(between[order[:count]]), n - recent : n])
        decision.kept.append(kept)
        decision.ranked.append(ranked)
        decision.counts.append(np.full(rows, count))

    def _coverage(self, decision, p, rows, prefix, c, budget):
        """Selects the entries of each KV head with steps 1 to 5 of K-VEC."""
        n = self.observation.n
        kept_by = np.zeros(n)  # n_t, number of rows that keep the token
        for i, layer in enumerate(self.observation.layers):
            key = (id(layer), "k-vec", p["window"], p["extended_window"])
            if key not in self.cache:
                recent, wide = (last_weights(layer, min(p[w], n)) for w in ("window", "extended_window"))
                averaged = recent.reshape(rows, -1, *recent.shape[1:]).mean(axis=1)
                self.cache[key] = recent.mean(axis=1), wide.mean(axis=1), averaged.max(axis=0).mean(axis=0)
            recent, wide, importance = (self.disturbed(a) for a in self.cache[key])
            score = grouped(recent, rows, p["reduce"])[:, :prefix]
            if p["cross_head"] == "on":
                shares = score / score.sum(axis=1, keepdims=True)
                focus = score.std(axis=1)
                if p["criterion"] == "entropy":
                    focus = (shares * np.log(shares)).sum(axis=1)  # highest entropy first
                for head in sorted(range(rows), key=lambda g: (focus[g], g))[: min(p["delta"], max(1, rows - 1))]:
                    score[head] = grouped(wide, rows, p["reduce"])[head, :prefix]
            score = pool(score, p["pooling"], p["kernel"])
            ranked = score
            if p["cross_layer"] == "on":
                coverage = kept_by[:prefix] / (i + 1)
                ranked = score + p["lambda"] * importance[:prefix] * (1 - coverage)
                preserved = min(math.floor(p["beta"] * budget + 1e-9), c)
                for row in range(rows):
                    ranked[row, top(score[row], preserved)] = 1e9  # above all other scores
                if preserved == c:
                    ranked = score
            self._take(decision, ranked, np.full(rows, c))
            kept_by[np.unique(np.concatenate(decision.kept[-1]))] += 1

    def _aperture(self, decision, layer, p, rows, prefix, c):
        strength = p["lambda"] if p["qd"] == "on" else 0.0
        key = (id(layer), "aperture", p["window"], strength)
        if key not in self.cache:
            logits = window_logits(layer, p["window"], strength)[:, :, :prefix]
            self.cache[key] = softmax(logits).mean(axis=1)
        mean = grouped(self.disturbed(self.cache[key]), rows, "mean")
        if p["sharpen"] == "none":
            s = mean
        else:
            s = softmax(mean / (p["tau"] if p["sharpen"] == "temperature" else 1.0))
        total = rows * c
        initial = joint_counts(s, total)
        counts = initial
        if p["raba"] == "on" and rows > 1:
            measure = DIVERGENCES[p["divergence"]]
            matrix = np.array([[0.0 if a == b else measure(s[a], s[b]) for b in range(rows)] for a in range(rows)])
            decision.divergence.append(matrix)
            distinct = matrix.sum(axis=1) / (rows - 1)
            if distinct.sum() > 0 and (distinct * initial).sum() > 0:
                weight = distinct / distinct.sum() * initial
                counts = integer_shares(weight / weight.sum() * total, total, prefix)
        if p["alpha"] > 0:
            counts = integer_shares(counts * (1 - p["alpha"]) + p["alpha"] * c, total, prefix)
        self._take(decision, s, counts)
        # Near ties are searched in `mean`. It decides the ranks within a row, because s is nearly constant.
        decision.ranked[-1] = mean


def near_ties(decision, relative):
    """Returns, per layer and row, the positions whose score is within `relative` of the lowest kept score.

    A row has no such positions if all these scores are equal, because positions decide such ties.
    """
    result = []
    for scores, counts in zip(decision.ranked, decision.counts):
        layer = []
        for row, count in zip(scores, counts):
            if count == 0 or count == len(row):
                layer.append(np.zeros(0, dtype=np.int64))
                continue
            ordered = -np.sort(-row)
            cut = ordered[count - 1]
            below = ordered[count]
            near = np.flatnonzero((np.abs(row - cut) <= relative * cut) | (np.abs(row - below) <= relative * cut))
            if cut - below > relative * cut or np.all(row[near] == cut):
                near = near[:0]
            layer.append(near)
        result.append(layer)
    return result


def unstable(observation, config, text, budget, base, relative, draws=8):
    """Returns the positions whose selection changes when attention weights are perturbed by up to `relative`."""
    changed = [[set() for _ in layer] for layer in base.kept]
    for seed in range(draws):
        other = Selector(observation, config, noise=relative, seed=seed + 1)
        other.cache = unstable.cache.setdefault(id(observation), {})
        for a, b, c in zip(base.kept, other.select(text, budget).kept, changed):
            for x, y, z in zip(a, b, c):
                z.update(np.setxor1d(x, y).tolist())
    return [[np.array(sorted(z), dtype=np.int64) for z in layer] for layer in changed]


unstable.cache = {}
