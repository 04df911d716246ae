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

    /// The same where others decide beside it: what can be done at a thread's own remains to be done, and
    /// `has_decision` then says so. Until `take` what is given has to stay, of the observations what is not appended.
    void begin_decision(policies::LayerObservations& observations, const DenseLayer& dense,
                        std::span<const float> window_attention);
    /// For what the policy's draft keeps of a layer; `draft_cache` is what looks ahead.
    void begin_draft(policies::LayerObservations& observations, const DenseLayer& dense);
    bool has_decision() const { return decision_.has_value(); }
    /// Lets the policy select, on any thread. @param beside_others whether other runs do so at the same time
    void choose(bool beside_others);
    /// Takes what the policy chose, or records the failure. It ends the decision.
    /// @param later receives copies on the model's device that are left to the caller (RunCache::compress)
    void take(std::vector<kernels::RowCopy>* later = nullptr);
    /// Counts a share of what was done for several runs at once.
    void add_select_seconds(double seconds) { select_seconds_ += seconds; }

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
    /// What the policy's decisions took: on a thread's own what it chose beside others.
    double select_seconds() const { return select_seconds_; }
    /// Without what passed while others chose, too.
    double select_seconds_alone() const { return select_seconds_ - seconds_beside_; }

 private:
    /// A layer's, between what the policy gathers and what the cache takes.
    struct Decision {
        policies::LayerObservations& observations;
        const DenseLayer& dense;
        std::span<const float> window_attention;
        bool is_draft = false;
        policies::Selection selection{};
        std::string error{};
    };
    /// Does a part of the decision, whose time is the policy's; what it throws fails the run.
    template <class Action>
    void attempt(const std::string& where, Action action);
    /// Lets the policy gather; one that does not do so decides at once.
    void open(Decision decision);
    void finish_decision();
    void keep(Decision& decision, std::vector<kernels::RowCopy>* later);
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
