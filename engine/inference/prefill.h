#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/cache/dense_cache.h"
#include "engine/common/progress.h"
#include "engine/inference/tail_pass.h"
#include "engine/model/transformer.h"
#include "policies/interface/policy.h"
#include "trace/records.h"

namespace kvscope::engine {

struct PrefillRequest {
    std::span<const int32_t> ids;                ///< (N), at least one
    policies::Needs needs;                       ///< the union over all runs
    std::vector<int> entry_layers{};             ///< whose entries policies read, where `needs` does not say all
    trace::PromptRecord* projections = nullptr;  ///< receives what `ProjectionMeasures` measures; nullptr: nothing does
    std::span<const float> modes;                ///< of the model's projections, as `ProjectionMeasures` takes them
    std::span<const Tail> tails;
    int n_layers = -1;       ///< stop after this many layers; -1: all
    int64_t room = 0;        ///< entries left free behind the prompt's in each layer's cache
    bool keep_cache = true;  ///< false: each layer's cache is freed after `on_layer`
};

/// What one layer of the prefill hands over: the prompt's observations, one more for each tail, and the layer's cache.
/// All of it is valid during the calls only, but `dense`, which may be shared or moved away.
struct PrefillLayer {
    int layer = 0;
    policies::LayerObservations& prompt;
    std::span<const std::unique_ptr<policies::LayerObservations>> tails;
    DenseLayer& dense;
};

using OnLayer = std::function<void(PrefillLayer&)>;

struct PrefillResult {
    DenseCache cache;                ///< empty unless kept
    std::vector<float> last_logits;  ///< (vocabulary) of the prompt's last token; empty where layers were left out
    /// Without the time spent in `on_layer`, in `meanwhile`, and on recording; with what a device did meanwhile.
    double seconds = 0;
    double recording_seconds = 0;  ///< measures of the projections and copies for observations
};

/// Reads the prompt layer by layer, in chunks of tokens within a layer, holding one layer's hidden states. Nothing of
/// size N x N is ever stored.
/// @param on_layer  called after each layer; may be empty
/// @param meanwhile called behind it; may be empty. Where there is one, a device is at the next layer by then, unless
///                  something is measured that the processor has to see before: what the device is asked for here
///                  takes its turn behind that layer.
/// @throws UsageError for an empty prompt or one longer than the model's context; Cancelled.
PrefillResult prefill(const Transformer& model, const PrefillRequest& request, const OnLayer& on_layer,
                      Progress& progress, const OnLayer& meanwhile = {});

}  // namespace kvscope::engine
