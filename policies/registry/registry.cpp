#include "policies/registry/registry.h"

#include <algorithm>

#include "policies/registry/name_matching.h"
#include "policies/registry/trimmed.h"

namespace kvscope::policies {

namespace {

constexpr std::string_view before_budget = " @ ";  // separates the policy from the budget in run labels

std::vector<std::string> policy_names() {
    std::vector<std::string> names;
    for (const Definition& definition : definitions()) names.push_back(definition.name);
    return names;
}

void set_parameter(ParameterValues& values, std::string_view piece) {
    const size_t equals = piece.find('=');
    const std::string_view name = trimmed(piece.substr(0, equals));
    if (equals != std::string_view::npos) {
        values.set(name, trimmed(piece.substr(equals + 1)));
        return;
    }
    for (const Parameter& parameter : values.declared()) {
        if (parameter.kind == ParameterKind::boolean && same_name(parameter.name, name)) {
            values.set(name, "on");
            return;
        }
    }
    const bool is_value = piece.find_first_not_of("0123456789.-+eE") == std::string_view::npos;
    throw ParameterError(
        "expected parameter=value, found '" + std::string(piece) + "'." +
        (is_value ? " For several values, repeat --policy, or give a range such as window=8-16*2." : ""));
}

}  // namespace

const Definition* find_definition(std::string_view name) {
    for (const Definition& definition : definitions()) {
        if (same_name(definition.name, name)) return &definition;
    }
    return nullptr;
}

const Definition& definition_named(std::string_view name) {
    if (const Definition* definition = find_definition(name)) return *definition;
    const std::vector<std::string> names = policy_names();
    throw ParameterError("unknown policy '" + std::string(name) + "'." + did_you_mean(name, names) +
                         " Policies: " + joined(names) + ".");
}

std::string PolicySpec::label() const {
    const std::string changes = values.text_of_changes();
    return changes.empty() ? definition->name : definition->name + ":" + changes;
}

std::optional<double> PolicySpec::needed_share(const Budget& budget, const CacheSize& size) const {
    if (definition->budget_of != BudgetOf::bytes || !definition->needed_share || size.n_tokens <= 0)
        return std::nullopt;
    const double asked =
        budget.is_share ? budget.share : static_cast<double>(budget.count) / static_cast<double>(size.n_tokens);
    return definition->needed_share(values, own_share().value_or(std::min(asked, 1.0)), size);
}

std::string run_label(const PolicySpec& spec, const Budget& budget) {
    return spec.definition->is_full() ? spec.label() : spec.label() + std::string(before_budget) + budget.label();
}

std::string_view label_without_budget(std::string_view label) {
    const size_t at = label.rfind(before_budget);
    return label.substr(0, at == std::string_view::npos ? 0 : at);
}

bool same_run_label(std::string_view a, std::string_view b) {
    if (a == b) return true;
    const size_t at_a = a.rfind('@'), at_b = b.rfind('@');
    if (at_a == std::string_view::npos || at_b == std::string_view::npos) return false;
    if (trimmed(a.substr(0, at_a)) != trimmed(b.substr(0, at_b))) return false;
    const std::string_view budget_a = trimmed(a.substr(at_a + 1)), budget_b = trimmed(b.substr(at_b + 1));
    if (budget_a.empty() || budget_b.empty()) return false;
    if (budget_a == budget_b) return true;
    const auto share_of = [](std::string_view text) -> std::string {
        try {
            const Budget budget = parse_budget(text);
            return budget.is_share ? budget.label() : "";
        } catch (const BudgetError&) {
            return "";
        }
    };
    return !share_of(budget_a).empty() && share_of(budget_a) == share_of(budget_b);
}

namespace {

/// Splits "name=value,name=value" at commas. @throws ParameterError for empty pieces
std::vector<std::string_view> pieces_of(std::string_view parameters) {
    std::vector<std::string_view> pieces;
    while (!trimmed(parameters).empty()) {
        const size_t comma = parameters.find(',');
        pieces.push_back(trimmed(parameters.substr(0, comma)));
        if (pieces.back().empty()) throw ParameterError("expected parameter=value between the commas.");
        parameters = comma == std::string_view::npos ? std::string_view{} : parameters.substr(comma + 1);
    }
    return pieces;
}

/// Returns "name=value" for each value of a range, or the piece itself if it has no range.
std::vector<std::string> values_of_piece(const Definition& definition, std::string_view piece) {
    const size_t equals = piece.find('=');
    const std::string_view name = trimmed(piece.substr(0, equals));
    for (const Parameter& parameter : definition.parameters) {
        const bool is_list = parameter.kind == ParameterKind::integers || parameter.kind == ParameterKind::reals;
        if (equals == std::string_view::npos || is_list || !same_name(parameter.name, name)) continue;
        auto values = parameter.values_of_range(trimmed(piece.substr(equals + 1)));
        if (!values) break;
        for (std::string& value : *values) value = parameter.name + "=" + value;
        return *std::move(values);
    }
    return {std::string(piece)};
}

constexpr size_t most_combinations = 1000;

}  // namespace

PolicySpec parse_parameters(const Definition& definition, std::string_view parameters) {
    PolicySpec spec{&definition, ParameterValues(definition.parameters)};
    try {
        for (const std::string_view piece : pieces_of(parameters)) set_parameter(spec.values, piece);
    } catch (const ParameterError& error) {
        throw ParameterError("policy " + definition.name + ": " + error.what());
    }
    return spec;
}

PolicySpec parse_policy(std::string_view text) {
    const size_t colon = text.find(':');
    const Definition& definition = definition_named(trimmed(text.substr(0, colon)));
    return parse_parameters(definition, colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1));
}

std::vector<PolicySpec> parse_policies(std::string_view text) {
    const size_t colon = text.find(':');
    const Definition& definition = definition_named(trimmed(text.substr(0, colon)));
    std::vector<PolicySpec> specs{{&definition, ParameterValues(definition.parameters)}};
    try {
        for (const auto piece :
             pieces_of(colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1))) {
            std::vector<PolicySpec> combined;
            const std::vector<std::string> values = values_of_piece(definition, piece);
            for (const PolicySpec& spec : specs) {
                for (const std::string& value : values) {
                    combined.push_back(spec);
                    set_parameter(combined.back().values, value);
                }
            }
            if (combined.size() > most_combinations)
                throw ParameterError("the ranges have more than 1000 combinations.");
            specs = std::move(combined);
        }
    } catch (const ParameterError& error) {
        throw ParameterError("policy " + definition.name + ": " + error.what());
    }
    return specs;
}

std::vector<std::string> split_policies(std::string_view list) {
    std::vector<std::string> policies;
    bool has_parameters = false;  // whether the last policy in the list has any
    for (size_t begin = 0; begin <= list.size();) {
        const std::string_view piece = list.substr(begin, list.find(',', begin) - begin);
        const std::string_view name = trimmed(piece.substr(0, piece.find(':')));
        if (policies.empty() || !has_parameters || find_definition(name) != nullptr) {
            policies.emplace_back(trimmed(piece));
            has_parameters = piece.find(':') != std::string_view::npos;
        } else {
            policies.back() += "," + std::string(piece);
        }
        begin += piece.size() + 1;
    }
    return policies;
}

}  // namespace kvscope::policies
