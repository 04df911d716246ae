#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/api/definition.h"

namespace kvscope::policies {

/// Returns every policy of this build, from all policies/*.cpp.
[[nodiscard]] const std::vector<Definition>& definitions();

/// Returns a policy by name, or nullptr. Ignores case and treats '_' like '-'.
[[nodiscard]] const Definition* find_definition(std::string_view name);

/// Returns a policy by name. @throws ParameterError with similar names and all names
[[nodiscard]] const Definition& definition_named(std::string_view name);

/// A policy with its parameters, as in `--policy`.
struct PolicySpec {
    const Definition* definition = nullptr;
    ParameterValues values;

    /// Returns the text for parse_policy(), without default values: "aperturekv:lambda=0".
    [[nodiscard]] std::string label() const;
    CreatedPolicy create() const { return definition->create(values); }
    [[nodiscard]] std::optional<double> own_share() const {
        return definition->own_share ? definition->own_share(values) : std::nullopt;
    }
    /// Returns the share of the full cache's bytes that a run needs, or nullopt if the policy does not define it.
    [[nodiscard]] std::optional<double> needed_share(const Budget& budget, const CacheSize& size) const;
    [[nodiscard]] bool operator==(const PolicySpec&) const = default;
};

/// Returns the label of a run: "snapkv:window=8 @ 128", "think @ 75 %", "full".
[[nodiscard]] std::string run_label(const PolicySpec& spec, const Budget& budget);

/// Returns "h2o:recent=16" for "h2o:recent=16 @ 64", or an empty text if the label has no budget.
[[nodiscard]] std::string_view label_without_budget(std::string_view label);
/// Whether two labels name the same run. The formats of a share are "think @ 75 %", "think@0.75" and "think @ 75%".
[[nodiscard]] bool same_run_label(std::string_view a, std::string_view b);

/// Reads "name" or "name:parameter=value,parameter=value". A boolean name alone means `=on`. @throws ParameterError
[[nodiscard]] PolicySpec parse_policy(std::string_view text);

/// Reads the text of parse_policy() with ranges of numbers: "snapkv:window=8-32*2" is three policies. Several ranges
/// give every combination; the last parameter changes fastest. @throws ParameterError
[[nodiscard]] std::vector<PolicySpec> parse_policies(std::string_view text);

/// Splits a list at commas that are followed by a policy's name. The results are texts for parse_policies().
[[nodiscard]] std::vector<std::string> split_policies(std::string_view list);

/// Reads "parameter=value,…" for a policy that is not in the registry (tests, plug-ins).
[[nodiscard]] PolicySpec parse_parameters(const Definition& definition, std::string_view parameters);

}  // namespace kvscope::policies
