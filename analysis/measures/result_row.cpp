#include "analysis/measures/result_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>

#include "analysis/measures/evidence.h"
#include "analysis/measures/kept_sets.h"
#include "analysis/measures/logit_divergence.h"
#include "analysis/measures/mean_of_known.h"
#include "analysis/measures/recall.h"
#include "analysis/measures/token_coverage.h"
#include "kernels/select_topk.h"
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
                  double recall, int64_t n_system, std::span<const uint32_t> evidence) {
    const auto n_places = static_cast<double>(tokens.n_layers * tokens.n_rows * tokens.n_tokens);
    if (n_places > 0) row.kept_share = static_cast<double>(n_entries) / n_places;
    row.coverage = model_coverage(tokens).share;
    row.system_dropped = system_dropped(tokens, n_system);
    if (!evidence.empty()) {
        const EvidenceShares shares = evidence_shares(tokens, evidence);
        row.evidence_kept = shares.kept;
        row.evidence_gone = shares.gone;
    }
    if (!run.step_kl.empty()) {
        const bool has_agreement = run.step_agreement.size() == run.step_kl.size();
        const LogitDivergence divergence = logit_divergence(
            run.step_kl, has_agreement ? run.step_agreement : std::vector<uint8_t>(run.step_kl.size()));
        row.kl = divergence.kl_mean;
        row.kl_stderr = divergence.kl_stderr;
        row.kl_steps = static_cast<double>(divergence.n_steps);
        if (has_agreement) row.agreement = divergence.agreement;
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

bool is_complete(const trace::RunAttributes& run) { return run.status == schema::run::status_complete; }

/// A run whose row is computed.
struct ComputedRow {
    int run = 0;
    trace::ResultRow& row;
    trace::RunRecord record = {};                  ///< attributes, and the data sets that add_measures() reads
    std::shared_ptr<const trace::Kept> kept = {};  ///< nullptr for a run without measures
    double recall = unknown;
};

/// @param attempt calls a function and handles its errors
void read_measured_data(const trace::Reader& reader, int prompt, ComputedRow& of, const auto& attempt) {
    attempt([&] { of.kept = reader.kept_for_now(prompt, of.run); });
    const auto place = trace::Place::of_run(prompt, of.run);
    const auto read = [&]<class T>(const schema::DataSet& data_set, std::vector<T>& values) {
        attempt([&] {
            if (reader.has(place, data_set)) values = reader.read<T>(place, data_set);
        });
    };
    read(schema::run::step_kl, of.record.step_kl);
    read(schema::run::step_agreement, of.record.step_agreement);
    read(schema::run::attention_kept, of.record.attention_kept);
    read(schema::run::output_error, of.record.output_error);
    read(schema::run::cache_bytes, of.record.cache_bytes);
    read(schema::run::cache_bytes_predicted, of.record.cache_bytes_predicted);
    read(schema::run::merged_keys, of.record.merged_keys);
    read(schema::run::merged_keys_outside, of.record.merged_keys_outside);
}

/// Sets the recall of all runs for which it is defined.
void add_recalls(const trace::Reader& reader, int prompt, std::span<ComputedRow> all) {
    if (!has_recall(reader, prompt)) return;
    const auto n_tokens = static_cast<size_t>(reader.prompt(prompt).visible_tokens());
    std::vector<int> runs;
    std::vector<std::shared_ptr<const trace::Kept>> kept;
    std::vector<ComputedRow*> measured;
    for (ComputedRow& one : all) {
        if (!one.kept || !can_measure_kept_tokens(one.record, kept_sets(*one.kept, n_tokens))) continue;
        runs.push_back(one.run);
        kept.push_back(one.kept);
        measured.push_back(&one);
    }
    std::vector<Recall> recalls;
    try {
        recalls = recall_of_runs(reader, prompt, runs, kept);
    } catch (const kernels::NanScore& error) {
        throw trace::DamagedTrace(
            fmt::format("{}: answer_attention of prompt {}: {}", reader.path().string(), prompt, error.what()));
    }
    for (size_t i = 0; i < recalls.size(); ++i) measured[i]->recall = mean_of_known(recalls[i].layers);
}

}  // namespace

trace::ResultRow result_row(const trace::ModelAttributes& model, const trace::PromptAttributes& prompt,
                            const trace::RunRecord& run, double recall, std::span<const uint32_t> evidence) {
    trace::ResultRow row = trace::row_of_prompt(model, prompt);
    trace::add_run_attributes(row, run);
    if (is_complete(run) && run.kept_offsets.size() > 1) {
        const HeldTokens held(run, static_cast<size_t>(model.n_layers), static_cast<size_t>(prompt.visible_tokens()));
        add_measures(row, run, held.sets(), run.kept_indices.size(), recall, prompt.n_system.value_or(0), evidence);
    }
    return row;
}

std::vector<trace::ResultRow> result_rows(const trace::Reader& reader, int prompt, std::span<const int> runs,
                                          const OnDamage& on_damage, std::span<const uint32_t> evidence) {
    const auto attempt = [&](const auto& action) {
        try {
            action();
        } catch (const trace::TraceError& error) {
            if (!on_damage) throw;
            on_damage(error);
        }
    };
    std::vector<trace::ResultRow> rows(runs.size());
    std::vector<ComputedRow> computed;
    std::optional<trace::ResultRow> of_prompt;
    for (size_t i = 0; i < runs.size(); ++i) {
        const std::optional<trace::ResultRow> stored = reader.stored_row(prompt, runs[i]);
        // A complete run without coverage was damaged when its row was written.
        if (stored && (stored->status != schema::run::status_complete || !std::isnan(stored->coverage))) {
            rows[i] = *stored;
            continue;
        }
        if (!of_prompt) of_prompt = trace::row_of_prompt(reader.model(), reader.prompt(prompt));
        rows[i] = *of_prompt;
        ComputedRow& one = computed.emplace_back(ComputedRow{runs[i], rows[i]});
        static_cast<trace::RunAttributes&>(one.record) = reader.run(prompt, runs[i]);
        trace::add_run_attributes(rows[i], one.record);
        if (stored) trace::copy_job_columns(rows[i], *stored);
        if (!is_complete(one.record)) continue;
        rows[i].kept_share = unknown;
        read_measured_data(reader, prompt, one, attempt);
    }
    if (!computed.empty()) attempt([&] { add_recalls(reader, prompt, computed); });
    const trace::PromptAttributes& attributes = reader.prompt(prompt);
    const auto n_tokens = static_cast<size_t>(attributes.visible_tokens());
    for (const ComputedRow& one : computed)
        if (one.kept)
            add_measures(one.row, one.record, kept_sets(*one.kept, n_tokens), one.kept->indices.size(), one.recall,
                         attributes.n_system.value_or(0), evidence);
    return rows;
}

std::vector<trace::ResultRow> result_rows_of_prompt(const trace::Reader& reader, int prompt, const OnDamage& on_damage,
                                                    std::span<const uint32_t> evidence) {
    std::vector<int> runs(static_cast<size_t>(reader.n_runs(prompt)));
    std::iota(runs.begin(), runs.end(), 0);
    return result_rows(reader, prompt, runs, on_damage, evidence);
}

double share_of_full_bytes(std::span<const trace::ResultRow> rows, const trace::ResultRow& run) {
    const auto full = std::ranges::find_if(rows, [](const trace::ResultRow& row) { return row.policy == full_policy; });
    if (full == rows.end()) return unknown;
    if (full->bytes > 0 && run.bytes >= 0) return run.bytes / full->bytes;
    return full->bytes_predicted > 0 ? run.bytes_predicted / full->bytes_predicted : unknown;
}

}  // namespace kvscope::analysis
