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
    int n_trials = 0;   ///< of each condition that draws; 0: none of these
    int n_offsets = 0;  ///< start positions from 0 to the prompt's end; 0: none
    uint64_t seed = 0;
};

/// How like pseudo tokens' queries are to those of the true answer, for each prompt: DapQ's Table 1, the boxes of its
/// Figure 2a and the curve of its Figure 2b.
/// @throws what engine::QueryAlignment throws
std::vector<analysis::PromptQueries> measure_queries(const engine::Model& model,
                                                     std::span<const engine::Prompt> prompts,
                                                     const MeasureQueriesOptions& options, engine::Progress& progress);

}  // namespace kvscope::cli
