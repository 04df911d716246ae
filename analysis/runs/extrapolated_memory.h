#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/tables/table.h"
#include "trace/reader.h"

/// Memory that the runs' caches would need for another text length or model.
namespace kvscope::analysis {

/// Dimensions that determine the cache size of a model.
struct CacheShape {
    std::string name;  ///< "Llama-3.1-8B"
    std::int64_t n_layers = 0;
    std::int64_t n_kv_heads = 0;
    std::int64_t head_dim = 0;
    int bytes_per_number = 2;
    std::int64_t n_heads = 0;  ///< query heads; 0: same as KV heads

    [[nodiscard]] std::int64_t group() const {
        return n_kv_heads > 0 && n_heads > n_kv_heads ? n_heads / n_kv_heads : 1;
    }

    /// Bytes of one token's keys and values in all layers.
    [[nodiscard]] std::int64_t bytes_per_token() const {
        return 2 * n_layers * n_kv_heads * head_dim * bytes_per_number;
    }
};

/// Cache dimensions of common models, with 16-bit keys and values.
[[nodiscard]] const std::vector<CacheShape>& known_cache_shapes();

[[nodiscard]] const CacheShape* find_known_cache_shape(const std::string& name);

/// Returns the dimensions of the trace's model and the bytes of its number type.
[[nodiscard]] CacheShape cache_shape(const trace::ModelAttributes& model);
/// Returns the known model with this name, or the trace's model if the name is unknown.
[[nodiscard]] CacheShape cache_shape(const trace::ModelAttributes& model, const std::string& known);

inline constexpr std::int64_t most_tokens_at = 1'000'000'000;

enum class BudgetsAt {
    entries,  ///< Budgets stay the same number of entries for any text length.
    shares,   ///< Budgets stay the same share of the text.
};

struct MemoryAt {
    std::int64_t n_tokens = 0;
    CacheShape shape;
    BudgetsAt budgets = BudgetsAt::entries;
    CacheShape measured = {};  ///< model of the measured runs; `shape` is used if it has no layers

    [[nodiscard]] double full_bytes() const {
        return static_cast<double>(n_tokens) * static_cast<double>(shape.bytes_per_token());
    }
};

/// Returns the bytes that a run's cache would need for another text length and model.
/// A budget that was given as a share or in bytes remains the same share of the full cache.
/// @param share measured share of the full cache's bytes at `n_tokens` tokens
[[nodiscard]] double estimate_cache_bytes(const MemoryAt& at, const trace::RunAttributes& run, double share,
                                          std::int64_t n_tokens);

/// Inserts the columns `bytes_at` and `compression_at` after `budget`. @param runs one per row of the table
void add_memory_columns(Table& runs_table, const std::vector<trace::RunAttributes>& runs, std::int64_t n_tokens,
                        const MemoryAt& at);

}  // namespace kvscope::analysis
