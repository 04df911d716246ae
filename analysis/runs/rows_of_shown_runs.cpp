#include "analysis/runs/rows_of_shown_runs.h"

#include <algorithm>
#include <iterator>

#include "analysis/measures/result_row.h"

namespace kvscope::analysis {

std::vector<trace::ResultRow> rows_of_shown_runs(std::span<const ShownRun> runs) {
    std::vector<trace::ResultRow> rows;
    for (auto first = runs.begin(); first != runs.end();) {
        const TracePart& part = *first->part;
        std::vector<int> indices;
        for (; first != runs.end() && first->part == &part; ++first) indices.push_back(first->index);
        std::ranges::move(result_rows(*part.reader, part.options.prompt, indices, ignore_damage),
                          std::back_inserter(rows));
    }
    return rows;
}

}  // namespace kvscope::analysis
