#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "engine/common/progress.h"
#include "engine/echo_losses.h"
#include "engine/model/model.h"
#include "policies/interface/echo_maps.h"

namespace kvscope::engine {

/// A step of gradient descent.
struct EchoStep {
    double rate = 0;  ///< learning rate of the step
    double loss = 0;  ///< before the step, summed over the rebuilt layers
    /// Of squared errors the root of the loss over the mean squares of what is compared with, summed likewise: what is
    /// missed of it. Of qk_kl the mean of the layers' divergences, in nats.
    double error = 0;

    friend bool operator==(const EchoStep&, const EchoStep&) = default;
};

struct EchoTuningOptions {
    int64_t steps = 1000;
    int64_t sequence = 512;  ///< tokens of each step, a stretch of the text by chance
    int64_t skipped = 4;     ///< first tokens of a sequence that stay exact
    double rate = 5e-4;      ///< AdamW's learning rate at first, which falls to 0 along a cosine
    uint64_t seed = 42;
    EchoLoss loss = EchoLoss::outputs;
    /// The file in which maps, moments and losses are kept each minute and when the work is stopped, so that the same
    /// call goes on behind it, to the same maps. Empty: nothing is kept.
    std::filesystem::path state{};
    std::function<void(std::span<const EchoStep>)> on_resumed{};  ///< called before the others, with those resumed from
    std::function<void(const EchoStep&)> on_step{};  ///< called as each step is done; not for those resumed from
};

/// Maps that gradient descent begins with: numbers by chance, uniform between -1 / sqrt(inputs) and 1 / sqrt(inputs),
/// as PyTorch's nn.Linear has them; the paper does not say. The draws of a map, row by row, are those of
/// policies::row_random(seed, layer, 0 for keys and 1 for values).
/// @throws policies::EchoMapsError for a ratio that cannot be had; UsageError for one that leaves everything
policies::EchoMaps untrained_echo_maps(const Model& model, double ratio, uint64_t seed);

/// Gradient descent on the maps: EchoKV's first stage by its loss of keys and values, the second by the others. Step t
/// of T, from 0 on, reads one sequence by the uncompressed model and changes each map by AdamW (`TunedMap::step`) at
/// the rate r / 2 (1 + cos(pi t / T)). Sequences begin at SplitMix64(seed) modulo the number of places there are.
/// Maps change when all is done.
/// @param ids the text's tokens
/// @returns all steps, also those that were resumed from
/// @throws UsageError for a text shorter than a sequence, options that cannot be, or something else in the state's
///         place; Cancelled
std::vector<EchoStep> tune_echo(const Model& model, policies::EchoMaps& maps, std::span<const int32_t> ids,
                                const EchoTuningOptions& options, Progress& progress);

/// `EchoStep::error` of maps as they are, the mean over the text's whole sequences one after the other.
double echo_loss_error(const Model& model, const policies::EchoMaps& maps, std::span<const int32_t> ids,
                       const EchoTuningOptions& options, Progress& progress);

/// @throws UsageError where something is at the path that is no state of `tune_echo`
void require_tuning_state(const std::filesystem::path& path);

}  // namespace kvscope::engine
