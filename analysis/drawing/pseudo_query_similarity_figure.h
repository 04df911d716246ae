#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/drawing/figure.h"
#include "analysis/tables/table.h"

namespace kvscope::analysis {

/// Pseudo tokens after a prompt, and the similarity of their queries to the queries of the prompt's true answer.
struct PseudoQueries {
    bool same_content = false;  ///< the answer's own tokens (SC) instead of other tokens (DC)
    std::string content;        ///< label of the tokens' content
    int64_t start = 0;  ///< position of the first pseudo token; the correct place (SP) is the number of prompt tokens
    int64_t drawn_below = 0;          ///< if above 0, `start` is random and all positions are below this value
    std::vector<double> after_rope;   ///< mean cosine of each trial, after RoPE
    std::vector<double> before_rope;  ///< mean cosine of each trial, before RoPE
};

/// Measurements of one prompt (DapQ, Table 1 and Figure 2).
struct PromptQueries {
    std::string prompt;
    int64_t n_tokens = 0;
    int64_t n_answer = 0;  ///< number of answer tokens, equal to the number of pseudo tokens
    std::vector<PseudoQueries> conditions;
    std::vector<PseudoQueries> curve;  ///< the answer's own tokens at several start positions
};

/// Returns one row per condition and prompt: means, and five-number summaries if there are several trials.
[[nodiscard]] Table pseudo_query_table(std::span<const PromptQueries> prompts);

/// Draws the conditions as points, or as boxes for several trials; the right panel shows the similarity by position.
/// @param prompts all have the same conditions in the same order
/// @throws std::invalid_argument if there are no conditions
[[nodiscard]] Figure pseudo_query_figure(std::span<const PromptQueries> prompts);

}  // namespace kvscope::analysis
