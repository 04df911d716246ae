#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/cache/dense_cache.h"
#include "engine/common/progress.h"
#include "engine/model/transformer.h"
#include "engine/prefill/pseudo_token_pass.h"
#include "policies/api/policy.h"
#include "trace/records/records.h"

namespace kvscope::engine {

struct PrefillRequest {
    std::span<const int32_t> ids;     ///< (N), at least one
    policies::Needs needs;            ///< needs of all runs
    std::vector<int> entry_layers{};  ///< layers whose entries policies read, if `needs` does not request all
    trace::PromptRecord* projections = nullptr;  ///< receives the projection measures; may be nullptr
    std::span<const float> modes;                ///< modes of the projections, as for ProjectionMeasures
    std::span<const Tail> tails;
    int n_layers = -1;       ///< number of layers to compute; -1 for all
    int64_t room = 0;        ///< number of free entries after the prompt in each layer's cache
    bool keep_cache = true;  ///< if false, each layer's cache is freed after the callbacks
};

/// Results of one layer, valid only during the callback. The callback may share `dense` or move from it.
struct PrefillLayer {
    int layer = 0;
    policies::LayerObservations& prompt;
    std::span<const std::unique_ptr<policies::LayerObservations>> tails;
    DenseLayer& dense;
};

using OnLayer = std::function<void(PrefillLayer&)>;

struct PrefillResult {
    DenseCache cache;                ///< empty unless kept
    std::vector<float> last_logits;  ///< (vocabulary) of the prompt's last token; empty if a layer was skipped
    /// Seconds of the prefill. Excludes callbacks, recording, and the work of a device during both.
    double seconds = 0;
    double recording_seconds = 0;  ///< seconds for projection measures and for copying observations
};

/// Reads the prompt layer by layer, in chunks of tokens. Never stores an array of size N x N.
/// @param on_layer called after each layer; may be empty
/// @param meanwhile called after on_layer, while a device may already compute the next layer; may be empty
/// @throws UsageError if the prompt is empty or longer than the model's context
PrefillResult prefill(const Transformer& model, const PrefillRequest& request, const OnLayer& on_layer,
                      Progress& progress, const OnLayer& meanwhile = {});

/// Shows each layer of a text, read on the processor, with its entries and keys before RoPE. Reports no steps.
void read_layers(const Transformer& model, std::span<const int32_t> ids, int window_queries, Progress& progress,
                 const OnLayer& on_layer);

/// Returns the numbers of the tokens [first, end), by channel: (G d, tokens).
[[nodiscard]] std::vector<float> numbers_by_channel(const policies::EntriesView& view, int n_heads, int head_dim,
                                                    int64_t first, int64_t end);

}  // namespace kvscope::engine
