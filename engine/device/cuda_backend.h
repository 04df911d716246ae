#pragma once

#include <cstdint>
#include <string>

#include "engine/device/compute_device.h"

namespace kvscope::engine {

struct Card {
    std::string name;  ///< product name of the card
    uint64_t total_bytes = 0, free_bytes = 0;
    double bytes_per_second = 0;  ///< peak memory bandwidth; 0 if unknown
};

/// @throws kernels::cuda::Unavailable, kernels::cuda::Failed
[[nodiscard]] int count_cards();
[[nodiscard]] Card read_card_properties(int number);

/// Returns a card's unused memory from libtorch to the driver.
void give_back_unused_memory(int number);

/// Opens a card with kvscope's kernels and libtorch's functions. Loads libtorch_cuda.so from the folder in the
/// environment variable KVSCOPE_TORCH_CUDA_DIR, or from the folder of libtorch_cpu.so. All work runs in order on the
/// default stream. @throws kernels::cuda::Unavailable, naming what is missing; kernels::cuda::Failed
const ComputeDevice& open_cuda_device(int number);

}  // namespace kvscope::engine
