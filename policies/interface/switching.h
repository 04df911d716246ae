#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policies/interface/parameters.h"

namespace kvscope::policies {

/// Decode steps at which a run's cache changes between stored parts and whole keys and values. Whole ones are rebuilt
/// from the parts, so lost information is not restored.
struct Switching {
    bool begins_full = false;      ///< whether keys and values are whole at the end of the prompt
    std::vector<int64_t> steps{};  ///< ascending; the cache changes after the attention of each of these steps

    /// Whether the cache is whole after the step.
    bool is_full_at(int64_t step) const;

    /// Adds a change after the step, as requested during decoding, and cancels the later ones.
    void change_at(int64_t step);
    /// Returns the switching without changes from step `n_steps` on.
    Switching until(int64_t n_steps) const;

    friend bool operator==(const Switching&, const Switching&) = default;
};

/// Returns the parameters `form` and `switches`.
std::vector<Parameter> switching_parameters();

/// Reads the values of `form` and `switches`. @throws ParameterError if the steps are not ascending whole numbers
/// separated by `/`
Switching switching_of(std::string_view form, const std::string& switches);

}  // namespace kvscope::policies
