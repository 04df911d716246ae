#include "app/gui/view_data/runs_refused_by_policies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "analysis/tables/table_format.h"
#include "policies/api/budget.h"
#include "policies/registry/feasibility.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;

using policies::Budget;
using policies::BudgetOf;

std::string name_in_form(const policies::PolicySpec& spec) {
    const std::string changes = spec.values.text_of_changes();
    return changes.empty() ? spec.definition->title : fmt::format("{} ({})", spec.definition->title, changes);
}

policies::UnreadPrompt prompt_of(const std::optional<TokenCount>& tokens) {
    if (!tokens || !tokens->error.empty()) return {};
    return {tokens->shape, tokens->model_fingerprint, tokens->n_visible};
}

std::string without_options(std::string text) {
    const std::string_view begin = "`kvscope ";
    for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
        const size_t end = text.find('`', at + 1);
        const size_t options = text.find(" -", at);
        if (end == std::string::npos || options > end) continue;
        const size_t after_command = text.find(' ', at + begin.size());
        text.erase(after_command, end - after_command);
    }
    return text;
}

std::string file_problem(const policies::PolicySpec& spec) {
    const policies::Parameter* parameter = policies::find_file_parameter(spec);
    if (!parameter) return {};
    const std::string& path = spec.values.text(parameter->name);
    if (path.empty())
        return fmt::format("The policy needs a file: set {}. {}", parameter->name, without_options(parameter->help));
    std::error_code error;
    if (!fs::exists(path, error)) return fmt::format("{}: there is no file {}", parameter->name, path);
    if (access(path.c_str(), R_OK) != 0) return fmt::format("{}: {} cannot be read", parameter->name, path);
    return {};
}

RefusedRuns::Refused refusal(std::string budget, const std::string& reason, std::optional<int64_t> least = {}) {
    return {std::move(budget), without_options(reason), least};
}

std::optional<int64_t> least_instead_of(const policies::PolicySpec& spec, const Budget& refused,
                                        const policies::UnreadPrompt& prompt) {
    if (spec.definition->budget_of != BudgetOf::entries) return std::nullopt;
    if (!refused.is_share) return policies::find_smallest_feasible_count(spec, refused.count, prompt);
    return policies::infeasible_budget_reason(spec, {.count = 1}, prompt).empty()
               ? 1
               : policies::find_smallest_feasible_count(spec, 1, prompt);
}

void check_budgets(const policies::PolicySpec& spec, const std::vector<Budget>& budgets,
                   const policies::UnreadPrompt& prompt, RefusedRuns::Row& row) {
    std::optional<int64_t> least;
    for (const Budget& budget : budgets) {
        const std::string reason = policies::infeasible_budget_reason(spec, budget, prompt);
        if (reason.empty()) continue;
        ++row.n_refused;
        if (!least) least = least_instead_of(spec, budget, prompt);
        row.refused.push_back(refusal(budget_text(budget), reason, least));
    }
    const bool helps_none = row.n_refused > 0 && row.n_refused == row.n_runs && !least;
    if (helps_none && spec.definition->budget_of == BudgetOf::entries) {
        row.refused.resize(1);
        row.refused.front().budget.clear();
    }
}

RefusedRuns::Row check_row(const PolicyRow& of, const std::vector<Budget>& budgets,
                           const policies::UnreadPrompt& prompt) {
    RefusedRuns::Row row{.id = of.id, .policy = name_in_form(of.spec), .ticked = of.ticked};
    row.n_runs = static_cast<int>(budgets.size());
    std::string reason = file_problem(of.spec);
    const auto share = reason.empty() ? of.spec.own_share() : std::nullopt;
    if (share) {
        row.n_runs = 1;
        reason = policies::infeasible_budget_reason(of.spec, {.is_share = true, .share = *share}, prompt);
    }
    if (!reason.empty()) {
        row.n_runs = std::max(row.n_runs, 1);
        row.n_refused = row.n_runs;
        row.refused = {refusal("", reason)};
    } else if (!share) {
        check_budgets(of.spec, budgets, prompt, row);
    }
    return row;
}

std::vector<Budget> budgets_of(const RunForm& form) {
    try {
        return policies::parse_budgets(form.request.budgets);
    } catch (const policies::BudgetError&) {
        return {};
    }
}

std::string joined(const std::vector<std::string>& names) {
    if (names.size() < 2) return names.empty() ? "" : names[0];
    const auto last = names.end() - 1;
    return fmt::format("{} and {}", fmt::join(names.begin(), last, ", "), *last);
}

/// Adds one note per required number of entries: "64 is too small for SnapKV and H2O, which need at least 65 entries".
void note_refused(const std::string& budget, const RefusedRuns& check, std::vector<BudgetNote>& notes) {
    std::vector<std::pair<std::optional<int64_t>, std::vector<std::string>>> by_least;
    for (const RefusedRuns::Row& row : check.rows) {
        for (const RefusedRuns::Refused& refused : row.refused) {
            if (!row.ticked || refused.budget != budget) continue;
            const auto same = [&](const auto& other) { return other.first == refused.least; };
            auto found = std::ranges::find_if(by_least, same);
            if (found == by_least.end()) found = by_least.insert(found, {refused.least, {}});
            found->second.push_back(row.policy);
        }
    }
    for (const auto& [least, names] : by_least) {
        const std::string needed = least ? fmt::format(", which need{} at least {} entries",
                                                       names.size() == 1 ? "s" : "", analysis::format_count(*least))
                                         : "";
        notes.push_back(
            {BudgetNote::Kind::error, fmt::format("{} is too small for {}{}", budget, joined(names), needed)});
    }
}

void note_nothing_dropped(const Budget& budget, int64_t n_tokens, std::vector<BudgetNote>& notes) {
    if (budget.is_share ? budget.share < 1 : budget.count < n_tokens) return;
    const std::string n = analysis::format_count(n_tokens);
    const std::string what = budget.is_share || budget.count == n_tokens
                                 ? fmt::format("{} covers all {} tokens of the prompt", budget_text(budget), n)
                                 : fmt::format("{} is more than the prompt's {} tokens", budget_text(budget), n);
    notes.push_back({BudgetNote::Kind::warning, what + ", so nothing is dropped"});
}

/// Returns e.g. "3.2 % (1.2 KB of 36.0 KB per token)", or only the share if the bytes per token are unknown.
std::string share_of_bytes_text(double share, double token_bytes) {
    std::string text = policies::share_label(share);
    if (token_bytes <= 0) return text;
    return fmt::format("{} ({} of {} per token)", text, analysis::format_bytes(share * token_bytes),
                       analysis::format_bytes(token_bytes));
}

/// Returns e.g. ", 66.9 % including what EchoKV stores in addition", or "" if the share equals the requested share.
std::string besides_text(const std::string& name, const policies::PolicySpec& spec, const Budget& budget, double asked,
                         const std::optional<TokenCount>& tokens) {
    if (!tokens || !tokens->error.empty()) return {};
    const double needed = spec.needed_share(budget, tokens->cache_size()).value_or(asked);
    if (needed - asked < 0.0005) return {};
    return fmt::format(", {:.1f} % including what {} stores in addition", 100.0 * needed, name);
}

void note_bytes(const RunForm& form, const std::vector<Budget>& budgets, const std::optional<TokenCount>& tokens,
                std::vector<BudgetNote>& notes) {
    const double token_bytes = tokens ? tokens->token_bytes : 0;
    const int64_t n = tokens && tokens->error.empty() ? tokens->n_visible : 0;
    std::vector<std::string> names;
    for (const PolicyRow& row : form.rows) {
        if (!row.ticked || row.spec.definition->budget_of != BudgetOf::bytes) continue;
        if (!file_problem(row.spec).empty()) continue;
        if (const auto share = row.spec.own_share())
            notes.push_back(
                {BudgetNote::Kind::fact,
                 fmt::format("{0} keeps every token in {1} of the full cache's bytes{2}; "
                             "its parameters, not the budgets, set this share",
                             name_in_form(row.spec), share_of_bytes_text(*share, token_bytes),
                             besides_text("it", row.spec, {.is_share = true, .share = *share}, *share, tokens))});
        else
            names.push_back(name_in_form(row.spec));
    }
    if (names.empty()) return;
    std::vector<std::string> shares;
    for (const Budget& budget : budgets) {
        if (!budget.is_share && n <= 0) continue;
        const double share =
            budget.is_share ? budget.share : std::min(1.0, static_cast<double>(budget.count) / static_cast<double>(n));
        shares.push_back(fmt::format("{}: {}", budget_text(budget), share_of_bytes_text(share, token_bytes)));
        for (const PolicyRow& row : form.rows) {
            if (!row.ticked || row.spec.own_share() || !file_problem(row.spec).empty()) continue;
            shares.back() += besides_text(name_in_form(row.spec), row.spec, budget, share, tokens);
        }
    }
    const bool one = names.size() == 1;
    notes.push_back(
        {BudgetNote::Kind::fact,
         fmt::format("{} keep{} every token; for {} a budget is a share of the full cache's bytes{}{}", joined(names),
                     one ? "s" : "", one ? "it" : "them", shares.empty() ? "" : ". ", fmt::join(shares, "; "))});
}

}  // namespace

std::string RefusedRuns::Row::reasons() const {
    std::vector<std::string> lines;
    for (const Refused& one : refused)
        lines.push_back(one.budget.empty() ? one.reason : fmt::format("{}: {}", one.budget, one.reason));
    return fmt::format("{}", fmt::join(lines, "\n"));
}

std::string RefusedRuns::Row::brief() const {
    if (refused.empty()) return {};
    if (refused[0].budget.empty()) return refused[0].reason;
    std::vector<std::string> budgets;
    for (const Refused& one : refused) budgets.push_back(one.budget);
    const std::string at = can_run() ? fmt::format("not at {}", joined(budgets)) : "not at any of the budgets";
    return refused[0].least
               ? fmt::format("{}: the policy needs at least {} entries", at, analysis::format_count(*refused[0].least))
               : fmt::format("{}: {}", at, refused[0].reason);
}

const RefusedRuns::Row* RefusedRuns::find(int id) const {
    const auto found = std::ranges::find_if(rows, [&](const Row& row) { return row.id == id; });
    return found == rows.end() ? nullptr : &*found;
}

int RefusedRuns::n_refused() const {
    int n = 0;
    for (const Row& row : rows) n += row.ticked ? row.n_refused : 0;
    return n;
}

std::string RefusedRuns::problem() const {
    const Row* first = nullptr;
    int n_ticked = 0;
    for (const Row& row : rows) {
        if (!row.ticked) continue;
        if (row.can_run()) return {};
        if (!first) first = &row;
        ++n_ticked;
    }
    if (!first) return {};
    return n_ticked == 1
               ? fmt::format("{} cannot run: {}", first->policy, first->brief())
               : fmt::format("None of the {} policies can run. {}: {}", n_ticked, first->policy, first->brief());
}

RefusedRuns find_refused_runs(const RunForm& form, const std::optional<TokenCount>& tokens) {
    const auto budgets = budgets_of(form);
    RefusedRuns check;
    for (const PolicyRow& row : form.rows) check.rows.push_back(check_row(row, budgets, prompt_of(tokens)));
    return check;
}

std::string stamp_of_refused_runs(const RunForm& form, const std::optional<TokenCount>& tokens) {
    const auto prompt = prompt_of(tokens);
    std::string stamp = fmt::format("{}|{}|{}", form.request.budgets, prompt.n_tokens, prompt.model_fingerprint);
    for (const PolicyRow& row : form.rows) {
        stamp += fmt::format("|{} {} {}", row.id, row.ticked, row.spec.label());
        const policies::Parameter* file = policies::find_file_parameter(row.spec);
        if (!file || row.spec.values.text(file->name).empty()) continue;
        stamp += " " + stamp_of_file(row.spec.values.text(file->name));
    }
    return stamp;
}

std::vector<BudgetNote> budget_notes(const RunForm& form, const std::optional<TokenCount>& tokens,
                                     const RefusedRuns& check) {
    std::vector<BudgetNote> notes;
    const auto budgets = budgets_of(form);
    const bool any_of_entries = std::ranges::any_of(form.rows, [](const PolicyRow& row) {
        return row.ticked && row.spec.definition->budget_of == BudgetOf::entries;
    });
    for (const Budget& budget : budgets) {
        note_refused(budget_text(budget), check, notes);
        if (any_of_entries && tokens && tokens->error.empty() && tokens->n_visible > 0)
            note_nothing_dropped(budget, tokens->n_visible, notes);
    }
    note_bytes(form, budgets, tokens, notes);
    return notes;
}

}  // namespace kvscope::gui
