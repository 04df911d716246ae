#include "app/gui/view_data/sample_cause.h"

#include <fmt/format.h>

#include "analysis/measures/wrong_answer.h"
#include "analysis/runs/row_settings.h"
#include "analysis/runs/task_scores.h"
#include "analysis/tables/table_format.h"

namespace kvscope::gui {
namespace {

namespace cause = analysis::cause;

std::string in_words(const trace::ResultRow& row) {
    if (row.cause == cause::kept) return "Unknown: no token of the evidence was dropped.";
    if (row.cause == cause::little_attention)
        return "Each dropped token of the evidence received less than 1/N of the window's attention in every head.";
    if (row.cause == cause::few_slots)
        return "Single heads had too few entries. A ranking over all heads of a layer would have kept the evidence.";
    if (row.cause == cause::undetermined) return "Unknown: the evidence or its scores are not known.";
    if (row.cause != cause::ranked_low) return row.cause;
    const auto gap = static_cast<int64_t>(row.cause_gap);
    return fmt::format("Head {:.0f} of layer {:.0f} ranked a token of the evidence too low. It lacked {} {}.",
                       row.cause_head, row.cause_layer, analysis::format_count(gap), gap == 1 ? "entry" : "entries");
}

}  // namespace

std::string sample_title(const std::string& sample, const std::string& setting, const std::string& budget) {
    return fmt::format("{}, {} @ {}", sample, setting, budget);
}

std::string sample_cause(const trace::Reader& reader, const std::string& title) {
    for (const std::string& task : reader.result_tasks()) {
        const auto rows = reader.results(task);
        if (rows.empty()) continue;
        const auto settings = analysis::settings_of_rows(rows);
        const auto groups = analysis::group_results_by_setting_and_budget(rows);
        for (size_t i = 0; i < rows.size(); ++i) {
            const analysis::TaskGroup& group = groups[settings[i].group];
            if (title.starts_with(rows[i].sample_id) &&
                sample_title(rows[i].sample_id, group.label(), group.budget) == title)
                return in_words(rows[i]);
        }
    }
    return "";
}

}  // namespace kvscope::gui
