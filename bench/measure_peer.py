"""Loads the model of one peer and measures the requested work, for compare_with_peers.py.

    measure_peer.py transformers|llama THREADS bf16|f32     reads and answers requests, one JSON line each

Requests: {"do": "prefill", "ids": [...]}                       -> {"seconds"}
          {"do": "decode", "ids": [...], "tokens": T}           -> {"seconds"} of T - 1 steps after the prompt
          {"do": "press", "press": name, "budget": B, "ids": [...], "tokens": T}
                                                                -> {"prefill", "decode", "tokens"} (transformers only)
All peers use their best settings: SDPA, inference mode and only the last logits in transformers; flash attention and the
model's Q4_1 weights in llama.cpp. All peers ignore end-of-text.
"""

import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts" / "golden"))


def press_of(name, budget, n_tokens):
    """Returns the press that keeps `budget` of a prompt's N entries; kvpress keeps int(N * (1 - ratio))."""
    import kvpress

    ratio = 1 - (budget + 1e-6) / n_tokens
    snap = dict(compression_ratio=ratio, window_size=32, kernel_size=7)
    return {
        "snapkv": lambda: kvpress.SnapKVPress(**snap),
        "pyramidkv": lambda: kvpress.PyramidKVPress(**snap),
        "ada-snapkv": lambda: kvpress.AdaKVPress(kvpress.SnapKVPress(**snap)),
        "ada-pyramidkv": lambda: kvpress.AdaKVPress(kvpress.PyramidKVPress(**snap)),
        "streaming-llm": lambda: kvpress.StreamingLLMPress(compression_ratio=ratio, n_sink=4),
        "random": lambda: kvpress.RandomPress(compression_ratio=ratio),
        "knorm": lambda: kvpress.KnormPress(compression_ratio=ratio),
        "keydiff": lambda: kvpress.KeyDiffPress(compression_ratio=ratio),
        "tova": lambda: kvpress.TOVAPress(compression_ratio=ratio),
        "lagkv": lambda: kvpress.LagKVPress(compression_ratio=ratio),
        "critical-snapkv": lambda: kvpress.CriticalKVPress(kvpress.SnapKVPress(**snap)),
        "expected-attention": lambda: kvpress.ExpectedAttentionPress(compression_ratio=ratio),
    }[name]()


class Transformers:
    def __init__(self, threads, dtype):
        import torch

        torch.set_num_threads(threads)
        from reference_model import Reference

        self.torch = torch
        self.model = Reference(dtype={"bf16": torch.bfloat16, "f32": torch.float32}[dtype], attention="sdpa").model
        self.prefill([1] * 64)

    def _forward(self, ids, cache, position=None):
        torch = self.torch
        ids = ids if isinstance(ids, torch.Tensor) else torch.tensor([ids])
        where = None if position is None else torch.tensor([[position]])
        logits = self.model(ids, past_key_values=cache, position_ids=where, use_cache=True, logits_to_keep=1).logits
        return logits[:, -1].argmax(-1, keepdim=True)

    def _steps(self, following, cache, position, steps):
        start = time.perf_counter()
        for step in range(steps):
            following = self._forward(following, cache, position + step)
        return time.perf_counter() - start

    def prefill(self, ids):
        from transformers import DynamicCache

        with self.torch.inference_mode():
            start = time.perf_counter()
            self._forward(ids, DynamicCache())
            return {"seconds": time.perf_counter() - start}

    def decode(self, ids, tokens):
        from transformers import DynamicCache

        with self.torch.inference_mode():
            cache = DynamicCache()
            following = self._forward(ids, cache)
            return {"seconds": self._steps(following, cache, len(ids), tokens - 1)}

    def press(self, press, budget, ids, tokens):
        from transformers import DynamicCache

        made = press_of(press, budget, len(ids))
        with self.torch.inference_mode():
            cache = DynamicCache()
            start = time.perf_counter()
            with made(self.model):
                following = self._forward(ids, cache)
            prefill = time.perf_counter() - start
            decode = self._steps(following, cache, len(ids), tokens - 1)
        held = sum(layer.keys.numel() * 2 * layer.keys.element_size() for layer in cache.layers)
        entries = cache.layers[0].keys.shape[2] - (tokens - 1)
        return {"prefill": prefill, "decode": decode, "tokens": tokens, "cache_bytes": held, "entries": entries}


class Llama:
    def __init__(self, threads, _dtype):
        import ctypes

        import llama_cpp
        from reference_model import default_gguf

        self.ctypes, self.api = ctypes, llama_cpp
        self.quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self.quiet, None)
        self.model = llama_cpp.llama_model_load_from_file(str(default_gguf()).encode(), llama_cpp.llama_model_default_params())
        self.vocabulary = llama_cpp.llama_model_get_vocab(self.model)
        self.n_vocabulary = llama_cpp.llama_vocab_n_tokens(self.vocabulary)
        options = llama_cpp.llama_context_default_params()
        options.n_ctx, options.n_batch, options.n_ubatch = 8192, 8192, 512
        options.n_threads = options.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(self.model, options)
        self.prefill([1] * 64)

    def tokenize(self, text):
        data = text.encode("utf-8")
        room = (self.api.llama_token * (len(data) + 8))()
        return {"ids": list(room[: self.api.llama_tokenize(self.vocabulary, data, len(data), room, len(room), True, True)])}

    def _feed(self, ids):
        tokens = (self.api.llama_token * len(ids))(*ids)
        if self.api.llama_decode(self.context, self.api.llama_batch_get_one(tokens, len(ids))):
            raise RuntimeError("llama_decode failed")
        return self.api.llama_get_logits_ith(self.context, -1)

    def _best(self, logits):
        import numpy as np

        return int(np.ctypeslib.as_array(logits, (self.n_vocabulary,)).argmax())

    def prefill(self, ids):
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)
        start = time.perf_counter()
        self.last = self._feed(ids)
        return {"seconds": time.perf_counter() - start}

    def decode(self, ids, tokens):
        self.prefill(ids)
        following = self._best(self.last)
        start = time.perf_counter()
        for _ in range(tokens - 1):
            following = self._best(self._feed([following]))
        return {"seconds": time.perf_counter() - start}


def main():
    answers, sys.stdout = sys.stdout, sys.stderr
    peer = {"transformers": Transformers, "llama": Llama}[sys.argv[1]](int(sys.argv[2]), sys.argv[3])
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(getattr(peer, request.pop("do"))(**request)), file=answers, flush=True)


if __name__ == "__main__":
    main()
