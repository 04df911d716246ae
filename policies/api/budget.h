#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/api/policy_errors.h"

namespace kvscope::policies {

/// Unit of a policy's budget: kept entries, or bytes of the full cache. In bytes, a count B means the share B / N.
enum class BudgetOf { entries, bytes };

/// Number of kept entries per KV head and layer, window and sinks included, as a count or as a share of the prompt.
struct Budget {
    bool is_share = false;
    int64_t count = 0;   ///< used if `is_share` is false
    double share = 0.0;  ///< in (0, 1]; used if `is_share` is true

    /// Returns B for a prompt of n tokens, rounded to the nearest count. @throws BudgetError if a share rounds to 0
    int64_t resolve(int64_t n_tokens, BudgetOf of = BudgetOf::entries) const;

    /// Returns the budget in an exact form for parse_budget(): "128", "0.2".
    std::string text() const;

    /// Returns the budget for labels and messages, with rounded shares: "128", "20 %".
    [[nodiscard]] std::string label() const;

    /// Returns a text such as "128 of 2000 entries kept (6.4 %), 1872 removed (93.6 %)".
    /// @param needed PolicySpec::needed_share, added as ", 94.5 % including extra data (5.5 % saved)"
    /// @param count_text formats numbers of entries; plain digits if empty
    std::string describe(int64_t n_tokens, BudgetOf of = BudgetOf::entries, std::optional<double> needed = {},
                         const std::function<std::string(int64_t)>& count_text = {}) const;

    [[nodiscard]] bool operator==(const Budget&) const = default;
};

/// Returns a share in percent with at most four digits: "20 %", "16.67 %".
[[nodiscard]] std::string share_label(double share);

/// Reads "128" as a count, and "0.2" or "20%" as the kept share. @throws BudgetError for other texts and for zero.
[[nodiscard]] Budget parse_budget(std::string_view text);

/// Reads a list of budgets and ranges without repetitions: "64,128", "64-512*2" (64 128 256 512), "64-256+64",
/// "0.1-0.5+0.1". @throws BudgetError as parse_budget() does, and for invalid ranges.
std::vector<Budget> parse_budgets(std::string_view text);

}  // namespace kvscope::policies
