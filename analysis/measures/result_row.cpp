#include "analysis/measures/result_row.h"

#include <algorithm>
#include <numeric>

#include "analysis/measures/kept_sets.h"
#include "analysis/measures/logit_divergence.h"
#include "analysis/measures/mean_of_known.h"
#include "analysis/measures/recall.h"
#include "analysis/measures/token_coverage.h"
#include "trace/records/result_columns.h"

namespace kvscope::analysis {
namespace {

namespace schema = trace::schema;

constexpr double unknown = trace::ResultRow::unknown;

double sum_of(const std::vector<uint64_t>& layers) {
    return layers.empty() ? unknown : static_cast<double>(std::accumulate(layers.begin(), layers.end(), uint64_t{0}));
}

/// Sets the columns that data sets determine. @param tokens tokens that the run's `n_entries` entries hold
void add_measures(trace::ResultRow& row, const trace::RunRecord& run, const KeptSets& tokens, size_t n_entries,
                  double recall) {
    const auto n_places = static_cast<double>(tokens.n_layers * tokens.n_rows * tokens.n_tokens);
    if (n_places > 0) row.kept_share = static_cast<double>(n_entries) / n_places;
    row.coverage = model_coverage(tokens).share;
    // trace::find_problems reports data sets that differ in length.
    if (!run.step_kl.empty() && run.step_kl.size() == run.step_agreement.size()) {
        const LogitDivergence divergence = logit_divergence(run.step_kl, run.step_agreement);
        row.kl = divergence.kl_mean;
        row.kl_stderr = divergence.kl_stderr;
        row.kl_steps = static_cast<double>(divergence.n_steps);
        row.agreement = divergence.agreement;
    }
    if (can_measure_kept_tokens(run, tokens)) {
        row.attention_kept = mean_of_known(run.attention_kept);
        row.recall = recall;
    }
    row.output_error = mean_of_known(run.output_error);
    row.bytes = sum_of(run.cache_bytes);
    row.bytes_predicted = sum_of(run.cache_bytes_predicted);
    row.merged_keys = sum_of(run.merged_keys);
    row.merged_keys_outside = sum_of(run.merged_keys_outside);
}

void read_and_add_measures(trace::ResultRow& row, const trace::Reader& reader, int prompt, int run, double recall) {
    trace::RunRecord record;
    static_cast<trace::RunAttributes&>(record) = reader.run(prompt, run);
    const auto place = trace::Place::of_run(prompt, run);
    const auto read = [&]<class T>(const schema::DataSet& data_set, std::vector<T>& values) {
        if (reader.has(place, data_set)) values = reader.read<T>(place, data_set);
    };
    read(schema::run::step_kl, record.step_kl);
    read(schema::run::step_agreement, record.step_agreement);
    read(schema::run::attention_kept, record.attention_kept);
    read(schema::run::output_error, record.output_error);
    read(schema::run::cache_bytes, record.cache_bytes);
    read(schema::run::cache_bytes_predicted, record.cache_bytes_predicted);
    read(schema::run::merged_keys, record.merged_keys);
    read(schema::run::merged_keys_outside, record.merged_keys_outside);
    const auto kept = reader.kept(prompt, run);
    const auto n_tokens = static_cast<size_t>(reader.prompt(prompt).visible_tokens());
    add_measures(row, record, kept_sets(*kept, n_tokens), kept->indices.size(), recall);
}

bool is_complete(const trace::RunAttributes& run) { return run.status == schema::run::status_complete; }

/// Returns the mean recall of each run; NaN if the run is not complete or recall is not defined.
std::vector<double> mean_recalls(const trace::Reader& reader, int prompt, std::span<const int> runs) {
    std::vector<double> means(runs.size(), unknown);
    if (!full_run_with_answer_attention(reader, prompt)) return means;
    const auto n_tokens = static_cast<size_t>(reader.prompt(prompt).visible_tokens());
    std::vector<int> measured;
    std::vector<size_t> places;
    for (size_t i = 0; i < runs.size(); ++i) {
        const trace::RunAttributes& run = reader.run(prompt, runs[i]);
        if (!is_complete(run) || !can_measure_kept_tokens(run, kept_sets(*reader.kept(prompt, runs[i]), n_tokens)))
            continue;
        measured.push_back(runs[i]);
        places.push_back(i);
    }
    const std::vector<Recall> recalls = recall_of_runs(reader, prompt, measured);
    for (size_t i = 0; i < recalls.size(); ++i) means[places[i]] = mean_of_known(recalls[i].layers);
    return means;
}

}  // namespace

trace::ResultRow result_row(const trace::ModelAttributes& model, const trace::PromptAttributes& prompt,
                            const trace::RunRecord& run, double recall) {
    trace::ResultRow row = trace::row_of_prompt(model, prompt);
    trace::add_run_attributes(row, run);
    if (is_complete(run) && run.kept_offsets.size() > 1) {
        const HeldTokens held(run, static_cast<size_t>(model.n_layers), static_cast<size_t>(prompt.visible_tokens()));
        add_measures(row, run, held.sets(), run.kept_indices.size(), recall);
    }
    return row;
}

std::vector<trace::ResultRow> result_rows(const trace::Reader& reader, int prompt, std::span<const int> runs) {
    std::vector<trace::ResultRow> rows(runs.size());
    std::vector<int> computed;
    std::vector<size_t> places;
    for (size_t i = 0; i < runs.size(); ++i) {
        if (auto stored = reader.stored_row(prompt, runs[i])) {
            rows[i] = *std::move(stored);
        } else {
            computed.push_back(runs[i]);
            places.push_back(i);
        }
    }
    if (computed.empty()) return rows;
    const trace::ResultRow of_prompt = trace::row_of_prompt(reader.model(), reader.prompt(prompt));
    const std::vector<double> recalls = mean_recalls(reader, prompt, computed);
    for (size_t i = 0; i < computed.size(); ++i) {
        trace::ResultRow& row = rows[places[i]] = of_prompt;
        const trace::RunAttributes& run = reader.run(prompt, computed[i]);
        trace::add_run_attributes(row, run);
        if (is_complete(run)) read_and_add_measures(row, reader, prompt, computed[i], recalls[i]);
    }
    return rows;
}

std::vector<trace::ResultRow> result_rows_of_prompt(const trace::Reader& reader, int prompt) {
    std::vector<int> runs(static_cast<size_t>(reader.n_runs(prompt)));
    std::iota(runs.begin(), runs.end(), 0);
    return result_rows(reader, prompt, runs);
}

std::vector<trace::ResultRow> result_rows_without_measures(const trace::Reader& reader, int prompt) {
    const auto n_runs = static_cast<size_t>(reader.n_runs(prompt));
    std::vector<trace::ResultRow> rows(n_runs, trace::row_of_prompt(reader.model(), reader.prompt(prompt)));
    for (size_t run = 0; run < n_runs; ++run) trace::add_run_attributes(rows[run], reader.runs(prompt)[run]);
    return rows;
}

double share_of_full_bytes(std::span<const trace::ResultRow> rows, const trace::ResultRow& run) {
    const auto full = std::ranges::find(rows, full_policy, &trace::ResultRow::policy);
    if (full == rows.end()) return unknown;
    if (full->bytes > 0 && run.bytes >= 0) return run.bytes / full->bytes;
    return full->bytes_predicted > 0 ? run.bytes_predicted / full->bytes_predicted : unknown;
}

}  // namespace kvscope::analysis
