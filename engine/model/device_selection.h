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

/// Returns the devices of this machine, the processor first. Takes a few tenths of a second.
[[nodiscard]] std::vector<DeviceChoice> devices();

/// Returns why no card can be used, for example "no NVIDIA driver: …"; empty if a card may be usable.
[[nodiscard]] std::string why_no_card();

/// Returns a card's name and memory, such as "cuda:0: NVIDIA H100, 61.2 of 79.2 GiB free"; empty for the processor.
[[nodiscard]] std::string device_text(const ComputeDevice& device);

/// Opens the named device for a model. "auto" opens the first card with enough free memory, or else the processor and
/// reports why. @throws UsageError for an unknown name; RunError if the card is unusable or too small; CheckpointError
[[nodiscard]] ComputeDevice open_device_for_model(std::string_view name, const std::filesystem::path& model,
                                                  std::string_view dtype, Progress& progress);

/// Returns the named type, f32 or bf16. "auto" is bf16 on cards and on processors with bf16 products, otherwise f32.
/// @throws UsageError for another name
[[nodiscard]] kernels::DType dtype_from_name(std::string_view name, const ComputeDevice& device = {});

}  // namespace kvscope::engine
