#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/common/progress.h"
#include "engine/model/transformer.h"
#include "engine/prefill/layer_with_merged_entries.h"
#include "policies/api/further_interfaces.h"

namespace kvscope::engine {

/// A run whose policy merges entries while it reads the prompt (ReadsThroughOwnCache), and the results.
struct ChunkedRun {
    policies::ReadsThroughOwnCache* policy = nullptr;
    std::string label{};
    int64_t budget = 0;  ///< entries that each merge leaves
    policies::OwnCacheReading reading{};
    bool measure_error = false;  ///< record the error of merging; needs memory for one more copy of the keys

    std::vector<MergedLayer> layers{};
    std::vector<float> last_logits{};  ///< logits of the prompt's last token
    double merge_seconds = 0;          ///< time of the policy's decisions
    std::string error{};               ///< why reading stopped; empty if it succeeded
};

/// Reads the prompt in chunks into each run's cache, on the processor. Failed runs do not stop the others.
/// A run's result depends neither on the other runs nor on the number of threads.
/// @throws UsageError if the prompt is empty or longer than the model's context
void read_in_chunks(const Transformer& model, std::span<const int32_t> ids, std::span<ChunkedRun> runs,
                    Progress& progress);

}  // namespace kvscope::engine
