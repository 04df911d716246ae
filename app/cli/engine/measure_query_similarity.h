#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/drawing/pseudo_query_similarity_figure.h"
#include "engine/model/model.h"
#include "engine/prefill/prompt.h"

namespace kvscope::cli {

struct QuerySimilarityOptions {
    int64_t n_answer = 32;
    int n_trials = 0;   ///< number of draws for each random condition; 0 omits these conditions
    int n_offsets = 0;  ///< number of start positions from 0 to the end of the prompt; 0 omits the curve
    uint64_t seed = 0;
};

/// Measures how similar the queries of pseudo tokens and of the answer are (DapQ).
/// @throws as engine::PseudoQuerySimilarity
[[nodiscard]] std::vector<analysis::PromptQueries> measure_query_similarity(const engine::Model& model,
                                                                            std::span<const engine::Prompt> prompts,
                                                                            const QuerySimilarityOptions& options,
                                                                            engine::Progress& progress);

}  // namespace kvscope::cli
