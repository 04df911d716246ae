#include "policies/api/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "policies/api/number_range.h"
#include "policies/registry/trimmed.h"

namespace kvscope::policies {

namespace {

constexpr int64_t largest_count = int64_t{1} << 40;

[[noreturn]] void refuse(std::string_view text, const std::string& reason) {
    throw BudgetError("Budget '" + std::string(text) + "': " + reason +
                      " A budget is a count of kept entries (128) or the kept share of the prompt (0.2 or 20%). "
                      "Separate several budgets by commas (64,128) or give ranges (64-512*2, 64-256+64).");
}

template <class Number>
std::optional<Number> whole(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// Also accepts numbers that no integer type can hold.
bool is_whole_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string shortest(double value) {
    char buffer[32];
    const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
    std::string text(buffer, end);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

Budget parse_one(std::string_view text, std::string_view shown) {
    const bool percent = text.ends_with('%');
    const std::string_view number = trimmed(percent ? text.substr(0, text.size() - 1) : text);
    Budget budget;
    budget.is_share = percent || number.find_first_of(".eE") != std::string_view::npos;
    if (budget.is_share) {
        const auto value = whole<double>(number);
        if (!value || !std::isfinite(*value)) refuse(shown, "it is not a number.");
        budget.share = percent ? without_rounding_noise(*value / 100.0) : *value;
        if (budget.share <= 0.0) refuse(shown, "a share must be above 0.");
        if (budget.share > 1.0) refuse(shown, "a share is at most 1 (100%), and a count has no decimal point.");
    } else {
        const auto value = whole<int64_t>(number);
        if (!value) refuse(shown, is_whole_number(number) ? "no prompt is that long." : "it is not a number.");
        if (*value <= 0) refuse(shown, "a count must be at least 1.");
        if (*value > largest_count) refuse(shown, "no prompt is that long.");
        budget.count = *value;
    }
    return budget;
}

Budget make(bool is_share, double value) {
    Budget budget;
    budget.is_share = is_share;
    if (is_share) {
        budget.share = value;
    } else {
        budget.count = std::llround(value);
    }
    return budget;
}

/// @param shown the whole text, for messages
std::vector<Budget> budgets_of_range(const RangeText& range, std::string_view shown) {
    const Budget first = parse_one(range.first, shown);
    const Budget last = parse_one(range.last, shown);
    if (first.is_share != last.is_share) refuse(shown, "both ends of a range must be counts, or both shares.");
    const double low = first.is_share ? first.share : static_cast<double>(first.count);
    const double high = last.is_share ? last.share : static_cast<double>(last.count);
    double step = 1.0;
    if (range.is_factor) {
        step = whole<double>(*range.step).value_or(0.0);
    } else if (range.step) {
        const Budget parsed = parse_one(*range.step, shown);
        if (parsed.is_share != first.is_share)
            refuse(shown, "the step must be a count if the ends are counts, and a share if they are shares.");
        step = parsed.is_share ? parsed.share : static_cast<double>(parsed.count);
    } else if (low <= high && first.is_share) {
        refuse(shown, "a range of shares needs a step (0.1-0.5+0.1).");
    } else if (high - low >= most_values_without_step) {
        refuse(shown, "a range of this many counts needs a step (64-512+64) or a factor (64-512*2).");
    }
    std::vector<Budget> budgets;
    try {
        for (const double value : values_of_range(low, high, step, range.is_factor))
            budgets.push_back(make(first.is_share, value));
    } catch (const std::invalid_argument& error) {
        refuse(shown, error.what());
    }
    return budgets;
}

}  // namespace

int64_t Budget::resolve(int64_t n_tokens, BudgetOf of) const {
    if (!is_share) return count;
    const int64_t entries = static_cast<int64_t>(std::floor(share * static_cast<double>(n_tokens) + 0.5));
    if (entries < 1) {
        if (of == BudgetOf::bytes) return 1;
        throw BudgetError("Budget " + label() + ": this share of " + std::to_string(n_tokens) +
                          " tokens is less than one entry. Give a larger share or a count.");
    }
    return std::min(entries, n_tokens);
}

std::string share_label(double share) { return fmt::format("{:.4g} %", 100.0 * share); }

std::string Budget::label() const { return is_share ? share_label(share) : std::to_string(count); }

std::string Budget::text() const { return is_share ? shortest(share) : std::to_string(count); }

std::string Budget::describe(int64_t n_tokens, BudgetOf of, std::optional<double> needed,
                             const std::function<std::string(int64_t)>& count_text) const {
    const int64_t kept = std::min(resolve(n_tokens, of), n_tokens);
    double share_kept = n_tokens ? 100.0 * static_cast<double>(kept) / static_cast<double>(n_tokens) : 100.0;
    if (of == BudgetOf::bytes) {
        if (is_share) share_kept = 100.0 * share;
        std::string text = fmt::format("every token kept, {:.1f} % of the full cache's bytes requested", share_kept);
        const double comes_to = std::max(share_kept, 100.0 * needed.value_or(0));
        if (comes_to - share_kept >= 0.05) text += fmt::format(", {:.1f} % including extra data", comes_to);
        return text + (comes_to > 100.0 ? fmt::format(" ({:.1f} % more than the full cache)", comes_to - 100.0)
                                        : fmt::format(" ({:.1f} % saved)", 100.0 - comes_to));
    }
    const auto text = [&](int64_t n) { return count_text ? count_text(n) : std::to_string(n); };
    return fmt::format("{} of {} entries kept ({:.1f} %), {} removed ({:.1f} %)", text(kept), text(n_tokens),
                       share_kept, text(n_tokens - kept), 100.0 - share_kept);
}

Budget parse_budget(std::string_view text) {
    const std::string_view written = trimmed(text);
    if (written.empty()) refuse(text, "it is empty.");
    return parse_one(written, written);
}

std::vector<Budget> parse_budgets(std::string_view text) {
    std::vector<Budget> budgets;
    std::string_view rest = text;
    while (true) {
        const size_t comma = rest.find(',');
        const std::string_view piece = trimmed(rest.substr(0, comma));
        if (piece.empty()) refuse(text, "a list entry is empty.");
        const auto range = split_range(piece);
        const std::vector<Budget> parsed = range ? budgets_of_range(*range, piece) : std::vector{parse_budget(piece)};
        for (const Budget& budget : parsed) {
            if (std::find(budgets.begin(), budgets.end(), budget) == budgets.end()) budgets.push_back(budget);
        }
        if (comma == std::string_view::npos) return budgets;
        rest = rest.substr(comma + 1);
    }
}

}  // namespace kvscope::policies
