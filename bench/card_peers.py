"""usage: card_peers.py [--tokens N] [--new-tokens T] [--budget B] [--presses A,B] [--without-cudnn] [--out FILE.json]: rates of the peers on a GPU.

Measures PyTorch's products and flash attention, FlashInfer's decode attention if it is installed, and kvpress with a
random model in the dimensions of Llama-3.1-8B. Each press runs its own prefill, as in normal use. Presses whose layers
keep different numbers of entries decode faster without cuDNN's attention, because cuDNN makes a new plan for each number.
"""

import argparse
import json
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from twelve_policies import PRESSES  # noqa: E402
from measure_peer import press_of  # noqa: E402


def seconds_of(work):
    for _ in range(3):
        work()
    times = []
    for _ in range(9):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1000)
    return sorted(times)[4]


def kernels():
    rates = {}
    a, b = (torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    rates["product 8192^3, TFLOP/s"] = 2 * 8192**3 / seconds_of(lambda: a @ b) / 1e12
    x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    y = torch.empty_like(x)
    rates["copy (read and written), GB/s"] = 2 * x.numel() / seconds_of(lambda: y.copy_(x)) / 1e9
    n, heads, kv_heads, d = 8192, 32, 8, 128
    q = torch.randn(1, heads, n, d, dtype=torch.bfloat16, device="cuda")
    k, v = (torch.randn(1, kv_heads, n, d, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    operations = 4 * heads * d * n * (n + 1) / 2
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        work = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)  # noqa: E731
        rates["flash attention, 8192 tokens, TFLOP/s"] = operations / seconds_of(work) / 1e12
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
        try:
            rates["cuDNN attention, 8192 tokens, TFLOP/s"] = operations / seconds_of(work) / 1e12
        except RuntimeError as error:
            rates["cuDNN attention"] = str(error)[:80]
    try:
        import flashinfer
    except ImportError:
        rates["FlashInfer"] = "skipped: not installed"
        return rates
    runs, entries = 48, 2048
    pages = torch.randn(runs, 2, entries, kv_heads, d, dtype=torch.bfloat16, device="cuda")
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(1 << 28, dtype=torch.uint8, device="cuda"))
    index = torch.arange(runs + 1, dtype=torch.int32, device="cuda")
    wrapper.plan(index, index[:-1], torch.full((runs,), entries, dtype=torch.int32, device="cuda"), heads, kv_heads, d,
                 entries, data_type=torch.bfloat16)
    one = torch.randn(runs, heads, d, dtype=torch.bfloat16, device="cuda")
    rates["FlashInfer decode, GB/s"] = pages.numel() * 2 / seconds_of(lambda: wrapper.run(one, pages)) / 1e9
    return rates


def random_model():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=49152, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
                         num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=131072,
                         rope_theta=500000.0, attn_implementation="sdpa", dtype=torch.bfloat16)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = LlamaForCausalLM(config)
    return model.eval()


def presses(tokens, new_tokens, budget, names):
    from transformers import DynamicCache

    model = random_model()
    ids = torch.randint(0, 49152, (1, tokens), device="cuda")

    def one(press):
        cache = DynamicCache()
        torch.cuda.synchronize()
        start = time.perf_counter()
        with press(model):
            following = model(ids, past_key_values=cache, logits_to_keep=1).logits[:, -1].argmax(-1, keepdim=True)
        torch.cuda.synchronize()
        prefill = time.perf_counter() - start
        for step in range(new_tokens - 1):
            where = torch.tensor([[tokens + step]], device="cuda")
            following = model(following, past_key_values=cache, position_ids=where).logits[:, -1].argmax(-1, keepdim=True)
        torch.cuda.synchronize()
        return {"prefill": prefill, "decode": time.perf_counter() - start - prefill}

    with torch.inference_mode():
        one(press_of("streaming-llm", budget, tokens))
        return {name: one(press_of(name, budget, tokens)) for name in names}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=32768)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--budget", type=int, default=1024)
    parser.add_argument("--presses", default=",".join(PRESSES), help="comma-separated names, or an empty string for none")
    parser.add_argument("--without-cudnn", action="store_true", help="use PyTorch's own attention kernels")
    parser.add_argument("--out", type=pathlib.Path)
    asked = parser.parse_args()
    found = {"card": torch.cuda.get_device_name(), "kernels": kernels()}
    for name, rate in found["kernels"].items():
        print(f"| {name} | {rate if isinstance(rate, str) else format(rate, '.4g')} |", flush=True)
    if asked.presses:
        torch.backends.cuda.enable_cudnn_sdp(not asked.without_cudnn)
        try:
            found["presses"] = presses(asked.tokens, asked.new_tokens, asked.budget, asked.presses.split(","))
            for name, seconds in found["presses"].items():
                print(f"| kvpress {name} | {seconds['prefill']:.3f} s + {seconds['decode']:.3f} s |", flush=True)
        except ImportError as missing:
            found["presses"] = f"skipped: {missing}"
            print(f"| kvpress | skipped: {missing} |", flush=True)
    if asked.out:
        asked.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
