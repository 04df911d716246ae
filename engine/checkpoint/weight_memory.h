#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "kernels/types.h"
#include "kernels/weight_format.h"

namespace kvscope::checkpoint {

/// Returns a tensor's format in memory: the file's format if smaller and readable by a kernel, else the model's type.
[[nodiscard]] kernels::WeightFormat held_format(const std::string& stored_type, int64_t columns, kernels::DType dtype);

struct WeightBytes {
    int64_t held = 0;
    int64_t largest = 0;  ///< largest matrix, or group of contiguous matrices, that the prefill expands to numbers
    std::vector<std::string> written_out;  ///< stored types without a kernel, which are held as numbers
};
[[nodiscard]] WeightBytes count_weight_bytes(const Checkpoint& checkpoint, kernels::DType dtype);

}  // namespace kvscope::checkpoint
