#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/inference/merged_layer.h"
#include "engine/model/transformer.h"
#include "policies/interface/policy.h"

namespace kvscope::engine {

/// A run whose policy merges while the prompt is read (PassPlan::chunk).
struct ChunkedRun {
    policies::Policy* policy = nullptr;
    std::string label{};  ///< for messages
    int64_t budget = 0;   ///< entries to which the cache is merged back
    int64_t chunk = 0;
    bool final_merge = true;
    bool measure_error = false;  ///< of what it merges; takes the memory of one more set of keys

    // What comes of it.
    std::vector<MergedLayer> layers{};
    std::vector<float> last_logits{};  ///< of the prompt's last token
    double merge_seconds = 0;          ///< of the policy's decisions
    std::string error{};               ///< why it goes no further; the others go on as without it
};

/// Reads the prompt into each run's own cache, on the processor wherever the model is. All advance together: every
/// weight is read once for a chunk of each run. What a run gets depends neither on the others nor on the number of
/// threads; where nothing is merged it is what a prefill gives.
/// @throws UsageError for an empty prompt or one beyond the model's context, Cancelled
void read_in_chunks(const Transformer& model, std::span<const int32_t> ids, std::span<ChunkedRun> runs,
                    Progress& progress);

}  // namespace kvscope::engine
