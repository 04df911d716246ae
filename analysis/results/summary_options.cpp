#include "analysis/results/summary_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/results/verdicts.h"
#include "analysis/runs/run_name.h"
#include "common/split.h"
#include "policies/registry/name_matching.h"

namespace kvscope::analysis {
namespace {

constexpr const char *percent = "percent", *fraction = "fraction";

std::vector<std::string> names_in(const std::string& list) {
    std::vector<std::string> names;
    for (const std::string_view name : split(list, ','))
        if (!name.empty()) names.emplace_back(name);
    return names;
}

const Scalar& shown_scalar(const FigureOptions& options, std::span<const Result> results) {
    const std::string name = options.own_text("cells", "");
    const Scalar& scalar = name.empty() ? default_scalar(results) : scalar_named(name);
    require_known(scalar, results);
    return scalar;
}

/// @throws FigureError for an unknown column
std::vector<std::string> extra_columns(const FigureOptions& options) {
    std::vector<std::string> names = names_in(options.own_text("extra-columns", mean_column));
    if (names == std::vector<std::string>{"none"}) return {};
    for (const std::string& name : names)
        if (name != mean_column && name != n_column)
            throw FigureError(
                fmt::format("--extra-columns are {0}, {1}, {0},{1} or none; not '{2}'", mean_column, n_column, name));
    return names;
}

std::string none_is_empty(std::string name) { return name == "none" ? "" : std::move(name); }

}  // namespace

FigureOption unit_option() {
    return {"unit",
            "unit of scores and shares: percent or fraction; default: percent for scores, fraction for shares; CSV and "
            "JSON contain fractions",
            {percent, fraction},
            {},
            percent};
}

std::optional<bool> is_in_percent(const FigureOptions& options, const Scalar& scalar) {
    const std::string unit = options.own_text("unit", "");
    if (unit.empty()) return std::nullopt;
    if (unit != percent && unit != fraction)
        throw FigureError(fmt::format("--unit is {} or {}, not '{}'", percent, fraction, unit));
    if (scalar.is_fraction()) return unit == percent;
    std::vector<std::string> fractions;
    for (const std::string& name : scalar_names())
        if (scalar_named(name).is_fraction()) fractions.push_back(name);
    throw FigureError(fmt::format("--unit applies to scores and shares, but {} is neither; these are {}", scalar.name,
                                  policies::joined(fractions)));
}

std::vector<FigureOption> summary_options() {
    return {
        {"runs", names_of_results_help},
        {"cells",
         "the averaged number; default: score if known, otherwise kl, or first_token_s for times",
         scalar_names(),
         {},
         "score"},
        {"rows",
         "settings of the rows, separated by commas: policy, budget, task, subset, length, depth, batch, model, "
         "dtype, question, trace, or a parameter; default: policy, and question if policies see it in some rows only",
         {},
         {},
         "policy"},
        {"columns", "setting of the columns, or none; default: budget"},
        {"blocks", "setting of the blocks, or none; default: task if there are several", {}, {}, "task"},
        {"against",
         "policy setting, or label of a table, with which all others are compared; default: none",
         {},
         {},
         "full"},
        unit_option()};
}

std::vector<FigureOption> summary_table_options() {
    std::vector<FigureOption> options = summary_options();
    options.push_back({"extra-columns",
                       "columns after those of the setting: mean (of the row), n (samples), mean,n or none; "
                       "default: mean",
                       {},
                       {},
                       mean_column});
    return options;
}

ChosenResults chosen_and_judged_results(std::span<const TracePart> parts) {
    ChosenResults chosen{results_of_traces(parts), {}};
    chosen.validity = validity_of_tasks(chosen.results);
    keep_chosen(chosen.results, parts.front().options);
    return chosen;
}

SummaryRequest summary_request(const FigureOptions& options, const ChosenResults& chosen) {
    const std::vector<Result>& results = chosen.results;
    if (options.columns.size() > 1)
        throw FigureError(fmt::format("the columns are one setting, but --columns names {}; --rows accepts several",
                                      options.columns.size()));
    SummaryRequest request;
    request.validity = chosen.validity;
    const Scalar& scalar = shown_scalar(options, results);
    request.scalar = scalar.name;
    request.in_percent = is_in_percent(options, scalar);
    request.extra_columns = extra_columns(options);
    request.rows = names_in(options.own_text("rows", "policy"));
    request.columns = none_is_empty(options.columns.empty() ? "budget" : options.columns.front());
    const bool has_several_tasks =
        std::ranges::any_of(results, [&](const Result& result) { return result.task != results.front().task; });
    request.blocks = none_is_empty(options.own_text("blocks", has_several_tasks ? "task" : "none"));
    request.against = options.own_text("against", "");
    request.labels = options.setting_labels;
    const bool is_question_used = request.columns == "question" || request.blocks == "question";
    if (options.own_text("rows", "").empty() && !is_question_used && asks_in_both_ways(results))
        request.rows.emplace_back("question");
    // A setting of rows or columns divides a table only once.
    const bool are_rows_budgets = std::ranges::find(request.rows, request.columns) != request.rows.end();
    if (options.columns.empty() && are_rows_budgets) request.columns.clear();
    return request;
}

Summary chosen_summary(std::span<const TracePart> parts) {
    const ChosenResults chosen = chosen_and_judged_results(parts);
    return summarize(chosen.results, summary_request(parts.front().options, chosen));
}

void check_summary(const trace::Reader& reader, const FigureOptions& options) {
    const TracePart part{&reader, options};
    shown_scalar(options, chosen_results({&part, 1}, false));
}

}  // namespace kvscope::analysis
