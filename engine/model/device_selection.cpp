#include "engine/model/device_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/weight_memory.h"
#include "engine/common/engine_error.h"
#include "engine/device/cuda_backend.h"
#include "engine/options/run_options.h"
#include "kernels/cpu_features.h"
#include "kernels/cuda_library.h"

namespace kvscope::engine {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024;
// Space for activations, observations and libtorch, in addition to weights and caches.
constexpr uint64_t least_room = uint64_t{1} << 30;

std::string text_of(const Card& card) {
    return fmt::format("{}, {:.1f} of {:.1f} GiB free", card.name, static_cast<double>(card.free_bytes) / gib,
                       static_cast<double>(card.total_bytes) / gib);
}

/// Returns why the model does not fit on the card; empty if it fits.
std::string reason_against(const std::filesystem::path& path, kernels::DType dtype, int number) {
    give_back_unused_memory(number);
    const Card found = read_card_properties(number);
    const auto checkpoint = checkpoint::open_checkpoint(path);
    const checkpoint::WeightBytes bytes = checkpoint::count_weight_bytes(*checkpoint, dtype);
    const uint64_t needed = static_cast<uint64_t>(bytes.held + bytes.largest) + least_room;
    if (needed <= found.free_bytes) return {};
    return fmt::format("{} needs {:.1f} GiB for weights and activations, but {} has {:.1f} of {:.1f} GiB free",
                       path.string(), static_cast<double>(needed) / gib, found.name,
                       static_cast<double>(found.free_bytes) / gib, static_cast<double>(found.total_bytes) / gib);
}

ComputeDevice open_card(int number, const std::filesystem::path& model, std::string_view dtype, Progress& progress) {
    if (const int n = count_cards(); number >= n)
        throw RunError(fmt::format("there is no cuda:{}: this machine has {} card{}", number, n, n == 1 ? "" : "s"));
    const ComputeDevice& device = open_cuda_device(number);
    if (const auto reason = reason_against(model, dtype_from_name(dtype, device), number); !reason.empty())
        throw RunError(reason);
    progress.message(device_text(device));
    return device;
}

ComputeDevice open_any_card(const std::filesystem::path& model, std::string_view dtype, Progress& progress) {
    std::string reasons;
    const int n = std::max(count_cards(), 1);  // without a card, opening number 0 explains why
    for (int number = 0; number < n; ++number) {
        try {
            return open_card(number, model, dtype, progress);
        } catch (const checkpoint::CheckpointError&) {
            throw;
        } catch (const std::runtime_error& error) {
            reasons += (reasons.empty() ? "" : "; ") + std::string(error.what());
        }
    }
    throw RunError(reasons);
}

}  // namespace

std::vector<DeviceChoice> devices() {
    std::vector<DeviceChoice> all{{"cpu", "the processor"}};
    if (!kernels::cuda::available()) return all;
    const auto add_card = [&](int number) {
        const std::string name = fmt::format("cuda:{}", number);
        try {
            all.push_back({name, text_of(read_card_properties(number))});
        } catch (const std::runtime_error& error) {
            all.push_back({name, error.what()});
        }
    };
    try {
        const int n = count_cards();
        if (n > 0) all.push_back({"auto", "a card with enough memory for the model, otherwise the processor"});
        for (int i = 0; i < n; ++i) add_card(i);
    } catch (const std::runtime_error&) {
        // The driver failed.
    }
    return all;
}

std::string why_no_card() {
    if (!kernels::cuda::available()) return kernels::cuda::unavailable_reason();
    try {
        return count_cards() > 0 ? "" : "the NVIDIA driver finds no card";
    } catch (const std::runtime_error& error) {
        return error.what();
    }
}

std::string device_text(const ComputeDevice& device) {
    if (device.is_processor()) return {};
    const std::string name = device.backend->name();
    const std::optional<int> number = card_number(name);
    return number ? fmt::format("{}: {}", name, text_of(read_card_properties(*number))) : name;
}

ComputeDevice open_device_for_model(std::string_view name, const std::filesystem::path& model, std::string_view dtype,
                                    Progress& progress) {
    if (!is_device_name(name))
        throw UsageError("unknown device '" + std::string(name) + "': expected cpu, auto, cuda or cuda:N");
    if (name == "cpu") return {};
    if (name == "auto" && !kernels::cuda::available()) {
        progress.message("using the processor: " + kernels::cuda::unavailable_reason());
        return {};
    }
    try {
        if (name == "auto") return open_any_card(model, dtype, progress);
        return open_card(card_number(name).value_or(0), model, dtype, progress);
    } catch (const checkpoint::CheckpointError&) {
        throw;
    } catch (const std::runtime_error& error) {
        if (name != "auto")
            throw RunError(fmt::format("--device {}: {}; use --device cpu for the processor", name, error.what()));
        progress.message(std::string("using the processor: ") + error.what());
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
    throw UsageError(find_option_problem(asked));
}

}  // namespace kvscope::engine
