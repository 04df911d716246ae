#pragma once

#include <string>
#include <vector>

#include "analysis/figure.h"
#include "analysis/figure_definition.h"

namespace kvscope::analysis {

/// One number for each layer and head of a run.
struct HeadMap {
    int run = 0;
    size_t n_rows = 0;          ///< R
    std::vector<float> values;  ///< (L, R)
    std::string part;
    std::string note;  ///< at the right of the panel's title
};

enum class OfGroup { sum, mean };

/// Replaces maps of query heads by maps of KV heads if FigureOptions::common_unit is set: each KV head gets the sum or
/// mean of its query heads.
void to_common_unit(std::vector<HeadMap>& maps, const trace::Reader& reader, const FigureOptions& options, OfGroup how);

/// Returns one panel per map, heads from top to bottom and layers from left to right. All maps share one color scale,
/// extended to the largest value. The caller adds name, title and caption.
Figure head_maps_figure(const trace::Reader& reader, const FigureOptions& options, const std::vector<HeadMap>& maps,
                        ColorScale scale);

/// Returns one row per run, layer and head, with a column for each of the run's maps. The maps of a run must be
/// adjacent.
/// @param measures columns of values, one per map of a run
Table head_maps_numbers(const trace::Reader& reader, const FigureOptions& options, const std::vector<HeadMap>& maps,
                        const std::vector<Column>& measures);

}  // namespace kvscope::analysis
