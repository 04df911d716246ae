#include "engine/model/device.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/held_weights.h"
#include "engine/common/error.h"
#include "engine/device/cuda_backend.h"
#include "engine/options/run_options.h"
#include "kernels/cpu_features.h"
#include "kernels/cuda_library.h"

namespace kvscope::engine {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024;
// Activations, observations and libtorch's own, beside the weights; caches come on top.
constexpr uint64_t least_room = uint64_t{1} << 30;

/// N of cuda:N.
std::optional<int> card_number(std::string_view name) {
    if (name == "cuda") return 0;
    constexpr std::string_view prefix = "cuda:";
    if (!name.starts_with(prefix)) return {};
    const std::string_view digits = name.substr(prefix.size());
    int number = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size() || number < 0) return {};
    return number;
}

/// Why the model does not go onto the card; empty where it does.
std::string reason_against(const std::filesystem::path& path, kernels::DType dtype, int number) {
    const Card found = card(number);
    const auto checkpoint = checkpoint::open_checkpoint(path);
    const checkpoint::WeightBytes bytes = checkpoint::weight_bytes(*checkpoint, dtype);
    const uint64_t needed = static_cast<uint64_t>(bytes.held + bytes.largest) + least_room;
    if (needed <= found.free_bytes) return {};
    return fmt::format("{} needs {:.1f} GiB with what is computed, and {} has {:.1f} of {:.1f} GiB free", path.string(),
                       static_cast<double>(needed) / gib, found.name, static_cast<double>(found.free_bytes) / gib,
                       static_cast<double>(found.total_bytes) / gib);
}

ComputeDevice open_card(int number, const std::filesystem::path& model, std::string_view dtype, Progress& progress) {
    if (const int n = count_cards(); number >= n)
        throw RunError(fmt::format("there is no cuda:{}: this machine has {} card{}", number, n, n == 1 ? "" : "s"));
    const ComputeDevice& device = cuda_device(number);
    if (const auto reason = reason_against(model, dtype_from_name(dtype, device), number); !reason.empty())
        throw RunError(reason);
    const Card found = card(number);
    progress.message(fmt::format("cuda:{}: {}, {:.1f} of {:.1f} GiB free", number, found.name,
                                 static_cast<double>(found.free_bytes) / gib,
                                 static_cast<double>(found.total_bytes) / gib));
    return device;
}

}  // namespace

bool is_device_name(std::string_view name) { return name == "cpu" || name == "auto" || card_number(name); }

ComputeDevice device_for(std::string_view name, const std::filesystem::path& model, std::string_view dtype,
                         Progress& progress) {
    if (!is_device_name(name))
        throw UsageError("unknown device '" + std::string(name) + "': expected cpu, auto, cuda or cuda:N");
    if (name == "cpu" || (name == "auto" && !kernels::cuda::available())) return {};
    try {
        return open_card(card_number(name).value_or(0), model, dtype, progress);
    } catch (const checkpoint::CheckpointError&) {
        throw;
    } catch (const std::runtime_error& error) {
        if (name != "auto") throw RunError("--device " + std::string(name) + ": " + error.what());
        progress.message(std::string("the processor is used: ") + error.what());
        return {};
    }
}

kernels::DType dtype_from_name(std::string_view name, const ComputeDevice& device) {
    if (name == "f32") return kernels::DType::f32;
    if (name == "bf16") return kernels::DType::bf16;
    if (name == "auto")
        return !device.is_processor() || kernels::simd_level() >= kernels::SimdLevel::avx512_bf16 ? kernels::DType::bf16
                                                                                                  : kernels::DType::f32;
    RunOptions asked;
    asked.dtype = name;
    throw UsageError(problem_of(asked));
}

}  // namespace kvscope::engine
