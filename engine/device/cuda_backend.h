#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/device/compute_device.h"

namespace kvscope::engine {

/// What is known of a card.
struct Card {
    std::string name;  ///< as its maker calls it
    uint64_t total_bytes = 0, free_bytes = 0;
    double bytes_per_second = 0;  ///< of its memory at most; 0 where it does not say
};

/// How many there are, and the N-th of them.
/// @throws kernels::cuda::Unavailable, kernels::cuda::Failed
int count_cards();
Card card(int number);

/// Lets the driver have back what libtorch keeps of a card's memory for later, so that it counts as free.
void give_back_unused(int number);

/// cuda:N: kvscope's own kernels of libkvscope_cuda.so, and libtorch's functions for the rest, whose half for cards is
/// opened here: libtorch_cuda.so of the same version, from the folder that the environment variable
/// KVSCOPE_TORCH_CUDA_DIR names, or from beside the program's libtorch_cpu.so. All work goes, in order, on the default
/// stream. Products of more rows than `rows_alike` are libtorch's, in blocks of 1,024 rows.
/// @throws kernels::cuda::Unavailable naming what is missing; Failed
const ComputeDevice& cuda_device(int number);

}  // namespace kvscope::engine
