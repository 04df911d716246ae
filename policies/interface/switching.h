#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policies/interface/parameters.h"

namespace kvscope::policies {

/// Decode steps at which a cache changes between stored parts and whole keys and values rebuilt from them.
struct Switching {
    bool begins_full = false;      ///< whether keys and values are whole at the end of the prompt
    std::vector<int64_t> steps{};  ///< ascending; the cache changes after the attention of each of these steps

    bool is_full_at(int64_t step) const;

    /// Adds a change after the step, as requested during decoding, and cancels the later ones.
    void change_at(int64_t step);
    Switching until(int64_t n_steps) const;

    friend bool operator==(const Switching&, const Switching&) = default;
};

std::vector<Parameter> switching_parameters();

/// Reads the parameters `form` and `switches`. @throws ParameterError
Switching switching_of(std::string_view form, const std::string& switches);

}  // namespace kvscope::policies
