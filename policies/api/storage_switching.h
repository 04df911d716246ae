#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policies/api/parameters.h"

namespace kvscope::policies {

/// Decode steps at which a cache changes between stored parts and rebuilt whole keys and values.
struct StorageSwitching {
    bool begins_full = false;      ///< whether keys and values are whole at the end of the prompt
    std::vector<int64_t> steps{};  ///< ascending; the cache changes after the attention of each of these steps

    [[nodiscard]] bool is_full_at(int64_t step) const;

    /// Adds a change after the step and removes all later ones.
    void change_at(int64_t step);
    [[nodiscard]] StorageSwitching until(int64_t n_steps) const;

    [[nodiscard]] friend bool operator==(const StorageSwitching&, const StorageSwitching&) = default;
};

[[nodiscard]] std::vector<Parameter> storage_switching_parameters();

StorageSwitching parse_storage_switching(std::string_view form, const std::string& switches);

}  // namespace kvscope::policies
