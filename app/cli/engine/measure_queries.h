#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/pseudo_queries.h"
#include "engine/inference/prompt.h"
#include "engine/model/model.h"

namespace kvscope::cli {

struct MeasureQueriesOptions {
    int64_t n_answer = 32;
    int n_trials = 0;   ///< number of draws for each random condition; 0 omits these conditions
    int n_offsets = 0;  ///< number of start positions from 0 to the end of the prompt; 0 omits the curve
    uint64_t seed = 0;
};

/// Measures how similar pseudo tokens' queries are to the true answer's: DapQ's Table 1, Figures 2a and 2b.
/// @throws what engine::QueryAlignment throws
std::vector<analysis::PromptQueries> measure_queries(const engine::Model& model,
                                                     std::span<const engine::Prompt> prompts,
                                                     const MeasureQueriesOptions& options, engine::Progress& progress);

}  // namespace kvscope::cli
