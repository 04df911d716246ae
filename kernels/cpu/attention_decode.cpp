#include "kernels/attention_decode.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/cpu/levels/level_kernels.h"
#include "kernels/cpu/workspace.h"
#include "kernels/threads/team.h"

namespace kvscope::kernels {

namespace {

int key_dim_of(const DecodeRow& row, int head_dim) { return row.key_dim ? row.key_dim : head_dim; }

void check(std::span<const DecodeRow> rows, size_t i, int head_dim) {
    const DecodeRow& row = rows[i];
    const int key_dim = key_dim_of(row, head_dim);
    const auto require = [](bool condition, const std::string& what) {
        if (!condition) throw std::invalid_argument("attention_decode: " + what);
    };
    require(row.q && (row.continues || row.out), "q or out of a row is null");
    require(row.entries ? !row.k && !row.v : row.k && row.v, "a row needs either keys and values, or entries");
    require(row.n_queries > 0, "a row has no queries");
    require(row.n_entries > 0, "a row has no entries");
    require(key_dim > 0, "a row's keys have no channels");
    require(row.entries || (row.k_stride >= key_dim && row.v_stride >= head_dim),
            "the stride between entries is smaller than an entry");
    require(row.n_queries == 1 || (row.q_stride >= key_dim && (row.continues || row.out_stride >= head_dim)),
            "the stride between queries is smaller than a query");
    require(!row.continues || (i > 0 && rows[i - 1].n_queries == row.n_queries),
            "a row continues no other row, or a row with another number of queries");
}

int64_t segment_length(const DecodeRow& row) { return row.entries ? decode_tile : segment_entries; }

int64_t n_segments(const DecodeRow& row) { return (row.n_entries + segment_length(row) - 1) / segment_length(row); }

/// Results of a row's segments: `largest`, `total` (segments, n_queries), `values` (segments, n_queries, d).
struct Partials {
    std::span<const DecodeRow> rows;
    int64_t n_segments;
    float* largest;
    float* total;
    float* values;
};

void scale_attention(const DecodeRow& row, int query, int64_t s, float factor) {
    if (row.attention == nullptr) return;
    float* weights = row.attention + query * (row.attention_stride ? row.attention_stride : row.n_entries);
    const int64_t length = segment_length(row), end = std::min(row.n_entries, (s + 1) * length);
    for (int64_t j = s * length; j < end; ++j) weights[j] *= factor;
}

/// Joins the segments in a fixed order, so that the result does not depend on the number of threads.
template <class T>
void finish_row(const Partials& partials, int head_dim) {
    const DecodeRow& row = partials.rows.front();
    for (int query = 0; query < row.n_queries; ++query) {
        const auto at = [&](const float* data, int64_t segment) { return data[segment * row.n_queries + query]; };
        float largest = at(partials.largest, 0);
        for (int64_t s = 1; s < partials.n_segments; ++s) largest = std::max(largest, at(partials.largest, s));
        float total = 0;
        for (int64_t s = 0; s < partials.n_segments; ++s)
            total += at(partials.total, s) * std::exp2(at(partials.largest, s) - largest);
        T* out = static_cast<T*>(row.out) + query * row.out_stride;
        float* sum = partials.values + int64_t{query} * head_dim;
        int64_t s = 0;
        for (const DecodeRow& part : partials.rows) {
            for (int64_t of_part = 0; of_part < n_segments(part); ++of_part, ++s) {
                const float factor = std::exp2(at(partials.largest, s) - largest) / total;
                const float* values = partials.values + (s * row.n_queries + query) * head_dim;
                for (int c = 0; c < head_dim; ++c) sum[c] = s == 0 ? values[c] * factor : sum[c] + values[c] * factor;
                scale_attention(part, query, of_part, factor);
            }
        }
        for (int c = 0; c < head_dim; ++c) out[c] = from_float<T>(sum[c]);
    }
}

size_t tile_floats(const DecodeRow& row, int head_dim) {
    if (!row.entries) return 0;
    const int64_t key_dim = key_dim_of(row, head_dim);
    return static_cast<size_t>((decode_tile + row.n_queries) * key_dim + row.n_queries * decode_tile) +
           row.entries->scratch_floats(row.n_queries);
}

/// Computes attention over entries that were rebuilt in f32, for any type of the queries.
void attend_tile(const DecodeSegment& segment, int head_dim, DType dtype, float scale, float* keys) {
    const DecodeRow& row = *segment.row;
    const int key_dim = key_dim_of(row, head_dim);
    const int64_t count = segment.end - segment.begin;
    float* queries = keys + decode_tile * key_dim;
    float* weights = queries + row.n_queries * key_dim;
    row.entries->read_keys(segment.begin, segment.end, keys);
    for (int64_t query = 0; query < row.n_queries; ++query)
        for (int c = 0; c < key_dim; ++c)
            queries[query * key_dim + c] = dtype == DType::f32
                                               ? static_cast<const float*>(row.q)[query * row.q_stride + c]
                                               : to_float(static_cast<const bf16*>(row.q)[query * row.q_stride + c]);
    DecodeRow tile = row;
    tile.entries = nullptr;
    tile.q = queries;
    tile.k = tile.v = keys;  // the values are not used
    tile.q_stride = tile.k_stride = tile.v_stride = key_dim;
    if (row.cardinality) tile.cardinality += segment.begin;
    if (row.attention) tile.attention += segment.begin;
    tile.attention_stride = row.attention_stride ? row.attention_stride : row.n_entries;
    tile.n_entries = count;
    level_kernels().decode_segment({&tile, 0, count, segment.largest, segment.total, nullptr, weights}, head_dim,
                                   DType::f32, scale);
    row.entries->sum_values(segment.begin, segment.end, weights, row.n_queries, weights + row.n_queries * decode_tile,
                            segment.values);
}

}  // namespace

void attention_decode(std::span<const DecodeRow> rows, int head_dim, DType dtype, float scale) {
    if (dtype != DType::f32 && dtype != DType::bf16)
        throw std::invalid_argument(std::string("attention_decode: type is ") + name_of(dtype) +
                                    ", expected f32 or bf16");
    if (head_dim <= 0 || !(scale > 0))
        throw std::invalid_argument("attention_decode: head size and scale must be above 0");

    size_t n_floats = 0, of_tile = 0;
    int64_t n_entries = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
        check(rows, i, head_dim);
        of_tile = std::max(of_tile, tile_floats(rows[i], head_dim));
        n_floats += static_cast<size_t>(n_segments(rows[i]) * rows[i].n_queries * (head_dim + 2));
        n_entries += rows[i].n_entries;
    }
    if (rows.empty()) return;
    thread_local Workspace workspace;
    float* scratch = static_cast<float*>(workspace.reserve(n_floats * sizeof(float)));

    std::vector<Partials> partials;
    std::vector<DecodeSegment> segments;
    partials.reserve(rows.size());
    segments.reserve(static_cast<size_t>(n_entries / decode_tile) + rows.size());
    for (size_t i = 0; i < rows.size();) {
        size_t n_parts = 1;
        int64_t count = n_segments(rows[i]);
        for (; i + n_parts < rows.size() && rows[i + n_parts].continues; ++n_parts)
            count += n_segments(rows[i + n_parts]);
        const int64_t states = count * rows[i].n_queries;
        partials.push_back({rows.subspan(i, n_parts), count, scratch, scratch + states, scratch + 2 * states});
        int64_t at = 0;
        for (const DecodeRow& row : partials.back().rows) {
            for (int64_t begin = 0; begin < row.n_entries; begin += segment_length(row), ++at)
                segments.push_back({&row, begin, std::min(row.n_entries, begin + segment_length(row)),
                                    partials.back().largest + at * row.n_queries,
                                    partials.back().total + at * row.n_queries,
                                    partials.back().values + at * row.n_queries * head_dim});
        }
        scratch += states * (head_dim + 2);
        i += n_parts;
    }

    const auto kernel = level_kernels().decode_segment;
    const bool worth_threads = n_entries * head_dim > 1 << 14;
    // Allocates for all threads in advance, so that an exception reaches the caller.
    of_tile = (of_tile + 15) / 16 * 16;
    thread_local Workspace tile_workspace;
    const auto n_threads = worth_threads ? threads() : 1;
    float* const tiles =
        static_cast<float*>(tile_workspace.reserve(static_cast<size_t>(n_threads) * of_tile * sizeof(float)));
    std::atomic<size_t> unclaimed{0};
    run_on_thread_team(n_threads, [&](int member) {
        // Each thread claims its next segment early and prefetches its keys.
        for (size_t i = unclaimed.fetch_add(1); i < segments.size();) {
            const size_t next = unclaimed.fetch_add(1);
            if (next < segments.size()) segments[i].next = &segments[next];
            if (segments[i].row->entries)
                attend_tile(segments[i], head_dim, dtype, scale, tiles + static_cast<size_t>(member) * of_tile);
            else
                kernel(segments[i], head_dim, dtype, scale);
            i = next;
        }
    });
    over_parts(n_threads, static_cast<int64_t>(partials.size()), 4, [&](int64_t begin, int64_t end, int) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
            if (dtype == DType::f32)
                finish_row<float>(partials[i], head_dim);
            else
                finish_row<bf16>(partials[i], head_dim);
        }
    });
}

}  // namespace kvscope::kernels
