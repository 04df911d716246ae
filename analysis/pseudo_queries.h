#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/figure.h"
#include "analysis/tables/table.h"

namespace kvscope::analysis {

/// Pseudo tokens behind a prompt, and how like their queries are to those of the prompt's true answer.
struct PseudoQueries {
    bool same_content = false;        ///< they are the answer's own tokens (SC); otherwise others (DC)
    std::string content;              ///< what they are, in a word
    int64_t start = 0;                ///< position of the first of them; the number of prompt tokens is in place (SP)
    int64_t drawn_below = 0;          ///< above 0: `start` is drawn, so that all positions are below this
    std::vector<double> after_rope;   ///< mean cosine, one a trial
    std::vector<double> before_rope;  ///< as many
};

/// All that was measured of one prompt (DapQ, Table 1 and Figure 2).
struct PromptQueries {
    std::string prompt;
    int64_t n_tokens = 0;
    int64_t n_answer = 0;  ///< tokens of the answer, and pseudo tokens
    std::vector<PseudoQueries> conditions;
    std::vector<PseudoQueries> curve;  ///< the answer's own tokens at several starts
};

/// One row each: means, and the five numbers of a box where there are several trials.
Table pseudo_query_table(std::span<const PromptQueries> prompts);

/// Left the conditions, a point for one trial, a box from the least to the greatest for several; right, where there
/// are curves, similarity over how far before its place the answer stands. Of several prompts each has a colour.
/// @param prompts with the same conditions in the same order
/// @throws std::invalid_argument without conditions
Figure pseudo_query_figure(std::span<const PromptQueries> prompts);

}  // namespace kvscope::analysis
