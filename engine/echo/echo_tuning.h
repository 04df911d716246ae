#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "engine/common/progress.h"
#include "engine/echo/echokv_tuning_losses.h"
#include "engine/model/model.h"
#include "policies/methods/echo_maps.h"

namespace kvscope::engine {

struct EchoStep {
    double rate = 0;  ///< learning rate of the step
    double loss = 0;  ///< loss before the step, summed over the rebuilt layers
    /// Square root of (loss / mean square of the reference values). For qk_kl: mean divergence in nats.
    double error = 0;

    [[nodiscard]] friend bool operator==(const EchoStep&, const EchoStep&) = default;
};

struct EchoTuningOptions {
    int64_t steps = 1000;
    int64_t sequence = 512;  ///< tokens of each step's sequence, which starts at a random token of the text
    int64_t skipped = 4;     ///< number of tokens at the start of a sequence that stay exact
    double rate = 5e-4;      ///< initial learning rate of AdamW, which falls to 0 along a cosine
    uint64_t seed = 42;
    EchoLoss loss = EchoLoss::outputs;
    /// File of maps and losses, from which a repeated call resumes; empty for none.
    std::filesystem::path state{};
    std::function<void(std::span<const EchoStep>)> on_resumed{};  ///< called first, with the steps from the state file
    std::function<void(const EchoStep&)> on_step{};
};

/// Returns random maps, uniform in [-1 / sqrt(inputs), 1 / sqrt(inputs)] like PyTorch's nn.Linear, drawn row by row
/// from policies::row_random(seed, layer, 0 for keys or 1 for values). @throws as make_echo_map_layout()
[[nodiscard]] policies::EchoMaps make_random_echo_maps(const Model& model, double ratio, uint64_t seed);

/// Tunes the maps by gradient descent. Step t of T, counted from 0, reads one sequence with the uncompressed model and
/// changes each map by AdamW (TunedMap::step) with the rate r / 2 (1 + cos(pi t / T)). Sequences begin at
/// SplitMix64(seed) modulo the number of possible places. `maps` changes only after the last step.
/// @returns all steps, including resumed steps
/// @throws UsageError for a short text, options out of range, or another file at the state's path
[[nodiscard]] std::vector<EchoStep> tune_echo_maps(const Model& model, policies::EchoMaps& maps,
                                                   std::span<const int32_t> ids, const EchoTuningOptions& options,
                                                   Progress& progress);

[[nodiscard]] double evaluate_echo_loss(const Model& model, const policies::EchoMaps& maps,
                                        std::span<const int32_t> ids, const EchoTuningOptions& options,
                                        Progress& progress);

/// @throws UsageError if the path exists and is not a state of tune_echo_maps()
void refuse_foreign_state_file(const std::filesystem::path& path);

}  // namespace kvscope::engine
