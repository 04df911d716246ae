#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/tables/table.h"
#include "trace/reader.h"

/// What the runs' caches would take of memory with another text, in another model.
namespace kvscope::analysis {

/// What one model's cache is made of.
struct CacheShape {
    std::string name;  ///< "Llama-3.1-8B"
    std::int64_t n_layers = 0;
    std::int64_t n_kv_heads = 0;
    std::int64_t head_dim = 0;
    int bytes_per_number = 2;
    std::int64_t n_heads = 0;  ///< query heads; 0: as many as KV heads

    /// Query heads that share a KV head.
    std::int64_t group() const { return n_kv_heads > 0 && n_heads > n_kv_heads ? n_heads / n_kv_heads : 1; }

    /// Keys and values of one token in all layers.
    std::int64_t bytes_per_token() const { return 2 * n_layers * n_kv_heads * head_dim * bytes_per_number; }
};

/// Models in common use, as their configurations have them, in 16-bit numbers.
const std::vector<CacheShape>& known_cache_shapes();

/// nullptr where none of them is called so.
const CacheShape* find_cache_shape(const std::string& name);

/// With the number type that the model was run in.
CacheShape cache_shape(const trace::ModelAttributes& model);
/// The known one that is called so, else the model's own.
CacheShape cache_shape(const trace::ModelAttributes& model, const std::string& known);

/// Of a text that is asked about.
inline constexpr std::int64_t most_tokens_at = 1'000'000'000;

enum class BudgetsAt {
    entries,  ///< a budget of so many entries stays as it is, however long the text
    shares,   ///< a budget grows with the text
};

struct MemoryAt {
    std::int64_t n_tokens = 0;
    CacheShape shape;
    BudgetsAt budgets = BudgetsAt::entries;
    CacheShape measured = {};  ///< the model that the runs were measured with; without layers: as `shape`

    double full_bytes() const { return static_cast<double>(n_tokens) * static_cast<double>(shape.bytes_per_token()); }
};

/// What a run's cache would take, from what it takes of the full cache's bytes at the prompt's end. A budget of bytes,
/// or one that was asked for as a share, is that share of whichever text: 30 % of 1,000 tokens are 300 entries, though
/// of the prompt's 68 they were 20. What a policy stores once, or of the first and last tokens alone, weighs less the
/// longer the text (Definition::needed_share). A run by query heads stores as many rows as the other model has query
/// heads.
/// @param share of the full cache's bytes with `n_tokens` tokens (share_of_full_bytes)
double bytes_at(const MemoryAt& at, const trace::RunAttributes& run, double share, std::int64_t n_tokens);

/// The table of runs with two columns behind `budget`: `bytes_at` and `compression_at`, empty where the share of
/// the full cache's bytes is not known.
/// @param runs (rows), of a prompt of n_tokens
void add_memory(Table& runs_table, const std::vector<trace::RunAttributes>& runs, std::int64_t n_tokens,
                const MemoryAt& at);

}  // namespace kvscope::analysis
