#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "kernels/types.h"
#include "kernels/weight_format.h"

namespace kvscope::checkpoint {

/// How a tensor's rows are held in memory: as the file has them where there is a kernel that reads them so and they
/// take less than numbers of the model's type, else as such numbers.
/// @param stored_type as in TensorInfo
kernels::WeightFormat held_format(const std::string& stored_type, int64_t columns, kernels::DType dtype);

/// Bytes of all of a model's weights in memory, known before they are read.
struct WeightBytes {
    int64_t held = 0;
    int64_t largest = 0;  ///< of what the prefill writes out as numbers at a time: a matrix, or several that lie as one
    std::vector<std::string> written_out;  ///< types of the file without a kernel, whose tensors become numbers
};
WeightBytes weight_bytes(const Checkpoint& checkpoint, kernels::DType dtype);

}  // namespace kvscope::checkpoint
