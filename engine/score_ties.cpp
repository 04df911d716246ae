#include "engine/score_ties.h"

#include <algorithm>
#include <limits>
#include <span>

namespace kvscope::engine {
namespace {

/// @param scores (N) @param kept ascending positions
template <class T>
bool has_tie(std::span<const T> scores, std::span<const uint32_t> kept) {
    constexpr T none = -std::numeric_limits<T>::infinity();
    T best_dropped = none;
    auto next = kept.begin();
    for (uint32_t i = 0; i < scores.size(); ++i) {
        if (next != kept.end() && *next == i)
            ++next;
        else if (scores[i] > best_dropped)
            best_dropped = scores[i];
    }
    return best_dropped > none && std::ranges::any_of(kept, [&](uint32_t i) { return scores[i] == best_dropped; });
}

}  // namespace

void add_ranked_rows(RankedRows& rows, const policies::Selection& selection, int64_t n_tokens) {
    if (selection.stored) return;
    const auto n = static_cast<size_t>(n_tokens);
    const auto add = [&]<class T>(std::span<const T> scores) {
        for (size_t row = 0; row < selection.rows.size() && !scores.empty(); ++row) {
            ++rows.n;
            rows.n_tied += has_tie<T>(scores.subspan(row * n, n), selection.rows[row]) ? 1 : 0;
        }
    };
    add(std::span<const float>(selection.scores));
    add(std::span<const double>(selection.scores_f64));
}

}  // namespace kvscope::engine
