#include "analysis/what_if/kept_summary.h"

#include <algorithm>
#include <numeric>

#include "analysis/measures/recall.h"
#include "analysis/measures/token_coverage.h"

namespace kvscope::analysis {
namespace {

KeptSummary summary_of(const KeptSets& kept, size_t n_entries, const std::vector<float>& attention,
                       const std::vector<uint64_t>& bytes) {
    KeptSummary summary;
    summary.n_entries = static_cast<int64_t>(n_entries);
    summary.coverage = model_coverage(kept).share;
    summary.attention_kept = attention.empty() ? std::numeric_limits<double>::quiet_NaN()
                                               : std::accumulate(attention.begin(), attention.end(), 0.0) /
                                                     static_cast<double>(attention.size());
    summary.bytes = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
    return summary;
}

size_t n_tokens_of(const trace::Reader& reader, int prompt) {
    return static_cast<size_t>(reader.prompt(prompt).visible_tokens());
}

}  // namespace

double bytes_of_all_entries(const trace::Reader& reader, int prompt) {
    const trace::ModelAttributes& model = reader.model();
    const double element = model.dtype == "f32" ? 4 : 2;
    return element * 2 * static_cast<double>(model.n_layers) * static_cast<double>(model.n_kv_heads) *
           static_cast<double>(model.head_dim) * static_cast<double>(reader.prompt(prompt).visible_tokens());
}

KeptSummary summarize_kept_entries(const trace::Reader& reader, int prompt, int run) {
    namespace schema = trace::schema::run;
    const auto kept = reader.kept(prompt, run);
    const trace::Place place = trace::Place::of_run(prompt, run);
    std::vector<float> attention;
    std::vector<uint64_t> bytes;
    if (reader.has(place, schema::attention_kept)) attention = reader.read<float>(place, schema::attention_kept);
    if (reader.has(place, schema::cache_bytes_predicted))
        bytes = reader.read<uint64_t>(place, schema::cache_bytes_predicted);
    return summary_of(kept_sets(*kept, n_tokens_of(reader, prompt)), kept->indices.size(), attention, bytes);
}

KeptSummary summarize_kept_entries(const trace::Reader& reader, int prompt, const trace::RunRecord& run) {
    const HeldTokens held(run, static_cast<size_t>(reader.model().n_layers), n_tokens_of(reader, prompt));
    return summary_of(held.sets(), run.kept_indices.size(), run.attention_kept, run.cache_bytes_predicted);
}

std::optional<AnswerAttention> AnswerAttention::read(const trace::Reader& reader, int prompt) {
    const auto full = full_run_with_answer_attention(reader, prompt);
    if (!full) return std::nullopt;
    AnswerAttention attention;
    attention.n_layers_ = static_cast<size_t>(reader.model().n_layers);
    attention.n_kv_heads_ = static_cast<size_t>(reader.model().n_kv_heads);
    attention.n_tokens_ = n_tokens_of(reader, prompt);
    attention.values_ = reader.read<float>(trace::Place::of_run(prompt, *full), trace::schema::run::answer_attention);
    return attention;
}

double AnswerAttention::recall(const trace::RunRecord& run, int64_t budget) const {
    const HeldTokens held(run, n_layers_, n_tokens_);
    const auto n_best = static_cast<size_t>(std::max<int64_t>(budget, 0));
    const std::vector<double> layers = recall_of_run(values_, n_kv_heads_, held.sets(), n_best).layers;
    return std::accumulate(layers.begin(), layers.end(), 0.0) / static_cast<double>(layers.size());
}

}  // namespace kvscope::analysis
