#include "analysis/runs/task_scores.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <unordered_set>

#include "analysis/drawing/axes.h"
#include "analysis/drawing/covered_curves.h"
#include "analysis/drawing/figure_definition.h"
#include "analysis/results/verdicts.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_name.h"
#include "analysis/runs/run_style.h"
#include "analysis/tables/table_format.h"
#include "common/counted.h"
#include "policies/registry/registry.h"

namespace kvscope::analysis {
namespace {

constexpr double row_mm = 4.5;
constexpr double column_mm = 24;  // width of "58.3 [45.0, 70.0]"
constexpr double name_mm = 42;
constexpr double depth_cell_mm = 6;  // cell of a map of depths
constexpr double curves_mm = 60;
constexpr size_t most_panels = 24;
constexpr const char* red_green = "red-green";
constexpr const char* safe_colors = "viridis";

struct Scores {
    std::string task;                               ///< or "prompts"
    std::vector<trace::ResultRow> rows_of_prompts;  ///< rows with scores; empty if `rows` are of a task
    std::span<const trace::ResultRow> rows;
    std::vector<TaskGroup> all_groups;
    std::vector<TaskGroup> groups;              ///< chosen groups by label, then budget; `full` comes first
    std::vector<std::string> labels;            ///< TaskGroup::label()
    std::map<std::string, GroupNames> name_of;  ///< by label
    std::vector<std::string> budgets;           ///< result of distinct_budgets()
};

size_t index_of(const std::vector<std::string>& all, const std::string& one) {
    return static_cast<size_t>(std::find(all.begin(), all.end(), one) - all.begin());
}

void add_once(std::vector<std::string>& all, const std::string& one) {
    if (index_of(all, one) == all.size()) all.push_back(one);
}

bool counts_entries(const TaskGroup& group) { return !group.of_bytes && !group.budget.ends_with('%'); }

bool is_share(const std::string& budget) { return budget.ends_with('%'); }

std::string short_number(double share) {
    std::string text = fmt::format("{:.1f}", 100 * share);
    if (text.ends_with(".0")) text.resize(text.size() - 2);
    return text;
}

/// Sets the rows of the first task, or of the prompts with expected answers if there is no task.
void read_rows(Scores& scores, const trace::Reader& reader) {
    constexpr std::string_view of_prompts = trace::schema::root::prompt_results;
    const auto tasks = reader.result_tasks();
    scores.task = tasks.empty() ? std::string(of_prompts) : tasks.front();
    if (!tasks.empty()) {
        scores.rows = reader.results(scores.task);
        return;
    }
    if (reader.has_results(of_prompts))
        std::ranges::copy_if(reader.results(of_prompts), std::back_inserter(scores.rows_of_prompts),
                             [](const trace::ResultRow& row) { return !row.metric.empty(); });
    scores.rows = scores.rows_of_prompts;
    if (scores.rows.empty())
        throw NothingToShow(
            fmt::format("{}: the trace has no scores; `kvscope eval`, or `kvscope run` on prompts with "
                        "answers in a JSONL file, makes a trace with scores",
                        reader.path().string()));
}

Scores read_scores(const trace::Reader& reader, const FigureOptions& options) {
    if (reader.n_prompts() > 0) check_prompt(reader, options.prompt);
    Scores scores;
    read_rows(scores, reader);
    if (!scores.rows.empty() && !has_scores(scores.rows))
        throw NothingToShow(fmt::format("{}: the task {} has no scores; the figure results-table shows its times",
                                        reader.path().string(), scores.task));
    scores.all_groups = group_results_by_setting_and_budget(scores.rows);
    ChosenRuns chosen(options);
    for (const auto& group : scores.all_groups) {
        if (!is_chosen(chosen, group, options)) continue;
        scores.groups.push_back(group);
        add_once(scores.labels, group.label());
        scores.name_of.try_emplace(group.label(), names_of(group, options));
    }
    if (scores.groups.empty()) chosen.require_known();  // another trace of the figure may have the others
    scores.budgets = distinct_budgets(scores.groups);
    std::stable_sort(scores.groups.begin(), scores.groups.end(), [&](const TaskGroup& a, const TaskGroup& b) {
        const auto place = [&](const TaskGroup& group) {
            return std::pair(index_of(scores.labels, group.label()), index_of(scores.budgets, group.budget));
        };
        return place(a) < place(b);
    });
    return scores;
}

enum class Source { table, curves, depths };

Source source_from_name(const std::string& name) {
    if (name.empty() || name == "table") return Source::table;
    if (name == "curves") return Source::curves;
    if (name == "depths") return Source::depths;
    throw FigureError(fmt::format("the figure task-scores has no source '{}'; it has table, curves, depths", name));
}

/// Reduces the maps to the last budget if there are too many and no runs were chosen.
void choose_maps(Scores& scores, const FigureOptions& options) {
    if (!options.runs.empty() || scores.groups.size() <= most_panels) return;
    std::erase_if(scores.groups,
                  [&](const TaskGroup& group) { return !group.is_full() && group.budget != scores.budgets.back(); });
    scores.budgets = {scores.budgets.back()};
}

void check_curves(const Scores& scores) {
    const bool has_points = std::any_of(scores.groups.begin(), scores.groups.end(), [](const TaskGroup& group) {
        return !group.is_full() && !group.answered.empty();
    });
    if (!has_points) throw NothingToShow("only the full run has answers, so no curve over budgets can be drawn");
}

void check_maps(const Scores& scores) {
    for (const auto& row : scores.rows) {
        if (std::isnan(row.depth))
            throw NothingToShow("the source depths needs a task with needles, and this task has none");
    }
    if (scores.groups.size() > most_panels)
        throw FigureError(fmt::format(
            "{} settings and budgets are too many for one figure, which has at most {} maps; choose some runs, for "
            "example \"{} @ {}\"",
            scores.groups.size(), most_panels, scores.groups.back().setting, scores.groups.back().budget));
}

Scores checked_scores(const trace::Reader& reader, const FigureOptions& options) {
    const Source source = source_from_name(options.source);
    Scores scores = read_scores(reader, options);
    if (source == Source::curves) check_curves(scores);
    if (source == Source::depths) {
        choose_maps(scores, options);
        check_maps(scores);
    }
    return scores;
}

void check(const trace::Reader& reader, const FigureOptions& options) { checked_scores(reader, options); }

std::string own_choice(const trace::Reader& reader, const FigureOptions& options) {
    if (source_from_name(options.source) != Source::depths) return "";
    const size_t n_all = read_scores(reader, options).groups.size();
    const Scores scores = checked_scores(reader, options);
    if (scores.groups.size() == n_all) return "";
    const bool are_entries = std::all_of(scores.groups.begin(), scores.groups.end(), [](const TaskGroup& group) {
        return group.is_full() || counts_entries(group);
    });
    return fmt::format("only the last budget, {}{}: {} of {} maps", scores.budgets.back(),
                       are_entries ? " entries" : "", scores.groups.size(), n_all);
}

std::string score_of(const Scores& scores) { return "Score of " + scores.task; }

ColorScale per_cent(const Scores& scores) {
    ColorScale scale;
    scale.title = score_of(scores);
    scale.unit = "%";
    scale.max = 100;
    return scale;
}

void make_table(Figure& figure, const Scores& scores) {
    std::vector<std::string> names;
    for (const auto& label : scores.labels) names.push_back(scores.name_of.at(label).shown);
    Panel panel;
    panel.x = name_axis("Budget", scores.budgets, false);
    // Budgets that are shares or bytes already contain their unit.
    const bool are_entries = std::all_of(scores.groups.begin(), scores.groups.end(), [](const TaskGroup& group) {
        return group.is_full() || counts_entries(group);
    });
    if (are_entries) panel.x.unit = "entries";
    panel.y = name_axis("", names, true);
    HeatMap map = map_of_means(scores.labels.size(), scores.budgets.size());
    std::vector<TextLabel> labels;
    const auto means = mean_scores(scores.groups);
    for (size_t i = 0; i < scores.groups.size(); ++i) {
        const TaskGroup& group = scores.groups[i];
        const size_t row = index_of(scores.labels, group.label());
        const bool is_full = group.is_full();
        const size_t column = is_full ? 0 : index_of(scores.budgets, group.budget);
        const size_t last = is_full ? scores.budgets.size() - 1 : column;
        const double middle = (static_cast<double>(column) + static_cast<double>(last)) / 2;
        if (!means[i]) {
            labels.push_back({middle, static_cast<double>(row), "failed", {90, 90, 90}});
            continue;
        }
        const Estimate& score = *means[i];
        for (size_t budget = column; budget <= last; ++budget)
            map.values[row * scores.budgets.size() + budget] = static_cast<float>(100 * score.mean);
        labels.push_back({middle, static_cast<double>(row), score_text(score, short_number),
                          ink_on(color_at(ColorScale().map, score.mean))});
    }
    panel.shapes.emplace_back(std::move(map));
    for (auto& label : labels) panel.shapes.emplace_back(std::move(label));
    figure.panels.push_back(std::move(panel));
    figure.color_scales.push_back(per_cent(scores));
    figure.panel_height_mm = row_mm * static_cast<double>(scores.labels.size());
    figure.width_mm = std::clamp(name_mm + column_mm * static_cast<double>(scores.budgets.size()), 84.0, 174.0);
}

double number_of(const std::string& budget) {
    double value = NAN;
    std::from_chars(budget.data(), budget.data() + budget.size(), value);
    return value;
}

/// Returns the position on the budget axis: entries, or per cent of the full cache if `as_shares` is set.
double place_of(const TaskGroup& group, bool as_shares) {
    if (!as_shares || is_share(group.budget)) return number_of(group.budget);
    return 100 * group.budget_share();
}

struct CurveLook {
    std::string label;
    LineStyle style;
};

std::vector<CurveLook> curve_looks(const Scores& scores) {
    constexpr std::array markers = {Marker::circle, Marker::square, Marker::triangle, Marker::diamond, Marker::cross};
    std::vector<trace::RunAttributes> looks;
    for (const auto& label : scores.labels) {
        auto& look = looks.emplace_back();
        look.policy = label.substr(0, label.find_first_of(":,"));
        look.parameters_json = label;
        look.label = scores.name_of.at(label).shown;
    }
    auto styles = run_styles(looks);
    // The axis shows the budget, so markers can distinguish the settings of one policy.
    std::map<std::string, size_t> n_settings;
    for (size_t i = 0; i < styles.size(); ++i) {
        const size_t number = n_settings[looks[i].policy]++;
        styles[i].marker = markers[number % markers.size()];
    }
    std::vector<CurveLook> curves;
    for (size_t i = 0; i < looks.size(); ++i) curves.push_back({looks[i].label, styles[i]});
    return curves;
}

void make_curves(Figure& figure, const Scores& scores) {
    constexpr size_t most_bands = 4;  // more bands would hide each other
    const std::vector<CurveLook> looks = curve_looks(scores);
    Panel panel;
    panel.x.title = "Budget";
    const bool as_shares = std::any_of(scores.groups.begin(), scores.groups.end(), [](const TaskGroup& group) {
        return !group.is_full() && !counts_entries(group);
    });
    panel.x.unit = as_shares ? "% of the full cache" : "entries";
    panel.x.scale = Scale::logarithmic;
    panel.y.title = score_of(scores);
    panel.y.unit = "%";
    panel.y.min = -4;   // keeps a marker at 0 visible
    panel.y.max = 106;  // leaves space for the label of `full`
    double low_end = INFINITY;
    double high_end = 0;
    std::map<double, std::string> ticks;
    for (size_t i = 0; i < scores.labels.size(); ++i) {
        Line line;
        line.label = looks[i].label;
        line.style = looks[i].style;
        line.series = static_cast<int>(i);
        std::vector<TaskGroup> of_setting;
        std::ranges::copy_if(scores.groups, std::back_inserter(of_setting), [&](const TaskGroup& group) {
            return group.label() == scores.labels[i] && !group.answered.empty();
        });
        std::ranges::stable_sort(of_setting, {}, [&](const TaskGroup& group) { return place_of(group, as_shares); });
        for (const auto& group : of_setting) {
            const Estimate score = group.mean_score();
            if (group.is_full()) {
                Rule rule;
                rule.value = 100 * score.mean;
                rule.label = looks[i].label;
                rule.style = looks[i].style;
                rule.style.marker = Marker::none;
                rule.style.dash = Dash::dashed;
                panel.shapes.emplace_back(rule);
                continue;
            }
            line.x.push_back(place_of(group, as_shares));
            if (!as_shares) ticks[line.x.back()] = group.budget;
            line.y.push_back(100 * score.mean);
            low_end = std::min(low_end, line.x.back());
            high_end = std::max(high_end, line.x.back());
            if (scores.labels.size() > most_bands + 1) continue;
            const bool has_interval = std::isfinite(score.interval.low);
            line.low.push_back(100 * (has_interval ? score.interval.low : score.mean));
            line.high.push_back(100 * (has_interval ? score.interval.high : score.mean));
        }
        if (line.x.empty()) continue;
        figure.legend.push_back({line.label, LegendEntry::Symbol::line, line.style, "", "", line.series});
        panel.shapes.emplace_back(std::move(line));
    }
    const double margin = low_end < high_end ? 1.06 : 2;
    panel.x.min = low_end / margin;
    panel.x.max = high_end * margin;
    for (const auto& [place, budget] : ticks) panel.x.ticks.push_back({place, budget});
    place_labels_side_by_side(panel);
    figure.panels.push_back(std::move(panel));
    mark_hidden_series(figure);
    figure.panel_height_mm = curves_mm;
    figure.width_mm = 120;
}

void make_depths(Figure& figure, const Scores& scores, const FigureOptions& options) {
    constexpr size_t most_columns = 4;
    std::set<int64_t> length_set;
    std::set<double> depth_set;
    for (const auto& row : scores.rows) {
        length_set.insert(row.length);
        depth_set.insert(row.depth);
    }
    const std::vector<int64_t> lengths(length_set.begin(), length_set.end());
    const std::vector<double> depths(depth_set.begin(), depth_set.end());
    std::vector<std::string> length_names;
    std::vector<std::string> depth_names;
    for (const int64_t length : lengths) length_names.push_back(length > 0 ? format_count(length) : "–");
    for (const double depth : depths) depth_names.push_back(fmt::format("{:.0f}", 100 * depth));
    const bool is_grid = scores.budgets.size() > 1;  // budgets as columns; otherwise maps in reading order
    figure.columns = is_grid ? scores.budgets.size() : std::min(scores.groups.size(), most_columns);
    figure.rows = is_grid ? scores.labels.size() : (scores.groups.size() + figure.columns - 1) / figure.columns;
    figure.shared_x = figure.shared_y = true;
    for (const auto& group : scores.groups) {
        Panel panel;
        const size_t place = figure.panels.size();
        panel.row = is_grid ? index_of(scores.labels, group.label()) : place / figure.columns;
        panel.column = !is_grid ? place % figure.columns : group.is_full() ? 0 : index_of(scores.budgets, group.budget);
        panel.title = scores.name_of.at(group.label()).shown;
        if (!group.is_full()) panel.title += " @ " + group.budget;
        panel.x = name_axis("Prompt", length_names, false);
        panel.x.unit = "tokens";
        panel.y = name_axis("Depth", depth_names, true);
        panel.y.unit = "%";
        HeatMap map = map_of_means(depths.size(), lengths.size());
        std::vector<std::vector<double>> cells(map.values.size());
        for (const auto* row : group.answered) {
            const auto column = std::lower_bound(lengths.begin(), lengths.end(), row->length) - lengths.begin();
            const auto at = std::lower_bound(depths.begin(), depths.end(), row->depth) - depths.begin();
            cells[static_cast<size_t>(at) * lengths.size() + static_cast<size_t>(column)].push_back(row->score);
        }
        for (size_t i = 0; i < cells.size(); ++i) {
            double sum = 0;
            for (const double score : cells[i]) sum += score;
            if (!cells[i].empty()) map.values[i] = static_cast<float>(100 * sum / static_cast<double>(cells[i].size()));
        }
        if (!group.answered.empty()) panel.note = short_number(group.mean_score({.n_resamples = 1}).mean) + " %";
        panel.shapes.emplace_back(std::move(map));
        figure.panels.push_back(std::move(panel));
    }
    figure.color_scales.push_back(per_cent(scores));
    const std::string colors = options.own_text("colors", red_green);
    if (colors != red_green && colors != safe_colors)
        throw FigureError(fmt::format("--colors is {} or {}, not '{}'", red_green, safe_colors, colors));
    if (colors == red_green) figure.color_scales.back().map = ColorMap::red_yellow_green;
    figure.panel_height_mm = depth_cell_mm * static_cast<double>(depths.size());
    figure.width_mm = figure.columns < 3 ? 84 : 174;
}

Figure make(const trace::Reader& reader, const FigureOptions& options) {
    const Scores scores = checked_scores(reader, options);
    const Source source = source_from_name(options.source);
    Figure figure;
    figure.name = "task-scores";
    figure.title = "Scores of " + scores.task;
    switch (source) {
        case Source::table:
            make_table(figure, scores);
            break;
        case Source::curves:
            make_curves(figure, scores);
            break;
        case Source::depths:
            make_depths(figure, scores, options);
            break;
    }
    std::unordered_set<std::string_view> samples;
    for (const auto& row : scores.rows) samples.insert(row.sample_id);
    const std::vector<std::string> all_verdicts = verdicts(scores.all_groups, Advice::hidden);
    const bool are_prompts = !scores.rows_of_prompts.empty();
    const auto n_samples = std::ssize(samples);
    figure.caption = fmt::format(
        "Mean scores over {}{}. {}",
        are_prompts ? counted(n_samples, "prompt") : fmt::format("{} of {}", counted(n_samples, "sample"), scores.task),
        source == Source::depths
            ? ""
            : ", with 95 % intervals (bootstrap; Clopper-Pearson if all scores are 0 or all are 1)",
        fmt::join(all_verdicts, " "));
    if (source == Source::depths) figure.caption += " The number above a map is its mean.";
    if (source != Source::depths) figure.panels.front().note = first_obstacle_to_comparison(scores.all_groups);
    complete_figure(figure, reader, options, {});
    return figure;
}

Table numbers(const trace::Reader& reader, const FigureOptions& options) {
    Scores scores = read_scores(reader, options);
    if (source_from_name(options.source) == Source::depths) {
        choose_maps(scores, options);
    } else {
        Table table = task_scores(scores.all_groups);
        table.title = fmt::format("Scores of {} by policy and budget", scores.task);
        std::erase_if(table.rows, [&](const Row& row) {
            return std::none_of(scores.groups.begin(), scores.groups.end(), [&](const TaskGroup& group) {
                return group.label() == std::get<SharedText>(row.cells[0]) &&
                       group.budget == std::get<SharedText>(row.cells[1]);
            });
        });
        for (Row& row : table.rows) row.cells[0] = scores.name_of.at(std::get<SharedText>(row.cells[0])).whole;
        return table;
    }
    Table table;
    table.name = "task-scores";
    table.title = fmt::format("Score of {} for each sample", scores.task);
    table.columns = {{"policy", "Policy", ""},
                     {"budget", "Budget", ""},
                     {"sample", "Sample", ""},
                     {"length", "Prompt", "tokens", ColumnType::integer},
                     {"depth", "Depth", "", ColumnType::real, 2},
                     {"score", "Score", "", ColumnType::real, 3}};
    for (const auto& group : scores.groups) {
        const std::string& label = scores.name_of.at(group.label()).whole;
        for (const auto* row : group.answered)
            table.rows.push_back({{label, group.budget, row->sample_id, row->length, row->depth, row->score}});
    }
    return table;
}

}  // namespace

FigureDefinition task_scores_figure() {
    FigureDefinition definition{
        "task-scores",
        "Task scores",
        "Scores of a `kvscope eval` task, or of prompts with answers, by policy and budget, or by needle depth and "
        "text length",
        {{"runs", names_of_results_help},
         {"source",
          "table (default): policies by budgets, with 95 % intervals; curves: scores by budget; depths: maps of text "
          "length by needle depth, one per setting and budget (if there are too many, only the last budget)",
          {"table", "curves", "depths"}},
         {"colors",
          "colors of the maps of depths: red-green (default), from wrong to right as in papers, or viridis, which is "
          "safe for color-blind readers",
          {red_green, safe_colors},
          {"depths"},
          red_green}},
        check,
        make,
        numbers,
        "ApertureKV, Figure 3; DapQ, Figure 5",
        nullptr,
        nullptr,
        nullptr,
        own_choice,
        true};
    definition.is_of_prompt = [](const FigureOptions&) { return false; };
    return definition;
}

}  // namespace kvscope::analysis
