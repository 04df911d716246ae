#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/interface/budget.h"
#include "policies/interface/policy.h"

namespace kvscope::policies {

/// Every policy of this build, in the order of their file names. The list is generated from policies/*.cpp by the
/// build: the file ada_snapkv.cpp defines `Definition ada_snapkv_definition();` in this namespace.
const std::vector<Definition>& definitions();

/// By its name; '_' and '-' and upper and lower case are alike. nullptr where there is none.
const Definition* find_definition(std::string_view name);

/// @throws ParameterError naming the nearest policies and all of them.
const Definition& find(std::string_view name);

/// A policy with its parameters, as a `--policy` names it.
struct PolicySpec {
    const Definition* definition = nullptr;
    ParameterValues values;

    /// The canonical form, which parse_policy reads back: "aperturekv:lambda=0", only what differs from the defaults.
    std::string label() const;
    std::unique_ptr<Policy> create() const { return definition->create(values); }
    /// Definition::own_share of these values.
    std::optional<double> own_share() const {
        return definition->own_share ? definition->own_share(values) : std::nullopt;
    }
    /// Definition::needed_share of what own_share(), or else the budget, asks for; nullopt where that is all, and where
    /// the budget is one of entries.
    std::optional<double> needed_share(const Budget& budget, const CacheSize& size) const;
    bool operator==(const PolicySpec&) const = default;
};

/// What a run of the policy at the budget is called, planned, finished or failed: "snapkv:window=8 @ 128",
/// "think @ 75 %", "full".
std::string run_label(const PolicySpec& spec, const Budget& budget);

/// "h2o:recent=16" of "h2o:recent=16 @ 64"; empty where no budget is in it.
std::string_view label_without_budget(std::string_view label);
/// The share that the budget in a run's label is; nothing where it is a count, or there is none.
std::optional<double> share_in_label(std::string_view label);
/// Whether two labels are one, however a share is written in them: "think @ 75 %", "think @ 0.75", "think @ 75%".
bool same_run_label(std::string_view a, std::string_view b);

/// Reads "name" or "name:parameter=value,parameter=value". A boolean may stand alone for `=on`.
/// @throws ParameterError for unknown names (with the nearest and the list) and for values that are not taken.
PolicySpec parse_policy(std::string_view text);

/// The policies of a list, each as parse_policy() reads it: "snapkv:window=8" and "h2o" of "snapkv:window=8,h2o". A
/// comma ends a policy without parameters, and one with some where the name of another one follows.
std::vector<std::string> split_policies(std::string_view list);

/// The same for a definition that is not in the list (tests, plug-ins): "parameter=value,…".
PolicySpec parse_parameters(const Definition& definition, std::string_view parameters);

}  // namespace kvscope::policies
