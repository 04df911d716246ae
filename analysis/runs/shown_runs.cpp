#include "analysis/runs/shown_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_style.h"

namespace kvscope::analysis {
namespace {

std::vector<LineStyle> styles_of(const TracePart& part) {
    return part.styles.empty() ? run_styles(part.reader->runs(part.options.prompt)) : part.styles;
}

}  // namespace

std::string ShownRun::method() const {
    return fmt::format("{}\n{}\n{}", part->name, attributes().policy, attributes().parameters_json);
}

int ShownRun::series() const { return series_of_run(part->reader->runs(part->options.prompt), index); }

std::vector<ShownRun> shown_runs(std::span<const TracePart> parts) {
    std::vector<ShownRun> shown;
    std::exception_ptr nothing;
    for (const TracePart& part : parts) {
        try {
            const std::vector<int> runs = chosen_runs(*part.reader, part.options);
            const std::vector<LineStyle> styles = styles_of(part);
            for (const int run : runs) {
                const std::string label = run_label(part.reader->run(part.options.prompt, run));
                shown.push_back({&part, run, part.name.empty() ? label : fmt::format("{}: {}", part.name, label),
                                 styles[static_cast<size_t>(run)], static_cast<size_t>(&part - parts.data())});
            }
        } catch (const NothingToShow&) {
            if (!nothing) nothing = std::current_exception();
        }
    }
    if (shown.empty() && nothing) std::rethrow_exception(nothing);
    return shown;
}

std::vector<RunsOfPart> runs_per_part(std::span<const ShownRun> runs) {
    std::vector<RunsOfPart> parts;
    for (const ShownRun& run : runs) {
        if (parts.empty() || &parts.back().part != run.part) parts.push_back({*run.part, {}});
        parts.back().indices.push_back(run.index);
    }
    return parts;
}

std::vector<LegendEntry> legend_of_runs(std::span<const ShownRun> runs) {
    std::vector<LegendEntry> legend;
    for (const auto& [part, indices] : runs_per_part(runs)) {
        if (!part.name.empty()) legend.push_back({part.name + ":", LegendEntry::Symbol::none, {}});
        const auto entries = run_legend(part.reader->runs(part.options.prompt), styles_of(part), indices);
        legend.insert(legend.end(), entries.begin(), entries.end());
    }
    return legend;
}

std::string join_run_labels(std::span<const ShownRun> runs) {
    std::string labels;
    for (const ShownRun& run : runs) labels += (labels.empty() ? "" : ", ") + run.label;
    return labels;
}

namespace {

/// Returns a prefix for the recipe keys of `part`. The prefix contains no labels, because users can rename runs.
std::string recipe_name(const TracePart& first, const TracePart& part) {
    if (part.reader == first.reader) return "B";
    const auto file = part.reader->path().filename();
    const bool is_alike = file == first.reader->path().filename();
    return (is_alike ? part.reader->path().parent_path().filename() / file : file).string();
}

}  // namespace

void complete_figure(Figure& figure, std::span<const TracePart> parts, std::span<const ShownRun> runs) {
    for (const TracePart& part : parts) {
        std::vector<int> indices;
        for (const ShownRun& run : runs) {
            if (run.part == &part) indices.push_back(run.index);
        }
        Figure of_trace;
        complete_figure(of_trace, *part.reader, part.options, indices);
        if (&part == parts.data())
            complete_figure(figure, *part.reader, part.options, indices);
        else
            add_recipe(figure, of_trace, recipe_name(parts.front(), part));
    }
}

void add_recipe(Figure& figure, const Figure& of_trace, const std::string& name) {
    for (const auto& [key, value] : of_trace.recipe)
        figure.recipe.emplace_back(fmt::format("{}: {}", name, key), value);
    figure.created_utc = std::max(figure.created_utc, of_trace.created_utc);
}

}  // namespace kvscope::analysis
