#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/common/progress.h"
#include "engine/device/compute_device.h"
#include "engine/options/device_name.h"
#include "kernels/types.h"

namespace kvscope::engine {

/// The processor first; cards where they can be used. Looks for them, which takes some tenths of a second.
std::vector<DeviceChoice> devices();

/// Why no card can be used at all: "no NVIDIA driver: …"; empty where one may be.
std::string why_no_card();

/// "cuda:0: NVIDIA H100, 61.2 of 79.2 GiB free" as it is now; empty for the processor.
std::string device_text(const ComputeDevice& device);

/// The device of that name for a model: cpu, a card, or with "auto" the first card where there is one that works and
/// has room for the model, else cpu, which a message says.
/// @param dtype as in dtype_from_name
/// @throws UsageError for another name; RunError for a card that is not there, that something is missing for, or whose
///         free memory the model does not fit into, with both in numbers; CheckpointError for files that cannot be used
ComputeDevice device_for(std::string_view name, const std::filesystem::path& model, std::string_view dtype,
                         Progress& progress);

/// "f32", "bf16", or "auto": bf16 on a card and where the processor multiplies it, else f32.
/// @throws UsageError for another name
kernels::DType dtype_from_name(std::string_view name, const ComputeDevice& device = {});

}  // namespace kvscope::engine
