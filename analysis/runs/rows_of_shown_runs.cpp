#include "analysis/runs/rows_of_shown_runs.h"

#include <algorithm>
#include <iterator>

#include "analysis/measures/result_row.h"

namespace kvscope::analysis {

std::vector<trace::ResultRow> rows_of_shown_runs(std::span<const ShownRun> runs) {
    std::vector<trace::ResultRow> rows;
    for (const auto& [part, indices] : runs_per_part(runs))
        std::ranges::move(result_rows(*part.reader, part.options.prompt, indices, ignore_damage),
                          std::back_inserter(rows));
    return rows;
}

}  // namespace kvscope::analysis
