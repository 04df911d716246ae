#pragma once

#include <string>
#include <vector>

#include "analysis/figure.h"
#include "analysis/figure_definition.h"

namespace kvscope::analysis {

/// A number for each head of each layer of one run.
struct HeadMap {
    int run = 0;
    size_t n_rows = 0;          ///< R
    std::vector<float> values;  ///< (L, R)
    std::string part;           ///< Panel::part
    std::string note;           ///< beside the panel's title
};

enum class OfGroup { sum, mean };

/// With FigureOptions::common_unit, maps of query heads become maps of KV heads: each KV head has the sum, or the mean,
/// of its query heads.
void to_common_unit(std::vector<HeadMap>& maps, const trace::Reader& reader, const FigureOptions& options, OfGroup how);

/// Heads downwards, layers to the right, one panel for each map, all on one colour scale, whose end is their largest
/// value where that is above `scale.max`. Name, title and caption are the caller's.
Figure head_maps_figure(const trace::Reader& reader, const FigureOptions& options, const std::vector<HeadMap>& maps,
                        ColorScale scale);

/// A row for each run, layer and head, with a column for each of the runs' maps; `n_measures` maps of a run follow one
/// another.
/// @param measures columns of the maps' values
Table head_maps_numbers(const trace::Reader& reader, const FigureOptions& options, const std::vector<HeadMap>& maps,
                        const std::vector<Column>& measures);

}  // namespace kvscope::analysis
