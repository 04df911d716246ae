#pragma once

#include <string>
#include <string_view>

namespace kvscope::gui {

/// What a measure is, with its paper and equation, in one line for tooltips. By the name of a column of the table of
/// runs, or "retention", "layers", "layer_coverage", "head_budget", "overlap", "head_divergence", "query_similarity",
/// "mean_query_similarity", "kl", or a source of the figure `spectrum`.
/// @returns nullptr where nothing is to be said about it
const char* measure_definition(std::string_view name);

/// What a policy's scores are, with its paper.
std::string score_definition(const std::string& policy);

}  // namespace kvscope::gui
