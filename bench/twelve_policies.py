"""usage: twelve_policies.py: prints kvscope's twelve policies, one per line, for scripts/gpu.

kvpress lacks some of these policies. Its twelve presses contain other methods instead, which need no second pass.
"""

DOZEN = ("streaming-llm", "h2o", "snapkv", "pyramidkv", "ada-snapkv", "ada-pyramidkv",
         "aperturekv", "k-vec", "dapq", "laq", "longcache", "gemfilter")
PRESSES = ("streaming-llm", "random", "snapkv", "pyramidkv", "ada-snapkv", "ada-pyramidkv",
           "knorm", "keydiff", "tova", "lagkv", "critical-snapkv", "expected-attention")

if __name__ == "__main__":
    print("\n".join(DOZEN))
