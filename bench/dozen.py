"""usage: dozen.py: prints our dozen of policies, a line each, for scripts/gpu.

A dozen of each side's: for ours that kvpress has not stand some of its own, which need no second pass.
"""

DOZEN = ("streaming-llm", "h2o", "snapkv", "pyramidkv", "ada-snapkv", "ada-pyramidkv",
         "aperturekv", "k-vec", "dapq", "laq", "longcache", "gemfilter")
PRESSES = ("streaming-llm", "random", "snapkv", "pyramidkv", "ada-snapkv", "ada-pyramidkv",
           "knorm", "keydiff", "tova", "lagkv", "critical-snapkv", "expected-attention")

if __name__ == "__main__":
    print("\n".join(DOZEN))
