#pragma once

#include <string>
#include <string_view>

namespace kvscope::gui {

/// Returns a one-line definition of a measure for tooltips, with paper and equation, or nullptr if there is none.
/// @param name a column of the table of runs, a source of the figure `spectrum`, or "retention", "layers",
/// "layer_coverage", "head_budget", "overlap", "head_divergence", "query_similarity", "mean_query_similarity" or "kl"
const char* measure_definition(std::string_view name);

/// Returns the definition of a policy's scores, with its paper.
std::string score_definition(const std::string& policy);

}  // namespace kvscope::gui
