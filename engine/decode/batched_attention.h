#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "engine/cache/run_cache.h"
#include "engine/decode/decode.h"
#include "engine/model/transformer.h"
#include "kernels/backend.h"

namespace kvscope::engine {

/// Columns of a token's projections that belong to one row of a cache.
struct RowColumns {
    int queries;
    int64_t query, key, value;
};

/// Attention and comparisons of one layer, for the sequences whose caches are on one device.
struct BatchedAttention {
    struct Work {
        std::vector<kernels::RowCopy> appended;  ///< copied before the attention
        std::vector<kernels::DecodeRow> rows;
        std::vector<kernels::PrefillAttention> blocks;
        std::deque<std::vector<int64_t>> first_keys;
        std::deque<at::Tensor> tensors;
        std::deque<StoredEntries::Attended> stored;
        std::deque<std::vector<char>> queries;
        RunCache::Scratch scratch;
    };

    struct Comparison {
        size_t sequence = 0;
        int first_head = 0;
        at::Tensor expected, queries, found;
    };

    explicit BatchedAttention(const Transformer& on) : model(&on), shape(on.shape()) {}

    const Transformer* model;
    policies::ModelShape shape;
    at::Tensor qkv, out;
    at::Tensor plain;  ///< before RoPE, for caches that renumber and for records
    Work work;
    std::map<std::pair<int64_t, int64_t>, Transformer::Rotation> rotations, turns;
    std::vector<Comparison> comparisons;

    void begin(at::Tensor of_qkv, at::Tensor of_plain, at::Tensor of_out);

    [[nodiscard]] const Transformer::Rotation& rotation_to(int64_t first, int64_t n);
    /// Returns the rotation that moves n rotated vectors by `by` positions.
    [[nodiscard]] const Transformer::Rotation& turn_by(int64_t by, int64_t n);
    void rotate(void* data, int n_heads, int64_t token_stride, const Transformer::Rotation& by) const;

    void queue(const RunCache::RowView& view, const void* q, int queries, void* out_row, float* weights, Work& to,
               bool continues = false) const;
    [[nodiscard]] bool queue(std::vector<StoredEntries::Attended> stored, const void* q, int queries, void* out_row,
                             Work& to) const;
    void attend(Work& all) const;

    [[nodiscard]] Comparison& begin_comparison(const AttentionReference& reference, int layer, size_t sequence,
                                               int64_t token, int64_t n, const RowColumns& columns, int64_t position);
    void add_errors(int layer, std::span<OutputErrors> errors) const;

 private:
    [[nodiscard]] int64_t d() const { return shape.head_dim; }
    [[nodiscard]] const void* on_channels(const char* q, int queries, std::span<const uint16_t> channels,
                                          Work& to) const;
};

}  // namespace kvscope::engine
