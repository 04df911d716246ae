#include "kernels/attention_decode.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/cpu/level_kernels.h"
#include "kernels/cpu/workspace.h"

namespace kvscope::kernels {

namespace {

void check(const DecodeRow& row, int head_dim) {
    const auto require = [](bool condition, const std::string& what) {
        if (!condition) throw std::invalid_argument("attention_decode: " + what);
    };
    require(row.q && row.k && row.v && row.out, "q, k, v or out of a row is null");
    require(row.n_queries > 0, "a row has no queries");
    require(row.n_entries > 0, "a row has no entries");
    require(row.kv_stride >= head_dim, "the stride between entries is smaller than an entry");
    require(row.n_queries == 1 || (row.q_stride >= head_dim && row.out_stride >= head_dim),
            "the stride between queries is smaller than a query");
}

/// What a row's segments leave behind: (segments, n_queries) largest and total, (segments, n_queries, d) values.
struct Partials {
    const DecodeRow* row;
    int64_t n_segments;
    float* largest;
    float* total;
    float* values;
};

/// Joins a row's segments, always in the same order.
template <class T>
void finish_row(const Partials& partials, int head_dim) {
    const DecodeRow& row = *partials.row;
    for (int query = 0; query < row.n_queries; ++query) {
        const auto at = [&](const float* data, int64_t segment) { return data[segment * row.n_queries + query]; };
        float largest = at(partials.largest, 0);
        for (int64_t s = 1; s < partials.n_segments; ++s) largest = std::max(largest, at(partials.largest, s));
        float total = 0;
        for (int64_t s = 0; s < partials.n_segments; ++s)
            total += at(partials.total, s) * std::exp2(at(partials.largest, s) - largest);
        T* out = static_cast<T*>(row.out) + query * row.out_stride;
        float* sum = partials.values + int64_t{query} * head_dim;
        for (int64_t s = 0; s < partials.n_segments; ++s) {
            const float factor = std::exp2(at(partials.largest, s) - largest) / total;
            const float* values = partials.values + (s * row.n_queries + query) * head_dim;
            for (int c = 0; c < head_dim; ++c) sum[c] = s == 0 ? values[c] * factor : sum[c] + values[c] * factor;
            if (row.attention != nullptr) {
                float* weights = row.attention + query * row.n_entries;
                const int64_t end = std::min(row.n_entries, (s + 1) * kDecodeSegment);
                for (int64_t j = s * kDecodeSegment; j < end; ++j) weights[j] *= factor;
            }
        }
        for (int c = 0; c < head_dim; ++c) out[c] = from_float<T>(sum[c]);
    }
}

}  // namespace

void attention_decode(std::span<const DecodeRow> rows, int head_dim, DType dtype, float scale) {
    if (dtype != DType::f32 && dtype != DType::bf16)
        throw std::invalid_argument(std::string("attention_decode: type is ") + name_of(dtype) +
                                    ", expected f32 or bf16");
    if (head_dim <= 0 || !(scale > 0))
        throw std::invalid_argument("attention_decode: head size and scale must be above 0");

    size_t n_floats = 0;
    int64_t n_entries = 0;
    for (const DecodeRow& row : rows) {
        check(row, head_dim);
        const int64_t segments = (row.n_entries + kDecodeSegment - 1) / kDecodeSegment;
        n_floats += static_cast<size_t>(segments * row.n_queries * (head_dim + 2));
        n_entries += row.n_entries;
    }
    if (rows.empty()) return;
    thread_local Workspace workspace;
    float* scratch = static_cast<float*>(workspace.reserve(n_floats * sizeof(float)));

    std::vector<Partials> partials;
    std::vector<DecodeSegment> segments;
    partials.reserve(rows.size());
    segments.reserve(static_cast<size_t>(n_entries / kDecodeSegment) + rows.size());
    for (const DecodeRow& row : rows) {
        const int64_t count = (row.n_entries + kDecodeSegment - 1) / kDecodeSegment, states = count * row.n_queries;
        partials.push_back({&row, count, scratch, scratch + states, scratch + 2 * states});
        for (int64_t s = 0; s < count; ++s)
            segments.push_back({&row, s * kDecodeSegment, std::min(row.n_entries, (s + 1) * kDecodeSegment),
                                partials.back().largest + s * row.n_queries, partials.back().total + s * row.n_queries,
                                partials.back().values + s * row.n_queries * head_dim});
        scratch += states * (head_dim + 2);
    }

    const auto kernel = level_kernels().decode_segment;
    const bool worth_threads = n_entries * head_dim > 1 << 14;
    std::atomic<size_t> unclaimed{0};
#pragma omp parallel if (worth_threads)
    {
        // A thread claims one segment ahead, so that memory works on that one's keys already.
        for (size_t i = unclaimed.fetch_add(1); i < segments.size();) {
            const size_t next = unclaimed.fetch_add(1);
            if (next < segments.size()) segments[i].next = &segments[next];
            kernel(segments[i], head_dim, dtype, scale);
            i = next;
        }
#pragma omp barrier
#pragma omp for schedule(static)
        for (size_t i = 0; i < partials.size(); ++i) {
            if (dtype == DType::f32)
                finish_row<float>(partials[i], head_dim);
            else
                finish_row<bf16>(partials[i], head_dim);
        }
    }
}

}  // namespace kvscope::kernels
