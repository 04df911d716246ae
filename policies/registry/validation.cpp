#include "policies/registry/validation.h"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <string>

#include "policies/api/policy_errors.h"
#include "policies/bases/score_operations.h"

namespace kvscope::policies {
namespace {

std::string selection_of(std::string_view policy, int layer) {
    return fmt::format("selection of {} for layer {}", policy, layer);
}

void require_rising(const std::string& where, size_t row, std::string_view what, std::span<const uint32_t> found,
                    size_t n) {
    for (size_t i = 0; i < found.size(); ++i) {
        if (found[i] >= n)
            throw SelectionError(
                fmt::format("{}, row {}: expected {} below {}, found {}", where, row, what, n, found[i]));
        if (i > 0 && found[i] <= found[i - 1])
            throw SelectionError(fmt::format("{}, row {}: expected {} in ascending order, each once, found {} after {}",
                                             where, row, what, found[i], found[i - 1]));
    }
}

void require_size(const std::string& where, std::string_view what, size_t found, size_t expected) {
    if (found != 0 && found != expected)
        throw SelectionError(fmt::format("{}: expected {} {} or none, found {}", where, expected, what, found));
}

}  // namespace

void require_valid_selection_rows(std::string_view policy, int layer, const ModelShape& shape, int64_t n_tokens,
                                  const Selection& selection) {
    const std::string where = selection_of(policy, layer);
    const auto rows = static_cast<size_t>(n_rows(shape, selection.granularity));
    if (selection.rows.size() != rows)
        throw SelectionError(fmt::format("{}: expected {} rows, one for each {} head, found {}", where, rows,
                                         selection.granularity == Granularity::kv_head ? "KV" : "query",
                                         selection.rows.size()));
    for (size_t row = 0; row < rows; ++row)
        require_rising(where, row, "positions", selection.rows[row], static_cast<size_t>(n_tokens));
}

void require_valid_selection(std::string_view policy, int layer, const ModelShape& shape, int64_t n_tokens,
                             const Selection& selection) {
    require_valid_selection_rows(policy, layer, shape, n_tokens, selection);
    const std::string where = selection_of(policy, layer);
    const size_t rows = selection.rows.size(), n = static_cast<size_t>(n_tokens);
    if (!selection.scores.empty() && !selection.scores_f64.empty())
        throw SelectionError(where + ": expected scores in either single or double precision, found both");
    require_size(where, "scores", selection.scores.size(), rows * n);
    require_size(where, "scores", selection.scores_f64.size(), rows * n);
    require_size(where, "channel scores", selection.channel_scores.size(), rows * static_cast<size_t>(shape.head_dim));
    require_size(where, "row divergences", selection.head_jsd.size(), rows * rows);
}

void require_valid_merges(std::string_view policy, const MergeObservations& observations, int64_t n_merges,
                          const Merges& merges) {
    const std::string where = fmt::format("merges of {}", policy);
    const auto n = static_cast<int64_t>(merges.first.size());
    if (n < 1 || n > n_merges)
        throw SelectionError(fmt::format("{}: expected 1 to {} pairs, found {}", where, n_merges, n));
    int64_t free = 0;
    for (const uint32_t first : merges.first) {
        if (first < free || first + 1 >= observations.n_entries)
            throw SelectionError(
                fmt::format("{}: expected a pair of neighbors from entry {} on, of {} entries, found entry {}", where,
                            free, observations.n_entries, first));
        if (!observations.may_merge(first))
            throw SelectionError(fmt::format("{}: entries {} to {} belong to a question and stay whole, found entry {}",
                                             where, observations.whole_begin, observations.whole_end - 1, first));
        free = int64_t{first} + 2;
    }
    const auto width = static_cast<size_t>(observations.shape.n_kv_heads * observations.shape.head_dim);
    if (merges.keys.size() != merges.first.size() * width)
        throw SelectionError(fmt::format("{}: expected {} numbers in the keys, found {}", where,
                                         merges.first.size() * width, merges.keys.size()));
    if (merges.n_outside < 0 ||
        merges.n_outside > static_cast<int64_t>(merges.first.size()) * observations.shape.n_kv_heads)
        throw SelectionError(
            fmt::format("{}: expected at most one key with weights outside [0, 1] per pair and head, found {}", where,
                        merges.n_outside));
    for (size_t i = 0; i < merges.keys.size(); ++i)
        if (!std::isfinite(merges.keys[i]))
            throw SelectionError(fmt::format("{}: expected finite keys, found {} in the pair of entry {}", where,
                                             merges.keys[i], merges.first[i / width]));
}

void require_valid_evictions(std::string_view policy, const StepObservations& step, const StepEvictions& evictions) {
    if (evictions.empty()) return;
    const std::string where = fmt::format("evictions of {} from layer {} at step {}", policy, step.layer, step.step);
    if (evictions.size() != step.rows.size())
        throw SelectionError(
            fmt::format("{}: expected {} rows or none, found {}", where, step.rows.size(), evictions.size()));
    for (size_t row = 0; row < evictions.size(); ++row)
        require_rising(where, row, "entries", evictions[row], step.rows[row].positions.size());
}

}  // namespace kvscope::policies
