#include "engine/decode/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "common/counted.h"
#include "engine/decode/batched_attention.h"
#include "engine/decode/decode_merging.h"
#include "engine/device/catch_single_run_failure.h"
#include "engine/device/tensor_functions.h"
#include "policies/registry/validation.h"

namespace kvscope::engine {
namespace {

// A pass of this many tokens uses all cores, and its activations stay small.
constexpr size_t rows_given = 1024;
// A pass cannot be cancelled and reads the entries stored in parts for each token, so it appends few tokens.
constexpr size_t rows_appended_after_parts = 16;

bool stores_parts(const RunCache& cache) {
    for (int layer = 0; layer < cache.n_layers(); ++layer)
        if (cache.stores_parts(layer)) return true;
    return false;
}

class Feed {
 public:
    Feed(const Transformer& model, std::span<Sequence> sequences, std::span<const std::span<const int32_t>> tokens,
         const FeedOptions& options)
        : model_(model),
          sequences_(sequences),
          options_(options),
          shape_(model.shape()),
          side_(model),
          apart_(model.on_processor()) {
        std::vector<int32_t> ids;
        std::vector<int64_t> positions;
        for (size_t s = 0; s < sequences.size(); ++s) {
            if (tokens[s].empty() || ((sequences[s].acts() || !options.given) && tokens[s].size() > 1))
                throw std::logic_error(
                    "a sequence must be fed one token at a time, unless its tokens are given and no "
                    "policy acts on it");
            first_row_.push_back(static_cast<int64_t>(ids.size()));
            for (size_t t = 0; t < tokens[s].size(); ++t) {
                ids.push_back(tokens[s][t]);
                positions.push_back(sequences[s].position + static_cast<int64_t>(t));
            }
        }
        first_row_.push_back(static_cast<int64_t>(ids.size()));
        residual_ = model.embed(ids);
        rotation_ = model.rotation(positions);
        for (size_t s = 0; s < sequences.size(); ++s) any_apart_ = any_apart_ || is_apart(s);
    }

    at::Tensor run() {
        for (int layer = 0; layer < shape_.n_layers; ++layer) run_layer(layer);
        for (size_t s = 0; s < sequences_.size(); ++s) {
            if (sequences_[s].failed()) continue;
            sequences_[s].position += n_tokens(s);
            sequences_[s].step += n_tokens(s);
        }
        return residual_;
    }

 private:
    size_t element() const { return kernels::size_of(model_.dtype()); }
    int64_t d() const { return shape_.head_dim; }
    char* at(const at::Tensor& tensor, int64_t row, int64_t column) const {
        return static_cast<char*>(tensor.data_ptr()) + static_cast<size_t>(row * tensor.size(1) + column) * element();
    }
    int64_t n_tokens(size_t s) const { return first_row_[s + 1] - first_row_[s]; }

    struct Observed {
        std::vector<float> attention;  // (queries, visible entries), then (queries, entries)
        at::Tensor there;              // the weights, if the row is on a device
        int64_t first = 0, n_visible = 0;

        /// Copies the weights to the processor and adds zeros for entries outside a sliding window.
        void show(int queries) {
            if (there.defined()) {
                const at::Tensor here = there.cpu();
                attention.assign(here.const_data_ptr<float>(), here.const_data_ptr<float>() + here.numel());
            }
            if (first == 0) return;
            std::vector<float> all(static_cast<size_t>(queries * (first + n_visible)));
            for (int q = 0; q < queries; ++q)
                std::copy_n(attention.begin() + q * n_visible, n_visible,
                            all.begin() + q * (first + n_visible) + first);
            attention = std::move(all);
        }
    };

    bool is_apart(size_t s) const { return &sequences_[s].cache->model().backend() != &model_.backend(); }
    BatchedAttention& side_of(size_t s) { return is_apart(s) ? apart_ : side_; }

    void run_layer(int layer) {
        at::Tensor qkv = model_.project(layer, residual_);
        const bool any_renumbers = std::any_of(sequences_.begin(), sequences_.end(),
                                               [](const auto& sequence) { return sequence.cache->renumbers(); });
        const at::Tensor plain = any_renumbers || options_.record_plain ? qkv.clone() : qkv;
        model_.rotate(qkv, rotation_);
        at::Tensor out = at::empty({qkv.size(0), int64_t{shape_.n_heads} * d()}, qkv.options());
        if (any_apart_) apart_.begin(qkv.cpu(), plain.cpu(), at::empty_like(out, at::device(at::kCPU)));
        side_.begin(qkv, plain, out);
        observed_.clear();
        for (size_t s = 0; s < sequences_.size(); ++s) read_or_fail(layer, s);
        for (BatchedAttention* side : {&side_, &apart_}) {
            if (side == &apart_ && !any_apart_) continue;
            side->attend(side->work);
            side->add_errors(layer, options_.errors);
        }
        for (size_t s = 0; any_apart_ && s < sequences_.size(); ++s)
            if (is_apart(s) && !sequences_[s].failed())
                out.narrow(0, first_row_[s], n_tokens(s)).copy_(apart_.out.narrow(0, first_row_[s], n_tokens(s)));
        act(layer);
        for (size_t s = 0; s < options_.records.size(); ++s) {
            const auto queries_of = [&](const at::Tensor& rows) {
                return rows.narrow(0, first_row_[s], n_tokens(s)).narrow(1, 0, shape_.n_heads * d()).clone();
            };
            options_.records[s].queries.push_back(queries_of(side_of(s).qkv));
            if (options_.record_plain) options_.records[s].plain_queries.push_back(queries_of(plain));
            options_.records[s].outputs.push_back(out.narrow(0, first_row_[s], n_tokens(s)).clone());
        }
        model_.finish_layer(layer, out, residual_);
    }

    template <class Action>
    void attempt(int layer, size_t s, Action action) {
        if (sequences_[s].failed()) return;
        const std::string error = catch_single_run_failure(action);
        if (!error.empty()) sequences_[s].error = "layer " + std::to_string(layer) + ": " + error;
    }

    void read_or_fail(int layer, size_t s) {
        BatchedAttention& side = side_of(s);
        BatchedAttention::Work& work = side.work;
        const size_t n_appended = work.appended.size(), n_rows = work.rows.size(), n_blocks = work.blocks.size(),
                     n_comparisons = side.comparisons.size(), n_observed = observed_.size();
        attempt(layer, s, [&] {
            if (sequences_[s].cache->stores_parts(layer))
                read_behind_parts(layer, s, side);
            else if (options_.given)
                read_block(layer, s, side);
            else
                step(layer, s, 0, side, work);
        });
        if (!sequences_[s].failed()) return;
        // Zeros replace the failed sequence's attention outputs, so that the other layers can continue.
        work.appended.resize(n_appended);
        work.rows.resize(n_rows);
        work.blocks.resize(n_blocks);
        side.comparisons.resize(n_comparisons);
        observed_.resize(n_observed);
        side_.out.narrow(0, first_row_[s], n_tokens(s)).zero_();
    }

    RowColumns columns_of(const RunCache& cache, int r) const {
        const int queries = shape_.n_heads / cache.n_rows(), group = cache.n_rows() / shape_.n_kv_heads;
        const int64_t key = (int64_t{shape_.n_heads} + r / group) * d();
        return {queries, int64_t{r} * queries * d(), key, key + int64_t{shape_.n_kv_heads} * d()};
    }

    /// Appends tokens to a row and returns the first one's position, or its place in the row if the cache renumbers.
    int64_t append(int layer, size_t s, int64_t first, int64_t n, int r, BatchedAttention& side,
                   BatchedAttention::Work& work) {
        auto& cache = *sequences_[s].cache;
        const RowColumns columns = columns_of(cache, r);
        const int64_t row = first_row_[s] + first, position = sequences_[s].position + first;
        const size_t stride = static_cast<size_t>(side.qkv.size(1)) * element();
        RunCache::Tokens tokens{.n = n,
                                .keys = at(side.qkv, row, columns.key),
                                .key_stride = stride,
                                .values = at(side.qkv, row, columns.value),
                                .value_stride = stride,
                                .position = position};
        if (!cache.renumbers()) {
            cache.append(layer, r, tokens, work.appended);
            return position;
        }
        const int64_t place = cache.n_entries(layer, r);
        const auto& rotation = side.rotation_to(place, n);
        const size_t entry = static_cast<size_t>(d()) * element();
        const at::Tensor& keys = work.tensors.emplace_back(at::empty({n, d()}, side.qkv.options()));
        const kernels::RowCopy copies[] = {{.from = at(side.plain, row, columns.key),
                                            .from_stride = stride,
                                            .to = keys.data_ptr(),
                                            .to_stride = entry,
                                            .n_rows = n,
                                            .row_bytes = entry},
                                           {.from = at(side.plain, row, columns.query),
                                            .from_stride = stride,
                                            .to = at(side.qkv, row, columns.query),
                                            .to_stride = stride,
                                            .n_rows = n,
                                            .row_bytes = entry * static_cast<size_t>(columns.queries)}};
        side.model->backend().copy_rows(copies);
        side.rotate(keys.data_ptr(), 1, d(), rotation);
        side.rotate(at(side.qkv, row, columns.query), columns.queries, side.qkv.size(1), rotation);
        tokens.keys = keys.data_ptr();
        tokens.key_stride = entry;
        cache.append(layer, r, tokens, work.appended);
        return place;
    }

    void step(int layer, size_t s, int64_t t, BatchedAttention& side, BatchedAttention::Work& work) {
        auto& cache = *sequences_[s].cache;
        const int64_t window = model_.config().sliding_window[static_cast<size_t>(layer)];
        const int64_t row = first_row_[s] + t;
        for (int r = 0; r < cache.n_rows(); ++r) {
            const RowColumns columns = columns_of(cache, r);
            const int64_t position = append(layer, s, t, 1, r, side, work);
            const auto view = cache.view(layer, r, cache.n_plain(layer, r), position, window, work.scratch);
            const auto attend_with = [&](const void* q, void* found, float* weights) {
                const bool continues =
                    side.queue(cache.stored_view(layer, r, position, window), q, columns.queries, found, work);
                side.queue(view, q, columns.queries, found, weights, work, continues);
            };
            attend_with(at(side.qkv, row, columns.query), at(side.out, row, columns.query),
                        is_observed(s) ? observe(side, view, columns.queries) : nullptr);
            if (!options_.compare) continue;
            auto& comparison =
                side.begin_comparison(*options_.compare, layer, s, options_.reference_first + t, 1, columns, position);
            attend_with(comparison.queries.data_ptr(), comparison.found.data_ptr(), nullptr);
        }
    }

    void read_behind_parts(int layer, size_t s, BatchedAttention& side) {
        for (int64_t t = 0; t < n_tokens(s); ++t) {
            BatchedAttention::Work work;
            step(layer, s, t, side, work);
            side.attend(work);
        }
    }

    void read_block(int layer, size_t s, BatchedAttention& side) {
        auto& cache = *sequences_[s].cache;
        BatchedAttention::Work& work = side.work;
        const int64_t window = model_.config().sliding_window[static_cast<size_t>(layer)];
        const int64_t row = first_row_[s], n = n_tokens(s);
        for (int r = 0; r < cache.n_rows(); ++r) {
            const RowColumns columns = columns_of(cache, r);
            const int64_t before = cache.n_plain(layer, r);
            const int64_t position = append(layer, s, 0, n, r, side, work);
            const auto view = cache.view(layer, r, before + n, position, 0, work.scratch);
            kernels::PrefillAttention block{.dtype = model_.dtype(),
                                            .n_heads = columns.queries,
                                            .n_kv_heads = 1,
                                            .head_dim = shape_.head_dim,
                                            .scale = model_.attention_scale(),
                                            .q_begin = before,
                                            .n_queries = n,
                                            .q = at(side.qkv, row, columns.query),
                                            .q_token_stride = side.qkv.size(1),
                                            .k = view.keys,
                                            .v = view.values,
                                            .kv_head_stride = (before + n) * d(),
                                            .out = at(side.out, row, columns.query),
                                            .out_token_stride = side.out.size(1)};
            if (window > 0 && cache.renumbers()) {
                block.sliding_window = window;
            } else if (window > 0) {
                std::vector<int64_t> first_keys;
                for (int64_t t = 0; t < n; ++t)
                    first_keys.push_back(cache.first_visible(layer, r, before + t + 1, position + t, window));
                block.first_keys = work.first_keys.emplace_back(std::move(first_keys)).data();
            }
            work.blocks.push_back(block);
            if (is_observed(s)) {
                const int64_t hidden = block.first_keys ? block.first_keys[0]
                                       : window > 0     ? std::max<int64_t>(position - window + 1, 0)
                                                        : 0;
                observe_block(view, hidden, block, columns, side);
            }
            if (!options_.compare) continue;
            auto& comparison =
                side.begin_comparison(*options_.compare, layer, s, options_.reference_first, n, columns, position);
            block.q = comparison.queries.data_ptr();
            block.out = comparison.found.data_ptr();
            block.q_token_stride = comparison.queries.stride(0);
            block.out_token_stride = comparison.found.stride(0);
            work.blocks.push_back(block);
        }
    }

    /// Computes a token's attention weights, which the block's attention does not return.
    void observe_block(const RunCache::RowView& whole, int64_t hidden, const kernels::PrefillAttention& block,
                       const RowColumns& columns, BatchedAttention& side) {
        RunCache::RowView view = whole;
        view.first = hidden;
        const size_t skipped = static_cast<size_t>(view.first * d()) * element();
        view.keys = static_cast<const char*>(view.keys) + skipped;
        view.values = static_cast<const char*>(view.values) + skipped;
        view.n_entries -= view.first;
        auto& unused = side.work.tensors.emplace_back(at::empty({columns.queries * d()}, side.qkv.options()));
        side.queue(view, block.q, columns.queries, unused.data_ptr(), observe(side, view, columns.queries), side.work);
    }

    float* observe(const BatchedAttention& side, const RunCache::RowView& view, int queries) {
        auto& observed = observed_.emplace_back();
        observed.first = view.first;
        observed.n_visible = view.n_entries;
        if (!side.model->device().is_processor()) {
            observed.there = at::empty({queries, view.n_entries}, side.qkv.options().dtype(at::kFloat));
            return observed.there.data_ptr<float>();
        }
        observed.attention.resize(static_cast<size_t>(queries * view.n_entries));
        return observed.attention.data();
    }

    bool is_observed(size_t s) const {
        return sequences_[s].acting_as<policies::EvictsWhileDecoding>() ||
               std::holds_alternative<StepObserver>(sequences_[s].acting);
    }

    void act(int layer) {
        size_t next = 0;
        for (size_t s = 0; s < sequences_.size(); ++s) {
            const Sequence& sequence = sequences_[s];
            if (!sequence.acts() || sequence.failed()) continue;
            if (is_observed(s)) evict(layer, s, next);
            if (auto* storing = sequence.acting_as<policies::StoresWhileDecoding>()) store(layer, s, *storing);
            if (auto* merging = sequence.acting_as<policies::ReadsThroughOwnCache>())
                attempt(layer, s, [&] {
                    const BatchedAttention& side = side_of(s);
                    merge_decoded(*side.model, layer, at(side.qkv, first_row_[s], 0), *merging, sequence.run,
                                  sequence.position - sequence.step, *sequence.cache);
                });
        }
    }

    void evict(int layer, size_t s, size_t& next) {
        auto& sequence = sequences_[s];
        auto& cache = *sequence.cache;
        const int queries = shape_.n_heads / cache.n_rows();
        policies::StepObservations observations;
        observations.layer = layer;
        observations.step = sequence.step;
        observations.position = sequence.position;
        for (int r = 0; r < cache.n_rows(); ++r) {
            auto& observed = observed_[next++];
            observed.show(queries);
            observations.rows.push_back({cache.positions(layer, r), observed.attention, queries});
        }
        attempt(layer, s, [&] {
            if (const auto* observer = std::get_if<StepObserver>(&sequence.acting)) return (*observer)(observations);
            const auto evictions = sequence.acting_as<policies::EvictsWhileDecoding>()->step(observations);
            policies::require_valid_evictions(sequence.run, observations, evictions);
            for (size_t r = 0; r < evictions.size(); ++r) cache.erase(layer, static_cast<int>(r), evictions[r]);
        });
    }

    void store(int layer, size_t s, policies::StoresWhileDecoding& storing) {
        auto& sequence = sequences_[s];
        attempt(layer, s, [&] {
            const auto whole = storing.whole_tokens(layer);
            if (!whole) return;
            if (sequence.switching.is_full_at(sequence.step)) return sequence.cache->make_whole(layer);
            sequence.cache->store_others(layer, *whole, sequence.position + 1,
                                         [&](const policies::ReducedTokens& tokens) { return storing.store(tokens); });
        });
    }

    const Transformer& model_;
    std::span<Sequence> sequences_;
    const FeedOptions& options_;
    policies::ModelShape shape_;
    std::vector<int64_t> first_row_;
    at::Tensor residual_;
    Transformer::Rotation rotation_;
    BatchedAttention side_;   // for caches on the model's device
    BatchedAttention apart_;  // for caches on the processor while the model is on another device
    bool any_apart_ = false;
    std::deque<Observed> observed_;
};

}  // namespace

AfterAttention after_attention_of(const policies::CreatedPolicy& policy) {
    if (auto* evicting = policy.as<policies::EvictsWhileDecoding>()) return evicting;
    if (auto* storing = policy.as<policies::StoresWhileDecoding>(); storing && storing->stores_while_decoding())
        return storing;
    if (auto* merging = policy.as<policies::ReadsThroughOwnCache>(); merging && merging->decode_merging().every > 0)
        return merging;
    return {};
}

policies::StorageSwitching switching_of(const AfterAttention& acting) {
    const auto* storing = std::get_if<policies::StoresWhileDecoding*>(&acting);
    return storing ? (*storing)->switching() : policies::StorageSwitching();
}

at::Tensor feed_tokens(const Transformer& model, std::span<Sequence> sequences,
                       std::span<const std::span<const int32_t>> tokens, const FeedOptions& options) {
    return Feed(model, sequences, tokens, options).run();
}

at::Tensor read_given_tokens(const Transformer& model, std::span<Sequence> sequences,
                             std::span<const std::span<const int32_t>> tokens, Progress& progress) {
    at::Tensor last = at::zeros({static_cast<int64_t>(sequences.size()), model.config().hidden_size},
                                model.options().dtype(at::kFloat));
    int64_t total = 0, done = 0;
    for (const auto& of_one : tokens) total += static_cast<int64_t>(of_one.size());
    progress.begin("question", total, fmt::format("tokens of {}", counted(std::ssize(sequences), "run")));
    std::vector<size_t> n_read(sequences.size());
    for (;;) {
        progress.throw_if_stopped();
        std::vector<size_t> members;
        for (size_t s = 0; s < sequences.size(); ++s)
            if (!sequences[s].failed() && n_read[s] < tokens[s].size()) members.push_back(s);
        if (members.empty()) return last;
        const bool any_parts =
            std::any_of(members.begin(), members.end(), [&](size_t s) { return stores_parts(*sequences[s].cache); });
        const auto most = std::min(any_parts ? rows_appended_after_parts : rows_given,
                                   static_cast<size_t>(model.backend().rows_alike()));
        const size_t together = std::max<size_t>(1, most / members.size());
        std::vector<Sequence> batch;
        std::vector<std::span<const int32_t>> blocks;
        for (const size_t s : members) {
            batch.push_back(sequences[s]);
            blocks.push_back(tokens[s].subspan(n_read[s], std::min(together, tokens[s].size() - n_read[s])));
        }
        const at::Tensor residual = feed_tokens(model, batch, blocks, {.given = true, .errors = {}});
        int64_t row = 0;
        for (size_t i = 0; i < members.size(); ++i) {
            const size_t s = members[i];
            row += static_cast<int64_t>(blocks[i].size());
            n_read[s] += blocks[i].size();
            done += static_cast<int64_t>(blocks[i].size());
            sequences[s] = batch[i];
            last.narrow(0, static_cast<int64_t>(s), 1).copy_(residual.narrow(0, row - 1, 1));
        }
        progress.advance(done);
    }
}

}  // namespace kvscope::engine
