#include "analysis/runs/run_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "policies/registry/name_matching.h"
#include "policies/registry/registry.h"

namespace kvscope::analysis {
namespace {

constexpr std::string_view separator = ", ";

/// Removes a label and its separator. Returns whether the text contained the label.
bool remove_label(std::string& text, const std::string& label) {
    const std::string after = std::string(separator) + label;
    for (size_t at = text.find(after); at != std::string::npos; at = text.find(after, at + 1)) {
        const std::string_view rest = std::string_view(text).substr(at + after.size());
        if (!rest.empty() && !rest.starts_with(separator) && !rest.starts_with('@') && !rest.starts_with(" @"))
            continue;
        text.erase(at, after.size());
        return true;
    }
    if (!text.starts_with(label + std::string(separator))) return false;
    text.erase(0, label.size() + separator.size());
    return true;
}

/// Adds the settings that a text without further settings contains. Returns false if it is not a name of the run.
/// @param may_be_policy whether the text names all runs of a policy if it is the name of a policy
bool add_settings(std::set<std::string>& named, const std::string& text, const DescribedRun& run, bool may_be_policy) {
    if (std::ranges::find(run.settings, text) != run.settings.end()) return true;
    if (text == run.policy && may_be_policy) {
        named.insert("policy");
        return true;
    }
    if (text.find('@') == std::string::npos) return false;
    const bool has_budget = std::ranges::any_of(run.settings, [&](const std::string& setting) {
        return policies::same_run_label(setting + " @ " + run.budget, text);
    });
    if (has_budget) named.insert("budget");
    return has_budget;
}

}  // namespace

RunName::RunName(std::string name) : texts_{std::move(name)} {
    const std::string& text = texts_.front();
    const size_t end = std::min({text.size(), text.find(separator), text.find(" @")});
    try {
        const std::string setting = policies::parse_policy(std::string_view(text).substr(0, end)).label();
        if (setting != text.substr(0, end)) texts_.push_back(setting + text.substr(end));
    } catch (const policies::ParameterError&) {
        // The name may be a new label, or a policy of another program.
    }
}

bool RunName::has_others() const { return texts_.front().find(separator) != std::string::npos; }

std::optional<std::set<std::string>> RunName::match(const DescribedRun& run) const {
    for (std::string text : texts_) {
        // "snapkv:window=32" names the default window, although its label is "snapkv".
        const bool may_be_policy = texts_.front().find(':') == std::string::npos || text == texts_.front();
        std::set<std::string> named;
        if (!run.trace.empty() && text.starts_with(run.trace + ": ")) {
            text.erase(0, run.trace.size() + 2);
            named.insert("trace");
        }
        if (add_settings(named, text, run, may_be_policy)) return named;
        for (const auto& [setting, label] : run.others)
            if (remove_label(text, label)) named.insert(setting);
        if (add_settings(named, text, run, may_be_policy)) return named;
    }
    return std::nullopt;
}

std::vector<std::string> labels_and_policies(std::vector<std::string> labels) {
    const std::size_t n_labels = labels.size();
    for (std::size_t i = 0; i < n_labels; ++i) {
        std::string policy = labels[i].substr(0, labels[i].find_first_of(":, @"));
        if (std::ranges::find(labels, policy) == labels.end()) labels.push_back(std::move(policy));
    }
    return labels;
}

ChosenRuns::ChosenRuns(const FigureOptions& options) {
    for (const RunChoice& choice : options.runs) {
        texts_.push_back(name_of(choice));
        names_.emplace_back(texts_.back());
    }
    are_known_.resize(names_.size());
}

bool ChosenRuns::contains(const std::string& label, const std::string& budget,
                          const std::function<bool(const RunName&)>& has_name) {
    if (names_.empty()) return true;
    labels_.insert(label);
    with_budgets_.insert(budget == "all" ? label : label + " @ " + budget);
    bool is_chosen = false;
    for (size_t i = 0; i < names_.size(); ++i) {
        if ((is_chosen && are_known_[i]) || !has_name(names_[i])) continue;
        is_chosen = are_known_[i] = true;
    }
    return is_chosen;
}

void ChosenRuns::require_known() const {
    const auto unknown = std::ranges::find(are_known_, false);
    if (unknown == are_known_.end()) return;
    const std::string& text = texts_[static_cast<size_t>(unknown - are_known_.begin())];
    const auto& labels = text.find('@') == std::string::npos ? labels_ : with_budgets_;
    const std::vector<std::string> similar = labels_and_policies({labels.begin(), labels.end()});
    throw FigureError(fmt::format("the results have no run '{}'.{} There are {}", text,
                                  policies::did_you_mean(text, similar), fmt::join(labels, "; ")));
}

}  // namespace kvscope::analysis
