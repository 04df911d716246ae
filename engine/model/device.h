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

/// Returns the devices of this machine, the processor first. Takes some tenths of a second.
std::vector<DeviceChoice> devices();

/// Returns why no card can be used, for example "no NVIDIA driver: …"; empty if one may be usable.
std::string why_no_card();

/// Returns a card's name and memory, such as "cuda:0: NVIDIA H100, 61.2 of 79.2 GiB free"; else empty.
std::string device_text(const ComputeDevice& device);

/// Opens the named device for a model. "auto" selects the first card with enough free memory, or reports why there is
/// none and selects the processor.
/// @throws UsageError for an unknown name; RunError if the card cannot be used or its memory is too small;
/// CheckpointError for unusable files
ComputeDevice device_for(std::string_view name, const std::filesystem::path& model, std::string_view dtype,
                         Progress& progress);

/// Returns the type "f32", "bf16" or "auto": bf16 on a card and on processors with bf16 products, otherwise f32.
/// @throws UsageError for another name
kernels::DType dtype_from_name(std::string_view name, const ComputeDevice& device = {});

}  // namespace kvscope::engine
