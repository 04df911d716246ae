#include "engine/active_run.h"

#include <algorithm>
#include <numeric>

#include "engine/cache/measure_reconstruction_error.h"
#include "engine/calibration.h"
#include "engine/common/engine_error.h"
#include "engine/common/stopwatch.h"
#include "engine/device/catch_single_run_failure.h"
#include "engine/model/projection_weights.h"
#include "engine/prefill/recorded_measures.h"
#include "kernels/cpu_features.h"
#include "policies/registry/feasibility.h"
#include "policies/registry/validation.h"

namespace kvscope::engine {
namespace {

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

std::string in_layer(int layer) { return "layer " + std::to_string(layer) + ": "; }

/// Puts the layer before the policy's message, unless the message names the layer, as in "layer 1, head 0: …".
std::string located(const std::string& where, const std::string& error) {
    const std::string layer = where.substr(0, where.find(':'));
    const bool is_said = !layer.empty() && error.starts_with(layer) && error.size() > layer.size() &&
                         (error[layer.size()] == ',' || error[layer.size()] == ':');
    return is_said ? error : where + error;
}

}  // namespace

ActiveRun::ActiveRun(const Model& model, const RunPlan& plan, int index, const Prompt& prompt,
                     const ExperimentOptions& options, DeduplicatedScores& pool, const std::stop_token& stop)
    : model_(model.transformer()),
      pool_(pool),
      index_(index),
      n_tokens_(prompt.n_visible()),
      position_(prompt.n_visible()) {
    record.policy = plan.spec.definition->name;
    record.label = plan.label();
    record.requested_budget = plan.budget.text();
    record.parameters_json = plan.spec.values.to_json();
    record.seed = options.seed;
    record.mode = options.isolated ? "isolated" : "shared";
    record.device = model.device().is_processor() ? "cpu" : model.device().backend->name();
    record.instructions = kernels::name_of(kernels::simd_level());
    if (!options.commit.empty()) record.commit = options.commit;
    if (plan.spec.values.has("window")) record.window = plan.spec.values.integer("window");
    const std::string error = catch_single_run_failure([&] {
        context_.shape = model_.shape();
        context_.n_tokens = n_tokens_;
        context_.budget = is_full() ? n_tokens_ : plan.budget.resolve(n_tokens_, plan.spec.definition->budget_of);
        if (plan.budget.is_share) context_.budget_share = plan.budget.share;
        context_.seed = options.seed;
        context_.model_fingerprint = model.fingerprint();
        context_.token_ids = std::span<const int32_t>(prompt.ids).first(static_cast<size_t>(n_tokens_));
        context_.n_vocabulary = model_.config().vocab_size;
        context_.tokenize = [&tokenizer = model.tokenizer(), stop](std::string_view text) {
            return tokenizer.encode(text, false, false, stop);
        };
        context_.memo = model.memo();
        context_.projection = [&transformer = model_](int layer, policies::Projected which) {
            return copy_projection_weights(transformer, layer, which);
        };
        context_.calibration = [&model](int layer, policies::Projected which) {
            SilentProgress silent;
            return find_or_make_calibration(model, silent)->moments(layer, which);
        };
        record.budget = context_.budget;
        record.budget_fraction = static_cast<double>(context_.budget) / static_cast<double>(n_tokens_);
        if (plan.spec.definition->budget_of == policies::BudgetOf::bytes) {
            record.budget_of = trace::schema::run::budget_of_bytes;
            record.budget_fraction = context_.share_of_bytes();
        }
        policy_ = plan.spec.create();
        policy_->begin(context_);
        needs_ = policy_->needs();
        if (const auto* appends = policy_.as<policies::AppendsTokens>()) appended_ = appends->appended(context_);
        if (const auto* looks = policy_.as<policies::LooksAhead>()) lookahead_ = looks->lookahead();
        if (const auto* filters = policy_.as<policies::FiltersPrompt>()) filter_ = filters->filter(context_);
        if (const auto* reads = policy_.as<policies::ReadsThroughOwnCache>()) {
            reading_ = reads->reading(context_);
            if (reading_->chunk < 1)
                fail("it reads the prompt in chunks of " + std::to_string(reading_->chunk) +
                     " tokens: choose at least 1");
        }
        record.pseudo_ids = appended_.ids;
        const int64_t ahead = std::max(lookahead_, static_cast<int64_t>(appended_.ids.size()));
        if (ahead > model_.config().context_length)
            fail("it looks ahead " + std::to_string(ahead) + " tokens, but the model's context is only " +
                 std::to_string(model_.config().context_length) + ": choose a smaller number");
        if (filter_) policies::require_filter_layer(*filter_, model_.shape());
        for (const int32_t id : appended_.ids) {
            if (id < 0 || id >= model_.config().vocab_size)
                fail("it appends token " + std::to_string(id) + " to the prompt, but the model has only " +
                     std::to_string(model_.config().vocab_size) + " embeddings: choose other pseudo tokens");
        }
    });
    if (!error.empty()) fail(error);
}

void ActiveRun::fail(const std::string& message) {
    trace::RunAttributes attributes = record;
    record = {};
    static_cast<trace::RunAttributes&>(record) = std::move(attributes);
    record.status = "failed";
    record.message = message;
    scores_.clear();
    scores_f64_.clear();
    waiting_.clear();
    cache_.reset();
}

int ActiveRun::n_prepared() const {
    const auto* prepares = policy_.as<policies::PreparesWeights>();
    return !failed() && prepares && prepares->prepares() ? model_.shape().n_layers : 0;
}

void ActiveRun::prepare(int layer) {
    if (failed()) return;
    const std::string error =
        catch_single_run_failure([&] { policy_.as<policies::PreparesWeights>()->prepare(layer); });
    if (!error.empty()) fail(located(in_layer(layer), error));
}

template <class Action>
void ActiveRun::attempt(const std::string& where, Action action) {
    const Stopwatch watch;
    const std::string error = catch_single_run_failure(action);
    select_seconds_ += watch.seconds();
    if (!error.empty()) fail(located(where, error));
}

void ActiveRun::decide(policies::LayerObservations& observations, const DenseLayer& dense,
                       std::span<const float> window_attention) {
    begin_decision(observations, dense, window_attention);
    if (has_decision()) finish_decision();
}

void ActiveRun::begin_decision(policies::LayerObservations& observations, const DenseLayer& dense,
                               std::span<const float> window_attention) {
    const int layer = observations.layer;
    std::pair<int, int> decided;
    attempt(in_layer(layer), [&] {
        policy_->observe(observations);
        decided = order_.after(policy_, layer, model_.shape().n_layers);
        if (decided.second <= layer)
            waiting_.push_back(std::make_unique<Waiting>(observations, dense, window_attention));
    });
    for (int next = decided.first; next < decided.second && !failed(); ++next) {
        if (next == layer) return open({observations, dense, window_attention});
        const auto waited = std::move(waiting_.front());
        waiting_.pop_front();
        open({waited->observed.observations, waited->observed.dense, waited->window_attention});
        if (has_decision()) finish_decision();
    }
}

void ActiveRun::begin_draft(policies::LayerObservations& observations, const DenseLayer& dense) {
    open({.observations = observations, .dense = dense, .window_attention = {}, .is_draft = true});
}

void ActiveRun::open(Decision decision) {
    const int layer = decision.observations.layer;
    decision_.emplace(std::move(decision));
    auto* gathers = policy_.as<policies::Gathers>();
    if (!gathers) return finish_decision();
    attempt(in_layer(layer), [&] { gathers->gather(decision_->observations); });
    if (failed()) decision_.reset();
}

void ActiveRun::finish_decision() {
    choose(false);
    take();
}

void ActiveRun::choose(bool beside_others) {
    const Stopwatch watch;
    Decision& decision = *decision_;
    decision.error = catch_single_run_failure([&] {
        decision.selection = decision.is_draft ? policy_.as<policies::LooksAhead>()->draft(decision.observations)
                                               : policy_->select(decision.observations);
        require_valid_selection(decision.observations.layer, decision.selection);
    });
    const double seconds = watch.seconds();
    select_seconds_ += seconds;
    if (beside_others) seconds_beside_ += seconds;
}

void ActiveRun::take(std::vector<kernels::RowCopy>* later) {
    Decision decision = std::move(*decision_);
    decision_.reset();
    const int layer = decision.observations.layer;
    if (!decision.error.empty()) return fail(located(in_layer(layer), decision.error));
    const size_t n_before = later ? later->size() : 0;
    attempt(in_layer(layer), [&] { keep(decision, later); });
    if (later && failed()) later->resize(n_before);  // the failed run's cache no longer exists
    if (!failed() && !decision.is_draft && stores_parts())
        if (const auto error = catch_single_run_failure([&] { record_storage_error(decision.observations); });
            !error.empty())
            fail(located(in_layer(layer), error));
}

void ActiveRun::keep(Decision& decision, std::vector<kernels::RowCopy>* later) {
    auto& [observations, dense, attention, is_draft, selection, error] = decision;
    const int layer = observations.layer;
    if (is_draft) {
        if (!draft_) draft_.emplace(model_, selection.granularity, policies::Positions::prompt, false);
        return draft_->compress(layer, selection, dense, later);
    }
    if (!cache_) cache_.emplace(model_of_cache(), selection.granularity, policy_->positions(), evicts_while_decoding());
    if (is_full()) {
        cache_->adopt(layer, dense, n_tokens_);
    } else {
        if (selection.stored && !stores_parts())
            throw RunError(
                "the policy stores entries in parts, but it lacks the interface StoresParts or its stores_parts() "
                "returns false");
        auto* merges = policy_.as<policies::MergesValues>();
        const bool waits = !merges && &cache_->model() == &model_;
        cache_->compress(layer, selection, dense, waits ? later : nullptr);
        if (merges) merge_values(*merges, observations, selection);
    }
    record_selection(layer, selection, attention);
}

bool ActiveRun::reads_entries() const { return needs_.entries || is_apart() || policy_.as<policies::MergesValues>(); }

bool ActiveRun::stores_parts() const {
    const auto* stores = policy_.as<policies::StoresParts>();
    return reads_in_chunks() || (stores && stores->stores_parts());
}

/// Whether the cache is always in the processor's memory, because devices cannot read entries stored in parts.
bool ActiveRun::is_apart() const {
    const auto* stores = policy_.as<policies::StoresWhileDecoding>();
    return stores_parts() || (stores && stores->stores_while_decoding());
}

const Transformer& ActiveRun::model_of_cache() const { return is_apart() ? model_.on_processor() : model_; }

void ActiveRun::merge_values(policies::MergesValues& policy, policies::LayerObservations& observations,
                             const policies::Selection& selection) {
    for (int row = 0; row < cache_->n_rows(); ++row)
        cache_->edit_values(observations.layer, row, [&](std::span<float> values) {
            policy.merge_values(observations, selection, row, values);
        });
}

void ActiveRun::require_valid_selection(int layer, const policies::Selection& selection) const {
    policies::require_valid_selection(record.label, layer, model_.shape(), n_tokens_, selection);
}

void ActiveRun::record_selection(int layer, const policies::Selection& selection,
                                 std::span<const float> window_attention) {
    const size_t element = kernels::size_of(model_.dtype());
    const auto bytes = policies::row_bytes_of(selection, model_.shape().head_dim, element);
    record.cache_bytes_predicted.push_back(std::accumulate(bytes.begin(), bytes.end(), uint64_t{0}));
    policies::StoredSummary summary;
    if (stores_parts()) {
        summary = policies::summarize_storage(record.label, layer, model_.shape(), n_tokens_, selection, element);
        storage_.add_layer(summary, record);
    }
    record.granularity = selection.granularity == policies::Granularity::kv_head ? "kv_head" : "query_head";
    if (record.kept_offsets.empty()) record.kept_offsets.push_back(0);
    for (const auto& row : selection.rows) {
        record.kept_indices.insert(record.kept_indices.end(), row.begin(), row.end());
        record.kept_offsets.push_back(record.kept_indices.size());
    }
    add_ranked_rows(ranked_rows_, selection, n_tokens_);
    if (!selection.scores.empty()) scores_.push_back(pool_.keep(selection.scores));
    if (!selection.scores_f64.empty()) scores_f64_.push_back(pool_.keep(selection.scores_f64));
    append(record.head_jsd, selection.head_jsd);
    append(record.channel_scores, selection.channel_scores);
    if (!window_attention.empty()) record_attention_kept(selection, summary, window_attention);
}

void ActiveRun::record_attention_kept(const policies::Selection& selection, const policies::StoredSummary& summary,
                                      std::span<const float> window_attention) {
    policies::Selection held;
    if (summary.merges)
        for (size_t row = 0; row < selection.rows.size(); ++row) {
            auto& tokens = held.rows.emplace_back();
            for (uint32_t token = 0; token < n_tokens_; ++token)
                if (summary.token_entry[row * static_cast<size_t>(n_tokens_) + token] >= 0) tokens.push_back(token);
        }
    append(record.attention_kept,
           attention_kept(window_attention, model_.shape(), n_tokens_, summary.merges ? held : selection));
}

void ActiveRun::record_storage_error(policies::LayerObservations& observations) {
    const int group = cache_->n_rows() / model_.shape().n_kv_heads;
    const auto n = static_cast<size_t>(n_tokens_);
    const auto entries =
        std::span<const int32_t>(record.merged_token_entry).last(static_cast<size_t>(cache_->n_rows()) * n);
    for (int row = 0; row < cache_->n_rows(); ++row) {
        const auto error =
            measure_storage_error(*cache_, observations.layer, row, entries.subspan(static_cast<size_t>(row) * n, n),
                                  observations.keys, observations.values, row / group, model_.shape().head_dim);
        record.stored_key_error.push_back(error.keys);
        record.stored_value_error.push_back(error.values);
    }
}

trace::RunRecord ActiveRun::whole_record(ScoreBuffer& room) const {
    trace::RunRecord whole = record;
    whole.scores = room.join(scores_);
    whole.scores_f64 = room.join(scores_f64_);
    return whole;
}

void ActiveRun::filter(policies::LayerObservations& observations) {
    attempt("", [&] {
        filtered_ = policy_->select(observations);
        require_valid_selection(observations.layer, filtered_);
        const auto& first = filtered_.rows.at(0);
        if (first.empty()) throw RunError("the policy chose no tokens for the second pass");
        const auto other =
            std::find_if(filtered_.rows.begin(), filtered_.rows.end(), [&](const auto& row) { return row != first; });
        if (other != filtered_.rows.end())
            throw RunError("the policy must choose the same tokens for the second pass in all rows, but row " +
                           std::to_string(other - filtered_.rows.begin()) + " differs from row 0");
    });
}

void ActiveRun::adopt_filtered(const DenseCache& cache, std::span<const float> window_attention) {
    const auto n = static_cast<int64_t>(filtered().size());
    cache_.emplace(model_of_cache(), policies::Granularity::kv_head, policies::Positions::prompt,
                   evicts_while_decoding());
    for (size_t layer = 0; layer < cache.size(); ++layer) {
        cache_->adopt(static_cast<int>(layer), cache[layer], n);
        record_selection(static_cast<int>(layer), filtered_,
                         slice_layer_attention(window_attention, layer, n_tokens_, model_.shape()));
    }
    position_ = n;
}

ChunkedRun ActiveRun::chunked(bool measure_error) {
    auto* policy = policy_.as<policies::ReadsThroughOwnCache>();
    ChunkedRun run{.policy = policy,
                   .label = record.label,
                   .budget = context_.budget,
                   .reading = *reading_,
                   .measure_error = measure_error};
    run.reading.chunk = std::min(run.reading.chunk, n_tokens_);
    return run;
}

void ActiveRun::adopt_chunked(ChunkedRun& read, std::span<const float> window_attention) {
    select_seconds_ += read.merge_seconds;
    if (!read.error.empty()) return fail(read.error);
    const Transformer& model = model_of_cache();
    cache_.emplace(model, policies::Granularity::kv_head, policies::Positions::prompt, false);
    for (size_t i = 0; i < read.layers.size(); ++i) {
        const auto layer = static_cast<int>(i);
        attempt(in_layer(layer), [&] {
            policies::Selection selection = selection_of_merged_layer(model, n_tokens_, read.layers[i]);
            if (selection.stored)
                cache_->hold(layer, selection, n_tokens_);
            else
                cache_->compress(layer, selection, to_dense_layer(model, read.layers[i]));
            record_selection(layer, selection, slice_layer_attention(window_attention, i, n_tokens_, model_.shape()));
        });
        if (failed()) return;
        if (read.layers[i].from) {
            const MergeErrors errors = merge_errors(read.layers[i]);
            append(record.stored_key_error, errors.keys);
            append(record.stored_value_error, errors.values);
        }
        record.merged_keys.push_back(read.layers[i].n_keys);
        record.merged_keys_outside.push_back(read.layers[i].n_outside);
        read.layers[i] = {};
    }
    if (std::count(record.merged_keys.begin(), record.merged_keys.end(), 0u) ==
        static_cast<std::ptrdiff_t>(record.merged_keys.size())) {
        record.merged_keys.clear();
        record.merged_keys_outside.clear();
    }
}

void ActiveRun::finish_prompt(const std::vector<float>& last_logits) {
    first_logits_ = last_logits;
    record.select_s = select_seconds_;
    if (ranked_rows_.n > 0)
        record.tied_heads = static_cast<double>(ranked_rows_.n_tied) / static_cast<double>(ranked_rows_.n);
    storage_.finish(record);
    const std::string error = catch_single_run_failure([&] { record_bytes(); });
    if (!error.empty()) fail("measuring its cache: " + error);
}

void ActiveRun::record_bytes() {
    for (int layer = 0; layer < cache_->n_layers(); ++layer) {
        record.cache_bytes.push_back(cache_->layer_bytes(layer));
        for (int row = 0; row < cache_->n_rows(); ++row) record.head_bytes.push_back(cache_->row_bytes(layer, row));
    }
}

}  // namespace kvscope::engine
