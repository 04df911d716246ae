#include "app/program/engine/prompt_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "analysis/measures/result_row.h"
#include "trace/part_folder.h"
#include "trace/reader.h"

namespace kvscope::program {
namespace {

constexpr std::string_view prompt_table = trace::schema::root::prompt_results;

/// Returns the rows of a prompt of the trace, with the columns that the job determines.
std::vector<trace::ResultRow> rows_of_recorded_prompt(const PreparedJob& prepared, const trace::Reader& reader,
                                                      int prompt, const RecordedScores& scores, const Warn& warn) {
    const auto& asked = prepared.prompts.at(static_cast<size_t>(reader.prompt_number(prompt)));
    // The runs of an earlier command may be damaged.
    const auto on_damage = [&](const trace::TraceError& error) {
        warn(fmt::format("/results/prompts lacks measures of a damaged run: {}", error.what()));
    };
    auto rows = analysis::result_rows_of_prompt(reader, prompt, on_damage, asked.evidence);
    for (size_t i = 0; i < rows.size(); ++i) {
        const auto run = static_cast<size_t>(reader.run_number(prompt, static_cast<int>(i)));
        rows[i].requested_budget = prepared.plans.at(run).budget.text();
        rows[i].sample_hash = asked.sample_hash;
        rows[i].context_hash = asked.context_hash;
        if (const auto recorded = scores.scorer_of(rows[i]))
            engine::add_score(rows[i], *recorded, asked.answers);
        else if (!asked.answers.empty())
            engine::add_score(rows[i], engine::string_match_part(), asked.answers);
    }
    return rows;
}

}  // namespace

void write_rows_of_prompts(const PreparedJob& prepared, trace::Writer& writer, engine::Progress& progress,
                           const Warn& warn) {
    const trace::Reader reader(trace::part_folder_of(prepared.job.output), progress.stop_token());
    progress.begin("computing the rows of results", reader.n_prompts(), "prompts");
    const RecordedScores scores(prepared);
    std::vector<trace::ResultRow> rows;
    for (int prompt = 0; prompt < reader.n_prompts(); ++prompt) {
        std::ranges::move(rows_of_recorded_prompt(prepared, reader, prompt, scores, warn), std::back_inserter(rows));
        progress.advance(prompt + 1);
    }
    writer.write_results(prompt_table, 0, rows);
}

RowsOnly::RowsOnly(const PreparedJob& prepared, trace::Writer& writer, const Warn& warn)
    : prepared_(prepared), scores_(prepared), writer_(writer), warn_(warn) {
    // A killed command may have written the rows of a prompt and left the prompt.
    for (int prompt = 0; prompt < static_cast<int>(prepared.prompts.size()); ++prompt)
        if (has_rows(prompt)) writer.remove_prompt(prompt);
    copy_rows_of_complete_trace();
}

bool RowsOnly::has_rows(int prompt) const { return writer_.has_results(prompt_table, prompt); }

void RowsOnly::replace(const std::vector<int>& prompts) {
    const trace::Reader reader(trace::part_folder_of(prepared_.job.output));
    for (int i = 0; i < reader.n_prompts(); ++i) {
        const int prompt = reader.prompt_number(i);
        if (std::ranges::find(prompts, prompt) == prompts.end() || has_rows(prompt)) continue;
        writer_.write_results(prompt_table, prompt, rows_of_recorded_prompt(prepared_, reader, i, scores_, warn_));
    }
    for (const int prompt : prompts) writer_.remove_prompt(prompt);
}

/// Rows with fewer runs are computed again, because the compared answers of the full run are not stored.
void RowsOnly::copy_rows_of_complete_trace() {
    const size_t n_runs = prepared_.plans.size();
    if (prepared_.n_prompts_there == 0 || prepared_.n_plans_there != n_runs) return;
    const auto rows = trace::Reader(prepared_.job.output).results(prompt_table);
    for (size_t prompt = 0; prompt < std::min(prepared_.n_prompts_there, rows.size() / n_runs); ++prompt) {
        const auto first = rows.begin() + static_cast<std::ptrdiff_t>(prompt * n_runs);
        if (!has_rows(static_cast<int>(prompt)))
            writer_.write_results(prompt_table, static_cast<int>(prompt),
                                  {first, first + static_cast<std::ptrdiff_t>(n_runs)});
    }
}

}  // namespace kvscope::program
