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

/// A run whose policy merges entries while the prompt is read (PassPlan::chunk), and the results of the reading.
struct ChunkedRun {
    policies::Policy* policy = nullptr;
    std::string label{};  ///< used in messages
    int64_t budget = 0;   ///< entries that remain after each merge
    int64_t chunk = 0;
    bool final_merge = true;
    bool measure_error = false;  ///< record the error of merging; needs memory for one more copy of the keys

    // Results
    std::vector<MergedLayer> layers{};
    std::vector<float> last_logits{};  ///< logits of the prompt's last token
    double merge_seconds = 0;          ///< time of the policy's decisions
    std::string error{};               ///< why reading stopped for this run; the other runs continue
};

/// Reads the prompt into each run's cache in chunks, on the processor. Each weight is read once for one chunk of all
/// runs. A run's result depends neither on the other runs nor on the number of threads.
/// @throws UsageError if the prompt is empty or longer than the model's context
void read_in_chunks(const Transformer& model, std::span<const int32_t> ids, std::span<ChunkedRun> runs,
                    Progress& progress);

}  // namespace kvscope::engine
