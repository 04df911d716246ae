#include "app/cli/export_ranking.h"

#include <fmt/format.h>

#include <utility>

#include "analysis/rename_runs.h"
#include "analysis/run_style.h"
#include "app/cli/figures_text.h"
#include "app/cli/terminal.h"
#include "app/figures/export_figure.h"
#include "trace/reader.h"

namespace kvscope::cli {
namespace {

void require_table(const std::filesystem::path& output) {
    const auto& format = figures::figure_format_for(output.filename().string());
    if (!format.is_picture()) return;
    std::vector<std::string_view> tables;
    for (const auto& other : figures::figure_formats())
        if (!other->is_picture()) tables.push_back(other->extension());
    throw analysis::FigureError(fmt::format("a ranking is a table, but .{} is an image format; use one of {}",
                                            format.extension(), fmt::join(tables, ", ")));
}

void name_pair(const trace::Reader& reader, const analysis::RankingOptions& options) {
    const auto runs = analysis::compared_runs(reader, options.choice());
    const auto named = [&](int run) {
        return fmt::format("run {}, {}", run, one_line(analysis::run_label(reader.run(options.prompt, run))));
    };
    print_to_stderr(fmt::format("kvscope: A is {}; B is {}", named(runs[0]), named(runs[1])));
}

void require_known_runs(const trace::Reader& reader, const analysis::RankingDefinition& definition,
                        const analysis::RankingOptions& options) {
    if (options.runs.empty()) return;
    if (definition.runs == analysis::RankedRuns::two)
        analysis::compared_runs(reader, options.choice());
    else
        analysis::chosen_runs(reader, options.choice());
}

}  // namespace

void warn_only_first_prompt_shown(const trace::Reader& reader) {
    if (reader.n_prompts() < 2) return;
    print_to_stderr(fmt::format("kvscope: {}: shows prompt 0 ('{}'), the first of {}; choose with --prompt",
                                reader.path().string(), one_line(reader.prompt(0).name), reader.n_prompts()));
}

void export_ranking(const RankingExport& what, const std::vector<std::filesystem::path>& traces) {
    const auto& definition = analysis::ranking_definition(what.ranking);
    analysis::check_options(definition, what.options);
    if (traces.size() != 1)
        throw analysis::FigureError(fmt::format("--ranking needs one trace, found {}", traces.size()));
    const bool to_file = !what.output.empty() && what.output != "-";
    if (to_file) require_table(what.output);
    std::vector<trace::Reader> readers;
    readers.emplace_back(traces.front());
    if (!what.renames.empty()) readers = analysis::rename_runs(readers, what.renames);
    const trace::Reader& reader = readers.front();
    const std::string extension = to_file ? what.output.extension().string() : "." + what.format.name();
    if (!what.is_prompt_given) warn_only_first_prompt_shown(reader);
    const bool is_for_people = extension == ".text" || extension == ".md" || extension == ".tex";
    const auto table = [&] {
        analysis::Table all = analysis::make_ranking(definition, reader, what.options).table;
        if (what.top > 0 && what.top < all.rows.size()) all.rows.resize(what.top);
        return is_for_people ? analysis::make_white_space_visible(std::move(all)) : all;
    };
    figures::ExportOptions file;
    file.csv_safe = what.format.is_csv_safe();
    if (to_file)
        figures::export_figure({nullptr, table, [&] { require_known_runs(reader, definition, what.options); }},
                               what.output, file, what.force);
    else
        what.format.print(table());
    if (definition.runs == analysis::RankedRuns::two) name_pair(reader, what.options);
}

std::string rankings_text(size_t columns) {
    std::string text;
    for (const auto& definition : analysis::ranking_definitions())
        text += (text.empty() ? "" : "\n") +
                format_help_entry(definition.name, definition.summary, definition.options, columns);
    return text;
}

}  // namespace kvscope::cli
