#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/cache/run_cache.h"
#include "engine/experiment.h"
#include "engine/inference/chunked_reading.h"
#include "engine/inference/observed_layer.h"
#include "engine/inference/prefill.h"
#include "engine/score_pool.h"
#include "policies/interface/decision_order.h"
#include "policies/interface/record_storage.h"
#include "trace/records.h"

namespace kvscope::engine {

/// A run on its way through one prompt: its policy, its growing cache, and the record that goes into the trace.
class ActiveRun {
 public:
    /// Begins the policy. A budget that it cannot take leaves a failed run.
    /// @param pool of the runs on this prompt
    ActiveRun(const Model& model, const RunPlan& plan, int index, const Prompt& prompt,
              const ExperimentOptions& options, ScorePool& pool);

    int index() const { return index_; }
    bool failed() const { return record.status == "failed"; }
    void fail(const std::string& message);
    bool is_full() const { return record.policy == "full"; }
    const policies::Needs& needs() const { return needs_; }
    const policies::PassPlan& pass() const { return pass_; }
    bool filters() const { return pass_.filter_layer >= 0 || pass_.classification; }
    bool looks_ahead() const { return pass_.lookahead > 0; }
    /// Whether its policy needs keys and values themselves in the processor's memory.
    bool reads_entries() const;
    bool awaits_answer() const { return needs_.answer_attention; }

    /// Layers whose weights the policy looks at before the prompt is read; 0: none.
    int n_prepared() const { return !failed() && policy_->prepares() ? model_.shape().n_layers : 0; }
    /// Lets it look at one. Failures are recorded.
    void prepare(int layer);

    /// Lets the policy look at a layer, the next one, and decide about those that it decides then; takes what it keeps
    /// out of their dense caches. Layers that it decides later are held until then. Failures are recorded.
    void decide(policies::LayerObservations& observations, const DenseLayer& dense,
                std::span<const float> window_attention);

    /// Takes what the policy's draft keeps of a layer; `draft_cache` is what looks ahead.
    void draft(policies::LayerObservations& observations, const DenseLayer& dense);
    RunCache& draft_cache() { return *draft_; }
    void drop_draft() { draft_.reset(); }

    /// The policy chooses the tokens on which the model runs again.
    void filter(policies::LayerObservations& observations);
    const std::vector<uint32_t>& filtered() const { return filtered_.rows[0]; }
    void adopt_filtered(const DenseCache& cache, std::span<const float> window_attention);

    /// What a policy that merges has to know of the run while its prompt is read.
    bool reads_in_chunks() const { return pass_.chunk > 0; }
    ChunkedRun chunked(bool measure_error);
    /// Takes the cache through which the prompt was read.
    void adopt_chunked(ChunkedRun& read, std::span<const float> window_attention);

    /// After the last layer: what the compressed cache holds. Cached entries end at `position`.
    void finish_prompt(const std::vector<float>& last_logits);

    RunCache& cache() { return *cache_; }
    /// Takes the policy out of a run that is finished.
    std::unique_ptr<policies::Policy> take_policy() { return std::move(policy_); }
    int64_t position() const { return position_; }
    const std::vector<float>& first_logits() const { return first_logits_; }
    void set_first_logits(std::vector<float> logits) { first_logits_ = std::move(logits); }
    /// Called while decoding; nullptr for policies that do nothing then.
    bool evicts_while_decoding() const { return policy_->acts_while_decoding(); }
    policies::Policy* acting() const { return policy_->changes_while_decoding() ? policy_.get() : nullptr; }

    trace::RunRecord record;  ///< without the scores, which runs share
    /// With a copy of the scores, for the trace. @param room for these
    trace::RunRecord whole_record(ScoreRoom& room) const;
    trace::RunRecord whole_record() const {
        ScoreRoom room;
        return whole_record(room);
    }
    double select_seconds = 0;

 private:
    /// Does a part of the decision, whose time is the policy's; what it throws fails the run.
    template <class Decision>
    void attempt(const std::string& where, Decision decision);
    void decide_now(policies::LayerObservations& observations, const DenseLayer& dense,
                    std::span<const float> window_attention);
    /// @throws policies::SelectionError
    void require_selection(int layer, const policies::Selection& selection) const;
    void merge_values(policies::LayerObservations& observations, const policies::Selection& selection);
    /// @throws RunError for parts that go with something else which the policy does
    void require_storage(const policies::Selection& selection) const;
    void record_selection(int layer, policies::Selection selection, std::span<const float> window_attention);
    void record_attention_kept(const policies::Selection& selection, const policies::StoredSummary& summary,
                               std::span<const float> window_attention);
    void record_storage_error(policies::LayerObservations& observations);
    void record_bytes();
    bool is_apart() const;
    const Transformer& model_of_cache() const;

    const Transformer& model_;
    ScorePool& pool_;
    std::vector<ScorePool::Shared<float>> scores_;  ///< of the layers, where the policy ranks
    std::vector<ScorePool::Shared<double>> scores_f64_;
    int index_;
    int64_t n_tokens_;
    policies::RunContext context_;
    std::unique_ptr<policies::Policy> policy_;
    policies::Needs needs_;
    policies::PassPlan pass_;
    policies::DecisionOrder order_;
    /// A layer that is decided behind a later one.
    struct Waiting {
        Waiting(const policies::LayerObservations& observations, const DenseLayer& dense,
                std::span<const float> attention)
            : observed(observations, dense), window_attention(attention.begin(), attention.end()) {}
        ObservedLayer observed;
        std::vector<float> window_attention;
    };
    std::deque<std::unique_ptr<Waiting>> waiting_;
    std::optional<RunCache> cache_;
    std::optional<RunCache> draft_;
    policies::Selection filtered_;
    policies::StorageRecorder<trace::RunRecord> storage_;
    int64_t position_;
    std::vector<float> first_logits_;
};

}  // namespace kvscope::engine
