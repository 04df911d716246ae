#include "analysis/results/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/measures/result_row.h"
#include "analysis/results/settings.h"
#include "analysis/runs/row_settings.h"
#include "analysis/runs/run_choice.h"
#include "analysis/runs/run_name.h"
#include "common/hidden_question.h"

namespace kvscope::analysis {
namespace {

/// Returns "snapkv", or "snapkv, question seen" if policies saw the question in some rows only.
std::string label_of(const Result& result, bool is_in_both_ways) {
    if (!is_in_both_ways || result.row.question_seen < 0) return result.setting;
    return result.setting + std::string(result.row.question_seen ? seen_question_suffix : hidden_question_suffix);
}

/// Returns a text that equal samples have in every trace, or "" if only the trace distinguishes the samples. Results of
/// another program have no hash, but their names and answers differ by sample.
std::string name_in_all_traces(const trace::ResultRow& row) {
    if (!row.sample_hash.empty() || row.source.empty()) return row.sample_hash;
    return fmt::format("{}\n{}\n{}", row.source.string(), row.sample_id.string(), row.answers_json.string());
}

}  // namespace

bool asks_in_both_ways(std::span<const Result> results) {
    const auto is_known = [&](int64_t seen) {
        return std::ranges::any_of(results, [&](const Result& result) { return result.row.question_seen == seen; });
    };
    return is_known(0) && is_known(1);
}

void add_table(std::vector<Result>& results, std::span<const trace::ResultRow> rows, const std::string& task,
               const std::string& trace) {
    const SettingsOfRows settings = settings_of_rows(rows);
    std::vector<std::string> names;                       // by sample
    std::vector<std::span<const trace::ResultRow>> full;  // the first full run of each sample; empty if there is none
    // Samples so far with equal texts and answers, among those of one model, program, number type and question_seen
    std::map<std::tuple<std::string, std::string, std::string, std::string, int64_t>, int> n_equal;
    for (size_t i = 0; i < rows.size(); ++i) {
        const size_t sample = settings.rows[i].sample;
        if (sample == names.size()) {  // samples are numbered in the order of their first rows
            const trace::ResultRow& first = rows[i];
            const std::string known = name_in_all_traces(first);
            // A sample has one value of question_seen, as its rows begin with the full run.
            names.push_back(
                known.empty()
                    ? fmt::format("{}\n{}\n{}", trace, task, sample)
                    : fmt::format("{}\n{}\n{}", task, known,
                                  n_equal[{known, first.model, first.source, first.dtype, first.question_seen}]++));
            full.emplace_back();
        }
        if (full[sample].empty() && rows[i].policy == full_policy) full[sample] = rows.subspan(i, 1);
    }
    results.reserve(results.size() + rows.size());
    for (size_t i = 0; i < rows.size(); ++i)
        results.push_back({rows[i], trace, task, settings.of(i).setting, settings.of(i).budget,
                           names[settings.rows[i].sample],
                           share_of_full_bytes(full[settings.rows[i].sample], rows[i])});
}

std::vector<trace::ResultRow> rows_of_prompts(const trace::Reader& reader) {
    std::vector<trace::ResultRow> rows;
    for (int prompt = 0; prompt < reader.n_prompts(); ++prompt)
        std::ranges::move(result_rows_of_prompt(reader, prompt, ignore_damage), std::back_inserter(rows));
    if (reader.n_prompts() == 0 && reader.has_results(trace::schema::root::prompt_results))
        std::ranges::copy(reader.results(trace::schema::root::prompt_results), std::back_inserter(rows));
    return rows;
}

std::vector<Result> results_of_prompts(const trace::Reader& reader, const std::string& trace) {
    std::vector<Result> results;
    add_table(results, rows_of_prompts(reader), std::string(trace::schema::root::prompt_results), trace);
    return results;
}

std::vector<Result> results_of_trace(const trace::Reader& reader, const std::string& trace) {
    std::vector<Result> results;
    for (const std::string& task : reader.result_tasks()) add_table(results, reader.results(task), task, trace);
    return results.empty() ? results_of_prompts(reader, trace) : results;
}

std::vector<Result> results_of_traces(std::span<const TracePart> parts) {
    std::vector<Result> results;
    for (const TracePart& part : parts) {
        if (part.reader->n_prompts() > 0) check_prompt(*part.reader, part.options.prompt);
        for (Result& result : results_of_trace(*part.reader, part.name)) results.push_back(std::move(result));
    }
    if (results.empty())
        throw NothingToShow(
            fmt::format("{}: the trace has no results of prompts or tasks; `kvscope run` and `kvscope "
                        "eval` make a trace with results",
                        parts.front().reader->path().string()));
    return results;
}

void keep_chosen(std::vector<Result>& results, const FigureOptions& options, bool are_all) {
    if (options.runs.empty()) return;
    ChosenRuns chosen(options);
    const bool is_in_both_ways = asks_in_both_ways(results);
    std::erase_if(results, [&](const Result& result) {
        return !chosen.contains(label_of(result, is_in_both_ways), result.budget, [&](const RunName& name) {
            return match_name(name, result, options.setting_labels).has_value();
        });
    });
    if (are_all || results.empty()) chosen.require_known();
}

std::vector<Result> chosen_results(std::span<const TracePart> parts, bool are_all) {
    std::vector<Result> results = results_of_traces(parts);
    keep_chosen(results, parts.front().options, are_all);
    return results;
}

}  // namespace kvscope::analysis
