#pragma once

#include <string>
#include <vector>

#include "analysis/drawing/figure.h"
#include "analysis/drawing/figure_definition.h"

namespace kvscope::analysis {

/// One number for each layer and head of a run.
struct HeadMap {
    int run = 0;
    size_t n_rows = 0;          ///< number of rows per layer (R)
    std::vector<float> values;  ///< value of each row (L, R)
    std::string part;
    std::string note;  ///< text at the right of the panel's title
};

enum class OfGroup { sum, mean };

/// If FigureOptions::common_unit is set, combines the query heads of each KV head by their sum or mean.
void combine_query_heads(std::vector<HeadMap>& maps, const trace::Reader& reader, const FigureOptions& options,
                         OfGroup how);

/// Draws one panel per map, heads by layers, on one color scale. The caller adds name, title and caption.
[[nodiscard]] Figure head_maps_figure(const trace::Reader& reader, const FigureOptions& options,
                                      const std::vector<HeadMap>& maps, ColorScale scale);

/// Returns one row per run, layer and head. @param measures columns of values; a run has one map per measure, in order
[[nodiscard]] Table head_maps_numbers(const trace::Reader& reader, const FigureOptions& options,
                                      const std::vector<HeadMap>& maps, const std::vector<Column>& measures);

}  // namespace kvscope::analysis
