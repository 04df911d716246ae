#include "engine/prefill/chunked_reading.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "engine/common/engine_error.h"
#include "engine/common/stopwatch.h"
#include "engine/device/catch_single_run_failure.h"
#include "engine/device/tensor_functions.h"
#include "engine/prefill/key_gradients.h"
#include "policies/registry/validation.h"

namespace kvscope::engine {
namespace {

std::vector<int64_t> places_of(const MergedLayer& layer, int64_t n) {
    std::vector<int64_t> places = layer.places();
    places.resize(static_cast<size_t>(n));
    return places;
}

/// Consecutive tokens that a run reads together. The first pass (look) attends to the cached entries. The entries are
/// then merged, and the second pass (read) appends the chunk.
struct Chunk {
    ChunkedRun* run = nullptr;
    int64_t first = 0;
    int64_t n = 0;
    bool is_last = false;  ///< whether this is the prompt's last chunk

    bool by_gradients = false;
    bool keeps_reads = false;
    std::vector<at::Tensor> looks{};      ///< (L + 1) residual streams of the first pass
    std::vector<at::Tensor> reads{};      ///< (L + 1) residual streams of the second pass
    std::vector<at::Tensor> gradients{};  ///< (L) gradients with respect to the keys of the next merge

    MergedLayer& layer(int layer) const { return run->layers[static_cast<size_t>(layer)]; }
    bool failed() const { return !run->error.empty(); }

    /// Whether the cache exceeds the budget, so that entries are merged before the chunk is appended.
    bool looks_first() const { return layer(0).size() > run->budget; }

    HeldEntries held(int index, int64_t n_own) const {
        const MergedLayer& entries = layer(index);
        const int64_t before = entries.size() - n_own;
        return {entries.entries.keys.narrow(1, 0, before),
                entries.entries.values.narrow(1, 0, before),
                {entries.masses.begin(), entries.masses.begin() + before},
                {entries.positions.begin(), entries.positions.begin() + before},
                places_of(entries, before)};
    }
};

/// Computes the loss's gradient with respect to cached keys and, after the second pass, the chunk's own keys.
void differentiate(const Transformer& model, std::span<const int32_t> ids, Chunk& chunk, bool was_read,
                   const Progress& progress) {
    ChunkRead read{.ids = ids.subspan(static_cast<size_t>(chunk.first), static_cast<size_t>(chunk.n)),
                   .first = chunk.first,
                   .residuals = was_read ? chunk.reads : chunk.looks,
                   .by_own_keys = was_read};
    for (int layer = 0; layer < model.shape().n_layers; ++layer)
        read.held.push_back(chunk.held(layer, was_read ? chunk.n : 0));
    const std::string error = catch_single_run_failure([&] { chunk.gradients = key_gradients(model, read, progress); });
    if (!error.empty()) chunk.run->error = "the gradient of its loss: " + error;
}

/// Base class of both passes. Each row of the activations is a token of a chunk.
class ChunkReader {
 protected:
    explicit ChunkReader(const Transformer& model) : model_(model), shape_(model.shape()) {}

    struct Attended {
        const Chunk* chunk = nullptr;
        int64_t row = 0, n = 0;
        int64_t n_after = 0;
        at::Tensor keys = {};  ///< after RoPE
        std::vector<float> masses = {};
        std::vector<int64_t> first_keys = {};
        std::vector<double> sums = {};  ///< (H, number of keys) sums of attention weights; empty if not needed
    };

    int64_t add_row(const Chunk& chunk, std::span<const int32_t> ids) {
        const auto row = static_cast<int64_t>(rows_.size());
        for (int64_t i = 0; i < chunk.n; ++i) {
            rows_.push_back(ids[static_cast<size_t>(chunk.first + i)]);
            positions_.push_back(chunk.first + i);
        }
        return row;
    }

    void embed_rows() {
        residual_ = model_.embed(rows_);
        rotation_ = model_.rotation(positions_);
    }

    at::Tensor room_for_outputs(const at::Tensor& qkv) const {
        return at::zeros({qkv.size(0), int64_t{shape_.n_heads} * shape_.head_dim}, qkv.options());
    }

    void prepare(Attended& attended, int layer, bool with_sums) const {
        const Chunk& chunk = *attended.chunk;
        const MergedLayer& entries = chunk.layer(layer);
        std::vector<int64_t> places = entries.places(), tokens(entries.positions.begin(), entries.positions.end());
        for (int64_t i = chunk.n - attended.n_after; i < chunk.n; ++i) {
            places.push_back(chunk.first + i);
            tokens.push_back(chunk.first + i);
        }
        attended.keys = entries.rotated(model_, places);
        attended.masses = entries.masses;
        attended.masses.resize(places.size(), 1.0f);
        attended.first_keys =
            first_visible_entries(tokens, attended.n, model_.config().sliding_window[static_cast<size_t>(layer)]);
        attended.sums.assign(with_sums ? static_cast<size_t>(shape_.n_heads) * places.size() : 0, 0.0);
    }

    void attend(std::deque<Attended>& all, int layer, const at::Tensor& qkv, at::Tensor& out) const {
        std::vector<AttentionRead> reads;
        for (Attended& attended : all)
            reads.push_back({.shape = shape_,
                             .scale = model_.attention_scale(),
                             .queries = qkv.narrow(0, attended.row, attended.n),
                             .keys = attended.keys,
                             .values = attended.chunk->layer(layer).entries.values,
                             .masses = attended.masses,
                             .first_keys = attended.first_keys,
                             .out = out.narrow(0, attended.row, attended.n),
                             .column_sums = attended.sums});
        model_.operations().attend(reads);
    }

    void take(const Chunk& chunk, int64_t row, at::Tensor& qkv, MergedLayer& layer) const {
        at::Tensor rows = qkv.narrow(0, row, chunk.n);
        layer.entries.write(shape_, rows, layer.size());
        model_.rotate(rows, {rotation_.cosines.narrow(0, row, chunk.n), rotation_.sines.narrow(0, row, chunk.n)});
    }

    const Transformer& model_;
    policies::ModelShape shape_;
    std::vector<int32_t> rows_;
    std::vector<int64_t> positions_;
    at::Tensor residual_;
    Transformer::Rotation rotation_;
};

/// Computes chunks through all layers without changing the caches, to get their losses.
class ChunkAttentionPass : ChunkReader {
 public:
    ChunkAttentionPass(const Transformer& model, std::span<const int32_t> ids, std::vector<Chunk*> chunks)
        : ChunkReader(model), chunks_(std::move(chunks)) {
        for (const Chunk* chunk : chunks_) first_rows_.push_back(add_row(*chunk, ids));
        embed_rows();
    }

    void run_layer(int layer) {
        keep();
        at::Tensor qkv = model_.project(layer, residual_);
        at::Tensor out = room_for_outputs(qkv);
        std::deque<Attended> all;
        for (size_t i = 0; i < chunks_.size(); ++i) {
            const Chunk& chunk = *chunks_[i];
            take(chunk, first_rows_[i], qkv, chunk.layer(layer));
            all.push_back({.chunk = &chunk, .row = first_rows_[i], .n = chunk.n, .n_after = chunk.n});
            prepare(all.back(), layer, false);
        }
        attend(all, layer, qkv, out);
        model_.finish_layer(layer, out, residual_);
    }

    void keep() {
        for (size_t i = 0; i < chunks_.size(); ++i)
            chunks_[i]->looks.push_back(residual_.narrow(0, first_rows_[i], chunks_[i]->n).clone());
    }

 private:
    std::vector<Chunk*> chunks_;
    std::vector<int64_t> first_rows_;
};

class ChunkPass : ChunkReader {
 public:
    ChunkPass(const Transformer& model, std::span<const int32_t> ids, std::vector<Chunk>& chunks)
        : ChunkReader(model), ids_(ids), chunks_(chunks), look_rows_(chunks.size(), -1), read_rows_(chunks.size(), -1) {
        for (size_t i = 0; i < chunks_.size(); ++i) {
            if (chunks_[i].looks_first() && chunks_[i].looks.empty()) look_rows_[i] = add_row(chunks_[i], ids);
            read_rows_[i] = add_row(chunks_[i], ids);
        }
        n_carried_ = static_cast<int64_t>(rows_.size());
        for (size_t i = 0; i < chunks_.size(); ++i)
            if (!chunks_[i].looks.empty()) look_rows_[i] = add_row(chunks_[i], ids);
        embed_rows();
    }

    void run_layer(int layer) {
        for (size_t i = 0; i < chunks_.size(); ++i) {
            Chunk& chunk = chunks_[i];
            if (!chunk.looks.empty())
                residual_.narrow(0, look_rows_[i], chunk.n).copy_(chunk.looks[static_cast<size_t>(layer)]);
            if (chunk.keeps_reads) keep_read(i);
        }
        at::Tensor qkv = model_.project(layer, residual_);
        at::Tensor out = room_for_outputs(qkv);
        look(layer, qkv, out);
        read(layer, qkv, out);
        for (size_t i = 0; i < chunks_.size(); ++i)
            if (!chunks_[i].by_gradients) merge_after_prompt(i, layer, qkv.narrow(0, last_row(i), 1));
        at::Tensor carried = residual_.narrow(0, 0, n_carried_);
        model_.finish_layer(layer, out.narrow(0, 0, n_carried_), carried);
    }

    void finish(Progress& progress) {
        for (size_t i = 0; i < chunks_.size(); ++i) {
            Chunk& chunk = chunks_[i];
            if (!chunk.is_last || chunk.failed()) continue;
            const at::Tensor logits = model_.logits(residual_.narrow(0, last_row(i), 1));
            const float* data = logits.const_data_ptr<float>();
            chunk.run->last_logits.assign(data, data + logits.numel());
            if (chunk.keeps_reads) merge_by_gradients(i, progress);
        }
    }

 private:
    int64_t last_row(size_t chunk) const { return read_rows_[chunk] + chunks_[chunk].n - 1; }

    void keep_read(size_t chunk) {
        chunks_[chunk].reads.push_back(residual_.narrow(0, read_rows_[chunk], chunks_[chunk].n).clone());
    }

    void look(int layer, at::Tensor& qkv, at::Tensor& out) {
        std::deque<Attended> all;
        for (size_t i = 0; i < chunks_.size(); ++i) {
            const Chunk& chunk = chunks_[i];
            if (look_rows_[i] < 0 || chunk.failed()) continue;
            take(chunk, look_rows_[i], qkv, chunk.layer(layer));
            Attended& attended =
                all.emplace_back(Attended{.chunk = &chunk, .row = look_rows_[i], .n = chunk.n, .n_after = chunk.n});
            prepare(attended, layer, true);
        }
        attend(all, layer, qkv, out);
        for (Attended& attended : all) merge_back(attended, layer, qkv, out);
    }

    void read(int layer, at::Tensor& qkv, at::Tensor& out) {
        std::deque<Attended> all;
        for (size_t i = 0; i < chunks_.size(); ++i) {
            const Chunk& chunk = chunks_[i];
            if (chunk.failed()) continue;
            MergedLayer& entries = chunk.layer(layer);
            take(chunk, read_rows_[i], qkv, entries);
            entries.append(chunk.first, chunk.n);
            Attended& attended = all.emplace_back(Attended{.chunk = &chunk, .row = read_rows_[i], .n = chunk.n});
            prepare(attended, layer, false);
        }
        attend(all, layer, qkv, out);
    }

    void merge_after_prompt(size_t index, int layer, const at::Tensor& query) {
        const Chunk& chunk = chunks_[index];
        if (!chunk.is_last || !chunk.run->reading.final_merge || chunk.failed()) return;
        if (chunk.layer(layer).size() <= chunk.run->budget) return;
        std::deque<Attended> last;
        last.emplace_back(Attended{.chunk = &chunk, .row = 0, .n = 1});
        prepare(last[0], layer, true);
        at::Tensor unused = room_for_outputs(query);
        attend(last, layer, query, unused);
        merge_back(last[0], layer, query, unused);
    }

    /// Computes the gradients of the last chunk, then merges once more.
    void merge_by_gradients(size_t index, Progress& progress) {
        Chunk& chunk = chunks_[index];
        keep_read(index);
        chunk.looks.clear();
        differentiate(model_, ids_, chunk, true, progress);
        for (int layer = 0; layer < shape_.n_layers && !chunk.failed(); ++layer) {
            const int64_t row = last_row(index);
            const at::Tensor& residual = chunk.reads[static_cast<size_t>(layer)];
            at::Tensor query = model_.project(layer, residual.narrow(0, chunk.n - 1, 1));
            model_.rotate(query, {rotation_.cosines.narrow(0, row, 1), rotation_.sines.narrow(0, row, 1)});
            merge_after_prompt(index, layer, query);
        }
    }

    void merge_back(Attended& attended, int layer, const at::Tensor& qkv, const at::Tensor& out) const {
        ChunkedRun& run = *attended.chunk->run;
        MergedLayer& entries = attended.chunk->layer(layer);
        const std::string error = catch_single_run_failure([&] {
            std::span<const float> gradients;
            if (!attended.chunk->gradients.empty()) {
                const at::Tensor& given = attended.chunk->gradients[static_cast<size_t>(layer)];
                gradients = {given.const_data_ptr<float>(), static_cast<size_t>(given.numel())};
            }
            merge_once(attended, layer, out, gradients);
            std::deque<Attended> again;
            at::Tensor other;
            while (entries.size() > run.budget) {
                if (!other.defined()) other = at::zeros_like(out);
                again.clear();
                again.emplace_back(Attended{
                    .chunk = attended.chunk, .row = attended.row, .n = attended.n, .n_after = attended.n_after});
                prepare(again[0], layer, true);
                attend(again, layer, qkv, other);
                merge_once(again[0], layer, other, {});
            }
        });
        if (!error.empty()) run.error = "layer " + std::to_string(layer) + ": " + error;
    }

    void merge_once(const Attended& attended, int layer, const at::Tensor& out,
                    std::span<const float> gradients) const {
        ChunkedRun& run = *attended.chunk->run;
        MergedLayer& entries = attended.chunk->layer(layer);
        const auto n = static_cast<size_t>(entries.size()), n_keys = attended.masses.size();
        const auto heads = static_cast<size_t>(shape_.n_heads);
        std::vector<float> attention(heads * n);
        for (size_t h = 0; h < heads; ++h)
            for (size_t i = 0; i < n; ++i)
                attention[h * n + i] =
                    static_cast<float>(attended.sums[h * n_keys + i] / static_cast<double>(attended.n));
        const at::Tensor mean = out.narrow(0, attended.row, attended.n).to(at::kFloat).mean(0).contiguous();
        policies::MergeObservations observations;
        observations.layer = layer;
        observations.shape = shape_;
        observations.n_entries = entries.size();
        observations.keys = entries.entries.keys_view();
        observations.values = entries.entries.values_view();
        observations.masses = entries.masses;
        observations.n_queries = attended.n;
        observations.attention = attention;
        observations.outputs = {mean.const_data_ptr<float>(), static_cast<size_t>(mean.numel())};
        observations.n_chunks = attended.chunk->first / run.reading.chunk;
        observations.after_prompt = attended.n_after == 0;
        observations.key_gradients = gradients;
        const int64_t n_merges = entries.size() - run.budget;
        const Stopwatch watch;
        const policies::Merges merges = run.policy->merge(observations, n_merges);
        policies::require_valid_merges(run.label, observations, n_merges, merges);
        entries.merge(merges, attended.n_after);
        entries.n_keys += merges.first.size() * static_cast<size_t>(shape_.n_kv_heads);
        entries.n_outside += static_cast<uint64_t>(merges.n_outside);
        run.merge_seconds += watch.seconds();
    }

    std::span<const int32_t> ids_;
    std::vector<Chunk>& chunks_;
    std::vector<int64_t> look_rows_;  // -1 if the cache is within its budget
    std::vector<int64_t> read_rows_;
    int64_t n_carried_ = 0;  // rows to compute; later rows have stored residual streams
};

void allocate(const Transformer& model, int64_t n_tokens, ChunkedRun& run) {
    const int64_t capacity = std::min(n_tokens, run.budget + run.reading.chunk) + std::min(n_tokens, run.reading.chunk);
    for (int layer = 0; layer < model.shape().n_layers; ++layer)
        run.layers.push_back({.entries = DenseLayer::allocate(model.shape(), capacity, model.scalar_type())});
    if (!run.measure_error) return;
    const auto n = static_cast<size_t>(model.shape().n_kv_heads * capacity);
    for (MergedLayer& layer : run.layers)
        layer.from = {at::zeros(layer.entries.keys.sizes(), at::kFloat), std::vector<double>(n),
                      std::vector<double>(n)};
}

std::vector<Chunk> next_chunks(std::span<ChunkedRun> runs, std::vector<int64_t>& read, int64_t n_tokens) {
    std::vector<Chunk> chunks;
    for (size_t i = 0; i < runs.size(); ++i) {
        if (!runs[i].error.empty() || read[i] == n_tokens) continue;
        Chunk& chunk = chunks.emplace_back(
            Chunk{.run = &runs[i], .first = read[i], .n = std::min(runs[i].reading.chunk, n_tokens - read[i])});
        read[i] += chunk.n;
        chunk.is_last = read[i] == n_tokens;
        chunk.by_gradients = runs[i].reading.key_gradients;
        chunk.keeps_reads = chunk.by_gradients && chunk.is_last && runs[i].reading.final_merge &&
                            chunk.layer(0).size() + chunk.n > runs[i].budget;
    }
    return chunks;
}

/// Runs the first pass of chunks whose policies merge by gradients, before any merge.
void look_by_gradients(const Transformer& model, std::span<const int32_t> ids, std::vector<Chunk>& chunks,
                       const Progress& progress) {
    std::vector<Chunk*> looking;
    for (Chunk& chunk : chunks)
        if (chunk.by_gradients && chunk.looks_first()) looking.push_back(&chunk);
    if (looking.empty()) return;
    ChunkAttentionPass pass(model, ids, looking);
    for (int layer = 0; layer < model.shape().n_layers; ++layer) {
        progress.throw_if_stopped();
        pass.run_layer(layer);
    }
    pass.keep();
    for (Chunk* chunk : looking) differentiate(model, ids, *chunk, false, progress);
}

}  // namespace

void read_in_chunks(const Transformer& given, std::span<const int32_t> ids, std::span<ChunkedRun> runs,
                    Progress& progress) {
    const Transformer& model = given.on_processor();
    const auto n = static_cast<int64_t>(ids.size());
    if (n == 0) throw UsageError("the prompt is empty: write at least one token");
    if (n > model.config().context_length)
        throw UsageError("the prompt has " + std::to_string(n) + " tokens, but the model's context is only " +
                         std::to_string(model.config().context_length) + ": shorten the prompt");
    int64_t n_passes = 0;
    for (ChunkedRun& run : runs) {
        allocate(model, n, run);
        n_passes = std::max(n_passes, (n + run.reading.chunk - 1) / run.reading.chunk);
    }
    progress.begin("prefill in chunks", n_passes * model.shape().n_layers, "layers × chunks");
    std::vector<int64_t> read(runs.size(), 0);
    int64_t steps = 0;
    for (auto chunks = next_chunks(runs, read, n); !chunks.empty(); chunks = next_chunks(runs, read, n)) {
        look_by_gradients(model, ids, chunks, progress);
        ChunkPass pass(model, ids, chunks);
        for (int layer = 0; layer < model.shape().n_layers; ++layer) {
            progress.throw_if_stopped();
            pass.run_layer(layer);
            progress.advance(++steps);
        }
        pass.finish(progress);
    }
}

}  // namespace kvscope::engine
