#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/types.h"

namespace kvscope::kernels {

/// Entries whose keys and values are computed on each read, e.g. rotated, summed from parts, or multiplied by a matrix.
class DecodeEntries {
 public:
    virtual ~DecodeEntries() = default;

    // Threads may call these functions at the same time, for at most decode_tile entries each. They must not throw.

    /// Writes the entries' keys (end - begin, key_dim).
    virtual void read_keys(int64_t begin, int64_t end, float* keys) const = 0;

    /// Returns the number of floats that sum_values() needs as scratch for `n_queries` queries.
    [[nodiscard]] virtual size_t scratch_floats(int n_queries) const = 0;

    virtual void sum_values(int64_t begin, int64_t end, const float* weights, int n_queries, float* scratch,
                            float* out) const = 0;
};

/// Largest number of entries computed in one call, which bounds the scratch of each thread.
inline constexpr int64_t decode_tile = 128;

/// The query heads of one KV head of one run at one decode step. Each query sees all entries.
struct DecodeRow {
    const void* q = nullptr;  ///< (n_queries, key_dim)
    int64_t q_stride = 0;     ///< elements between queries
    int n_queries = 0;
    int key_dim = 0;  ///< channels of queries and keys; 0 means d

    const void* k = nullptr;  ///< (n_entries, key_dim), post-RoPE
    const void* v = nullptr;  ///< (n_entries, d)
    int64_t k_stride = 0;     ///< elements between entries; at least key_dim
    int64_t v_stride = 0;
    int64_t n_entries = 0;                   ///< at least 1
    const DecodeEntries* entries = nullptr;  ///< used instead of k and v if not null

    /// (n_entries) tokens n_i per entry, or nullptr if all are 1. out = sum exp(e_i) v_i / sum n_i exp(e_i).
    const float* cardinality = nullptr;

    /// Whether this row continues the previous row with entries in another form. One softmax covers both rows, and the
    /// previous row's `out` receives the result. Both rows have the same queries, possibly with different channels.
    bool continues = false;

    void* out = nullptr;  ///< (n_queries, d); must not overlap any input of the call
    int64_t out_stride = 0;

    float* attention = nullptr;    ///< (n_queries, n_entries) receives n_i exp(e_i) / sum n_j exp(e_j) unless nullptr
    int64_t attention_stride = 0;  ///< elements between queries; 0 means n_entries
};

/// Computes attention for all rows of a call, e.g. all runs and KV heads of a layer. q, k, v and out are of type
/// `dtype` (f32 or bf16); the arithmetic is f32. A row's result depends on neither other rows nor the number of
/// threads.
/// Throws std::invalid_argument for an empty row, a null array, or another type.
void attention_decode(std::span<const DecodeRow> rows, int head_dim, DType dtype, float scale);

}  // namespace kvscope::kernels
