#pragma once

#include <catch2/catch.hpp>

#include "policies/api/stored_layer.h"
#include "policies/bases/score_operations.h"

namespace kvscope::policies::test {

/// Number of stored numbers in a layer, counting blocks once.
[[nodiscard]] inline double numbers_of(const StoredLayer& layer, int head_dim) {
    double numbers = 0;
    for (const auto& block : layer.blocks) numbers += static_cast<double>(block->numbers.size());
    for (const StoredRow& row : layer.rows) {
        numbers += 2.0 * static_cast<double>(row.plain.size()) * head_dim;
        for (const StoredEntries& entries : row.stored)
            for (const StoredVectors* vectors : {&entries.keys, &entries.values})
                for (const StoredPart& part : vectors->parts)
                    numbers += static_cast<double>(entries.positions.size()) *
                               ((part.block ? 0 : part.width) + (part.scales.empty() ? 0 : 1));
    }
    return numbers;
}

/// Checks that the summary's widths times the entries equal the stored numbers.
inline void check_widths(const Selection& selection, const StoredSummary& summary, int head_dim) {
    double numbers = 0;
    for (size_t row = 0; row < summary.n_entries.size(); ++row) {
        const double n_stored = summary.n_stored[row], n_whole = summary.n_entries[row] - summary.n_stored[row];
        numbers +=
            n_stored * (double{summary.key_width[row]} + double{summary.value_width[row]}) + n_whole * 2 * head_dim;
    }
    CHECK(numbers == Approx(numbers_of(*selection.stored, head_dim)));
}

}  // namespace kvscope::policies::test
