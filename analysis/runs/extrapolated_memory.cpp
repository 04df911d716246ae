#include "analysis/runs/extrapolated_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/runs/requested_budget.h"
#include "analysis/tables/table_format.h"
#include "policies/registry/policy_from_record.h"
#include "policies/registry/registry.h"

namespace kvscope::analysis {

namespace {

/// Whether the share is the run's budget, apart from rounding to whole entries.
bool is_budget(double share, const trace::RunAttributes& run, std::int64_t n_tokens) {
    return std::abs(share * static_cast<double>(n_tokens) - static_cast<double>(run.budget)) < 1;
}

policies::CacheSize cache_size(const CacheShape& shape, std::int64_t n_tokens) {
    const policies::ModelShape of_model{.n_layers = static_cast<int>(shape.n_layers),
                                        .n_heads = static_cast<int>(shape.n_kv_heads * shape.group()),
                                        .n_kv_heads = static_cast<int>(shape.n_kv_heads),
                                        .head_dim = static_cast<int>(shape.head_dim)};
    return {of_model, n_tokens, static_cast<double>(shape.bytes_per_number)};
}

/// Converts a run's `share` of bytes, measured at `n_tokens` tokens, to the model and text length of `at`.
double share_of_bytes_at(const MemoryAt& at, const trace::RunAttributes& run, double share, std::int64_t n_tokens) {
    try {
        const auto spec = policies::policy_from_record(run.policy, run.parameters_json);
        if (!spec.definition->needed_share) return share;
        // Uses the recorded budget: PolicySpec::own_share may need a file that no longer exists.
        const auto needed = [&](const CacheShape& shape, std::int64_t n) {
            return spec.definition->needed_share(spec.values, run.budget_fraction, cache_size(shape, n));
        };
        const double measured = needed(at.measured, n_tokens), there = needed(at.shape, at.n_tokens);
        return std::isfinite(measured) && measured > 0 ? share * there / measured : share;
    } catch (const policies::ParameterError&) {
        return share;  // policy of another program
    }
}

}  // namespace

const std::vector<CacheShape>& known_cache_shapes() {
    static const std::vector<CacheShape> shapes = {
        {"Llama-2-7B", 32, 32, 128, 2, 32}, {"Llama-3.1-8B", 32, 8, 128, 2, 32}, {"Llama-3.1-70B", 80, 8, 128, 2, 64},
        {"Llama-3.2-1B", 16, 8, 64, 2, 32}, {"Llama-3.2-3B", 28, 8, 128, 2, 24}, {"Mistral-7B", 32, 8, 128, 2, 32},
        {"Phi-3-mini", 32, 32, 96, 2, 32},  {"Qwen2.5-7B", 28, 4, 128, 2, 28},   {"Qwen2.5-72B", 80, 8, 128, 2, 64},
        {"Qwen3-8B", 36, 8, 128, 2, 32},    {"SmolLM2-135M", 30, 3, 64, 2, 9},   {"SmolLM2-1.7B", 24, 32, 64, 2, 32},
    };
    return shapes;
}

const CacheShape* find_known_cache_shape(const std::string& name) {
    const auto& all = known_cache_shapes();
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& shape) { return shape.name == name; });
    return found == all.end() ? nullptr : &*found;
}

CacheShape cache_shape(const trace::ModelAttributes& model) {
    return {model.name, model.n_layers, model.n_kv_heads, model.head_dim, model.dtype == "f32" ? 4 : 2, model.n_heads};
}

CacheShape cache_shape(const trace::ModelAttributes& model, const std::string& known) {
    const CacheShape* found = find_known_cache_shape(known);
    return found ? *found : cache_shape(model);
}

double estimate_cache_bytes(const MemoryAt& at, const trace::RunAttributes& run, double share, std::int64_t n_tokens) {
    if (run.is_full() || n_tokens <= 0) return share * at.full_bytes();
    // Shares refer to the full cache, which has one row per KV head.
    const bool by_query_heads = run.granularity == trace::schema::run::granularity_query_head;
    const double rows_there = by_query_heads ? static_cast<double>(at.shape.group()) : 1;
    const CacheShape& measured = at.measured.n_layers > 0 ? at.measured : at.shape;
    const double rows_measured = by_query_heads ? static_cast<double>(measured.group()) : 1;
    share *= rows_there / rows_measured;
    if (run.budget_of) return share_of_bytes_at(at, run, share, n_tokens) * at.full_bytes();
    if (const auto requested = requested_budget(run); requested && requested->is_share)
        return (is_budget(share / rows_there, run, n_tokens) ? requested->share * rows_there : share) * at.full_bytes();
    if (at.budgets == BudgetsAt::shares) return share * at.full_bytes();
    // The ratio of held entries to the budget, which a window can raise above 1, stays the same.
    const auto nominal = static_cast<double>(std::clamp<std::int64_t>(run.budget, 1, n_tokens));
    const double held = share * static_cast<double>(n_tokens) / nominal * static_cast<double>(run.budget);
    const double most = rows_there * static_cast<double>(at.n_tokens);
    return std::min(held, most) * static_cast<double>(at.shape.bytes_per_token());
}

void add_memory_columns(Table& runs_table, const std::vector<trace::RunAttributes>& runs, std::int64_t n_tokens,
                        const MemoryAt& at) {
    const auto place_of = [&](const char* name) {
        return std::find_if(runs_table.columns.begin(), runs_table.columns.end(),
                            [&](const Column& column) { return column.name == name; }) -
               runs_table.columns.begin();
    };
    const auto share_at = static_cast<size_t>(place_of("bytes_share"));
    const auto behind = place_of("budget") + 1;
    const std::string where = format_count(at.n_tokens);
    const Column bytes{"bytes_at", "At " + where, "B", ColumnType::integer, 0, Best::lowest};
    const Column times{"compression_at", "Compression at " + where, "×", ColumnType::real, 1, Best::highest};
    runs_table.columns.insert(runs_table.columns.begin() + behind, {bytes, times});
    for (size_t i = 0; i < runs_table.rows.size(); ++i) {
        std::vector<Cell>& cells = runs_table.rows[i].cells;
        std::vector<Cell> added(2);
        if (const auto* share = std::get_if<double>(&cells.at(share_at))) {
            const double of_run = estimate_cache_bytes(at, runs.at(i), *share, n_tokens);
            added = {static_cast<std::int64_t>(std::llround(of_run)),
                     of_run > 0 ? Cell(at.full_bytes() / of_run) : Cell()};
        }
        cells.insert(cells.begin() + behind, added.begin(), added.end());
    }
}

}  // namespace kvscope::analysis
