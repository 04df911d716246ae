#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/measures/kept_sets.h"
#include "trace/reader.h"

namespace kvscope::analysis {

// Each token in an entry of n tokens counts as 1/n. Without merging, all counts are whole numbers.

/// Returns the number of heads of each layer that keep each token (L, N): K-VEC's Figure 4.
[[nodiscard]] std::vector<double> count_heads_keeping_per_layer(const KeptSets& kept);

/// Returns the number of layers that keep each token (N): K-VEC's Figure 3. Each layer adds the maximum over its heads.
[[nodiscard]] std::vector<double> count_layers_keeping_token(const KeptSets& kept);

/// Returns the number of heads of all layers that keep each token (N).
[[nodiscard]] std::vector<double> heads_keeping(const KeptSets& kept);

/// Returns the number of heads of each layer that hold each token, alone or in a merged entry (L, N).
[[nodiscard]] std::vector<uint16_t> count_holding_heads(const KeptSets& kept);

/// Returns the share of heads in the given layers that keep each token (N).
[[nodiscard]] std::vector<double> share_of_heads_keeping(const KeptSets& kept, std::span<const int> layers);

[[nodiscard]] std::vector<double> share_of_heads_keeping(const trace::Reader& reader, int prompt, int run,
                                                         std::span<const int> layers);

/// Returns the lower end of a color scale: the smallest positive count, or 1 if that count is above 1.
[[nodiscard]] double smallest_positive_count(const std::vector<double>& counts);

}  // namespace kvscope::analysis
