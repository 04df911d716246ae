#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/cache/run_cache.h"
#include "engine/decode/decode.h"
#include "engine/deduplicated_scores.h"
#include "engine/experiment.h"
#include "engine/prefill/chunked_reading.h"
#include "engine/prefill/observed_layer.h"
#include "engine/prefill/prefill.h"
#include "engine/score_ties.h"
#include "policies/registry/decidable_layers.h"
#include "policies/registry/storage_recorder.h"
#include "trace/records/records.h"

namespace kvscope::engine {

/// A run on one prompt: its policy, its growing cache, and its record for the trace.
class ActiveRun {
 public:
    ActiveRun(const Model& model, const RunPlan& plan, int index, const Prompt& prompt,
              const ExperimentOptions& options, DeduplicatedScores& pool, const std::stop_token& stop);

    [[nodiscard]] int index() const { return index_; }
    [[nodiscard]] bool failed() const { return record.status == "failed"; }
    void fail(const std::string& message);
    [[nodiscard]] bool is_full() const { return record.is_full(); }
    [[nodiscard]] const policies::Needs& needs() const { return needs_; }
    [[nodiscard]] const policies::AppendedTokens& appended() const { return appended_; }
    [[nodiscard]] bool filters() const { return filter_.has_value(); }
    /// Returns the layer after which the policy selects tokens for a second pass, or -1.
    [[nodiscard]] int filter_layer() const {
        const auto* after = filter_ ? std::get_if<policies::FilterLayer>(&*filter_) : nullptr;
        return after ? after->layer : -1;
    }
    /// Returns the classifier that selects tokens before the prefill, or nullptr.
    [[nodiscard]] const policies::TokenClassifierSettings* classification() const {
        return filter_ ? std::get_if<policies::TokenClassifierSettings>(&*filter_) : nullptr;
    }
    [[nodiscard]] int64_t lookahead() const { return lookahead_; }
    [[nodiscard]] bool looks_ahead() const { return lookahead_ > 0; }
    [[nodiscard]] bool reads_entries() const;
    [[nodiscard]] bool awaits_answer() const { return needs_.answer_attention; }

    [[nodiscard]] int n_prepared() const;
    /// Lets the policy examine one layer's weights before the prompt is read.
    void prepare(int layer);

    /// Shows a layer to the policy and copies the entries that the policy then selects, also in earlier layers.
    void decide(policies::LayerObservations& observations, const DenseLayer& dense,
                std::span<const float> window_attention);

    /// Starts decide(). If has_decision() is then true, choose() and take() must follow while the arguments exist.
    void begin_decision(policies::LayerObservations& observations, const DenseLayer& dense,
                        std::span<const float> window_attention);
    /// Like begin_decision(), but for the draft cache from which the policy generates lookahead tokens.
    void begin_draft(policies::LayerObservations& observations, const DenseLayer& dense);
    [[nodiscard]] bool has_decision() const { return decision_.has_value(); }
    /// Lets the policy select entries, on any thread. @param beside_others whether other runs select at the same time
    void choose(bool beside_others);
    /// Copies the selected entries, or records the failure. @param later see RunCache::compress
    void take(std::vector<kernels::RowCopy>* later = nullptr);
    void add_select_seconds(double seconds) { select_seconds_ += seconds; }

    [[nodiscard]] RunCache& draft_cache() { return *draft_; }
    void drop_draft() { draft_.reset(); }

    void filter(policies::LayerObservations& observations);
    [[nodiscard]] const std::vector<uint32_t>& filtered() const { return filtered_.rows[0]; }
    void adopt_filtered(const DenseCache& cache, std::span<const float> window_attention);

    /// Whether the run reads the prompt in chunks and merges entries after each chunk.
    [[nodiscard]] bool reads_in_chunks() const { return policy_.as<policies::ReadsThroughOwnCache>(); }
    [[nodiscard]] ChunkedRun chunked(bool measure_error);
    /// Takes the cache and results of a prompt that was read in chunks.
    void adopt_chunked(ChunkedRun& read, std::span<const float> window_attention);

    void finish_prompt(const std::vector<float>& last_logits);

    [[nodiscard]] RunCache& cache() { return *cache_; }
    [[nodiscard]] policies::CreatedPolicy take_policy() { return std::exchange(policy_, {}); }
    [[nodiscard]] int64_t position() const { return position_; }
    [[nodiscard]] const std::vector<float>& first_logits() const { return first_logits_; }
    void set_first_logits(std::vector<float> logits) { first_logits_ = std::move(logits); }
    [[nodiscard]] bool evicts_while_decoding() const { return policy_.as<policies::EvictsWhileDecoding>(); }
    [[nodiscard]] AfterAttention acting() const { return after_attention_of(policy_); }

    trace::RunRecord record;  ///< without scores, which several runs may share
    [[nodiscard]] trace::RunRecord whole_record(ScoreBuffer& room) const;
    [[nodiscard]] trace::RunRecord whole_record() const {
        ScoreBuffer room;
        return whole_record(room);
    }
    /// Returns the seconds of the decisions that no other run makes at the same time.
    [[nodiscard]] double select_seconds_alone() const { return select_seconds_ - seconds_beside_; }

 private:
    struct Decision {
        policies::LayerObservations& observations;
        const DenseLayer& dense;
        std::span<const float> window_attention;
        bool is_draft = false;
        policies::Selection selection{};
        std::string error{};
    };
    template <class Action>
    void attempt(const std::string& where, Action action);
    void open(Decision decision);
    void finish_decision();
    void keep(Decision& decision, std::vector<kernels::RowCopy>* later);
    void require_valid_selection(int layer, const policies::Selection& selection) const;
    void merge_values(policies::MergesValues& policy, policies::LayerObservations& observations,
                      const policies::Selection& selection);
    void record_selection(int layer, const policies::Selection& selection, std::span<const float> window_attention);
    void record_attention_kept(const policies::Selection& selection, const policies::StoredSummary& summary,
                               std::span<const float> window_attention);
    void record_storage_error(policies::LayerObservations& observations);
    void record_bytes();
    [[nodiscard]] bool stores_parts() const;
    [[nodiscard]] bool is_apart() const;
    [[nodiscard]] const Transformer& model_of_cache() const;

    const Transformer& model_;
    DeduplicatedScores& pool_;
    /// Scores of each layer; empty if the policy computes none.
    std::vector<DeduplicatedScores::Shared<float>> scores_;
    std::vector<DeduplicatedScores::Shared<double>> scores_f64_;
    RankedRows ranked_rows_;
    int index_;
    int64_t n_tokens_;
    policies::RunContext context_;
    policies::CreatedPolicy policy_;
    policies::Needs needs_;
    policies::AppendedTokens appended_;
    std::optional<policies::PromptFilter> filter_;
    std::optional<policies::OwnCacheReading> reading_;
    int64_t lookahead_ = 0;
    policies::DecidableLayers order_;
    struct Waiting {
        Waiting(const policies::LayerObservations& observations, const DenseLayer& dense,
                std::span<const float> attention)
            : observed(observations, dense), window_attention(attention.begin(), attention.end()) {}
        ObservedLayer observed;
        std::vector<float> window_attention;
    };
    std::deque<std::unique_ptr<Waiting>> waiting_;
    std::optional<Decision> decision_;
    double select_seconds_ = 0;
    double seconds_beside_ = 0;
    std::optional<RunCache> cache_;
    std::optional<RunCache> draft_;
    policies::Selection filtered_;
    policies::StorageRecorder<trace::RunRecord> storage_;
    int64_t position_;
    std::vector<float> first_logits_;
};

}  // namespace kvscope::engine
