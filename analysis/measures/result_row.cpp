#include "analysis/measures/result_row.h"

#include <fmt/format.h>

#include <numeric>

#include "analysis/measures/kept_sets.h"
#include "analysis/measures/logit_divergence.h"
#include "analysis/measures/mean_of_known.h"
#include "analysis/measures/recall.h"
#include "analysis/measures/token_coverage.h"
#include "common/sha256.h"

namespace kvscope::analysis {
namespace {

namespace schema = trace::schema;

constexpr double unknown = trace::ResultRow::unknown;

void add_measures(trace::ResultRow& row, const trace::RunRecord& run, const KeptSets& tokens, double recall) {
    row.coverage = model_coverage(tokens).share;
    // trace::find_problems reports data sets that differ in length.
    if (run.step_kl.size() == run.step_agreement.size()) {
        const LogitDivergence divergence = logit_divergence(run.step_kl, run.step_agreement);
        row.kl = divergence.kl_mean;
        row.agreement = divergence.agreement;
    }
    if (can_measure_kept_tokens(run, tokens)) {
        row.attention_kept = mean_of_known(run.attention_kept);
        row.recall = recall;
    }
    row.output_error = mean_of_known(run.output_error);
    if (!run.cache_bytes.empty())
        row.bytes = static_cast<double>(std::accumulate(run.cache_bytes.begin(), run.cache_bytes.end(), uint64_t{0}));
    row.prefill_s = run.prefill_s;
    row.first_token_s = run.first_token_s.value_or(unknown);
    row.decode_s = run.decode_s.value_or(unknown);
    row.tokens_per_s = run.decode_tokens_per_s.value_or(unknown);
    if (run.peak_bytes) row.peak_bytes = static_cast<double>(*run.peak_bytes);
}

/// Returns the attributes of a run with the data sets from which result_row() computes measures.
trace::RunRecord read_measured_data(const trace::Reader& reader, int prompt, int run) {
    trace::RunRecord record;
    static_cast<trace::RunAttributes&>(record) = reader.run(prompt, run);
    if (record.status != schema::run::status_complete) return record;
    const auto kept = reader.kept(prompt, run);
    record.kept_offsets = kept->offsets;
    record.kept_indices = kept->indices;
    record.merged_token_entry = kept->token_entry;
    const auto place = trace::Place::of_run(prompt, run);
    const auto read = [&]<class T>(const schema::DataSet& data_set, std::vector<T>& values) {
        if (reader.has(place, data_set)) values = reader.read<T>(place, data_set);
    };
    read(schema::run::step_kl, record.step_kl);
    read(schema::run::step_agreement, record.step_agreement);
    read(schema::run::attention_kept, record.attention_kept);
    read(schema::run::output_error, record.output_error);
    read(schema::run::cache_bytes, record.cache_bytes);
    return record;
}

std::vector<double> recall_by_run(const trace::Reader& reader, int prompt) {
    std::vector<double> recalls(static_cast<size_t>(reader.n_runs(prompt)), unknown);
    if (!full_run_with_answer_attention(reader, prompt)) return recalls;
    const auto n_tokens = static_cast<size_t>(reader.prompt(prompt).visible_tokens());
    std::vector<int> measured;
    for (int run = 0; run < reader.n_runs(prompt); ++run) {
        const trace::RunAttributes& attributes = reader.run(prompt, run);
        if (attributes.status == schema::run::status_complete &&
            can_measure_kept_tokens(attributes, kept_sets(*reader.kept(prompt, run), n_tokens)))
            measured.push_back(run);
    }
    const std::vector<Recall> of_measured = recall_of_runs(reader, prompt, measured);
    for (size_t i = 0; i < measured.size(); ++i) recalls[static_cast<size_t>(measured[i])] = of_measured[i].model;
    return recalls;
}

}  // namespace

std::string prompt_hash(const std::string& text) {
    Sha256 hash;
    hash.update(text);
    return hash.hex_digest();
}

trace::ResultRow result_row(const trace::ModelAttributes& model, const trace::PromptAttributes& prompt,
                            const trace::RunRecord& run, double recall) {
    trace::ResultRow row;
    row.sample_id = prompt.name;
    row.policy = run.policy;
    row.parameters_json = run.parameters_json;
    row.budget = run.budget;
    row.budget_fraction = run.budget_fraction;
    row.length = prompt.n_tokens;
    row.depth = row.score = row.seconds = unknown;
    row.prediction = run.output_text;
    row.answers_json = "[]";
    row.status =
        run.status == schema::run::status_complete ? run.status : fmt::format("{}: {}", run.status, run.message);
    row.model = model.name;
    row.dtype = model.dtype;
    row.device = run.device.value_or("");
    row.instructions = run.instructions.value_or("");
    row.commit = run.commit.value_or("");
    row.seed = run.seed;
    row.question_seen = prompt.query_aware ? 1 : 0;
    if (run.status == schema::run::status_complete && run.kept_offsets.size() > 1) {
        const HeldTokens held(run, static_cast<size_t>(model.n_layers), static_cast<size_t>(prompt.visible_tokens()));
        const auto n_places = static_cast<double>((run.kept_offsets.size() - 1) * held.sets().n_tokens);
        if (n_places > 0) row.kept_share = static_cast<double>(run.kept_indices.size()) / n_places;
        add_measures(row, run, held.sets(), recall);
    }
    return row;
}

std::vector<trace::ResultRow> result_rows_of_prompt(const trace::Reader& reader, int prompt) {
    const std::vector<double> recalls = recall_by_run(reader, prompt);
    std::vector<trace::ResultRow> rows;
    for (int run = 0; run < reader.n_runs(prompt); ++run)
        rows.push_back(result_row(reader.model(), reader.prompt(prompt), read_measured_data(reader, prompt, run),
                                  recalls[static_cast<size_t>(run)]));
    return rows;
}

std::vector<trace::ResultRow> result_rows_without_measures(const trace::Reader& reader, int prompt) {
    std::vector<trace::ResultRow> rows;
    for (const trace::RunAttributes& attributes : reader.runs(prompt)) {
        trace::RunRecord run;
        static_cast<trace::RunAttributes&>(run) = attributes;
        rows.push_back(result_row(reader.model(), reader.prompt(prompt), run, unknown));
    }
    return rows;
}

}  // namespace kvscope::analysis
