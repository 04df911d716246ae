#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/interface/policy_errors.h"

namespace kvscope::policies {

/// What a policy takes a budget as: entries that are kept; or, where it keeps every token, the share of the full
/// cache's bytes (of a count B: B / N).
enum class BudgetOf { entries, bytes };

/// Entries kept per KV head and layer, window and sinks included: a count, or the share of the prompt that is *kept*.
struct Budget {
    bool is_share = false;
    int64_t count = 0;   ///< where it is no share
    double share = 0.0;  ///< in (0, 1] where it is one

    /// B for a prompt of n tokens; a share is rounded to the nearest count, halves up. Of bytes it is at least 1: what
    /// counts there is the share itself.
    /// @throws BudgetError where the share of so few tokens is no entry at all.
    int64_t resolve(int64_t n_tokens, BudgetOf of = BudgetOf::entries) const;

    /// As it can be read back exactly: "128", "0.2".
    std::string text() const;

    /// As labels and messages have it, which can be read back nearly: "128", "20 %".
    std::string label() const;

    /// Kept and removed, since a bare ratio can be read as either:
    /// "128 of 2000 entries kept (6.4 %), 1872 removed (93.6 %)"; "every token kept, 80.0 % of the full cache's
    /// bytes asked for (20.0 % saved)".
    /// @param needed PolicySpec::needed_share: ", 94.5 % with what is stored besides (5.5 % saved)"
    /// @param count_text how numbers of entries are written; empty: by their digits alone
    std::string describe(int64_t n_tokens, BudgetOf of = BudgetOf::entries, std::optional<double> needed = {},
                         const std::function<std::string(int64_t)>& count_text = {}) const;

    bool operator==(const Budget&) const = default;
};

/// A share in per cent, by four digits at most: "20 %", "16.67 %".
std::string share_label(double share);

/// One budget: "128" is a count; with a point or a percent sign ("0.2", "20%") it is the share kept.
/// @throws BudgetError for anything else, zero and negative ones included.
Budget parse_budget(std::string_view text);

/// Budgets by commas and by ranges: "64,128", "64-512*2" (64 128 256 512), "64-256+64", "0.1-0.5+0.1"; repeated ones
/// count once, in the order of their first appearance.
/// @throws BudgetError as parse_budget does, and for ranges that run backwards or never end.
std::vector<Budget> parse_budgets(std::string_view text);

}  // namespace kvscope::policies
