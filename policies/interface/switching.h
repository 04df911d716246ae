#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policies/interface/parameters.h"

namespace kvscope::policies {

/// When a run's cache changes, while it decodes, between what its policy describes and whole keys and values of all
/// tokens. Those are then what the description gives: what was lost stays lost.
struct Switching {
    bool begins_full = false;      ///< whole at the end of the prompt
    std::vector<int64_t> steps{};  ///< ascending; behind the attention of each of these steps the cache changes

    /// Whether the cache is whole behind that step.
    bool is_full_at(int64_t step) const;

    /// A change behind that step that is asked for while the run decodes; those that were to come later are given up.
    void change_at(int64_t step);
    /// Without the changes from `n_steps` on.
    Switching until(int64_t n_steps) const;

    friend bool operator==(const Switching&, const Switching&) = default;
};

/// The parameters `form` and `switches`.
std::vector<Parameter> switching_parameters();

/// What their values say. @throws ParameterError for steps that are no whole numbers with `/` between them, or do not
/// rise
Switching switching_of(std::string_view form, const std::string& switches);

}  // namespace kvscope::policies
