"""Measures the current memory bandwidth, GEMM rates and load of the machine."""

import os
import time

import torch


def best(work, seconds):
    """Calls work() repeatedly for about `seconds`. Returns the shortest time of a call."""
    work()
    shortest, stop = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < stop:
        start = time.perf_counter()
        work()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


class Machine:
    def __init__(self, threads):
        torch.set_num_threads(threads)
        self.threads = threads
        self.big = torch.ones(1 << 27)  # 512 MiB
        size = 1536
        self.square = torch.randn(size, size)
        self.half = self.square.bfloat16()
        self.flops = 2 * size**3

    def measure(self):
        """Returns the read bandwidth (GB/s), the GFLOP/s of 1536 x 1536 products in bf16 and f32, and the last minute's load."""
        load = os.getloadavg()[0]
        return {
            "load": load,
            "bandwidth": self.big.numel() * 4 / best(self.big.sum, 0.5) / 1e9,
            "bf16": self.flops / best(lambda: self.half @ self.half, 0.4) / 1e9,
            "f32": self.flops / best(lambda: self.square @ self.square, 0.4) / 1e9,
        }
