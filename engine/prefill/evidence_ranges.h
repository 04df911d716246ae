#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/json.h"

namespace kvscope::engine {

/// Returns ascending tokens as a list of ranges: [[3, 6]] for 3, 4 and 5. Recipes contain a prompt's evidence so.
[[nodiscard]] nlohmann::ordered_json ranges_of_evidence(std::span<const uint32_t> evidence);

/// Returns the tokens of a list of ranges; nullopt for other values, and if a token is not below `n_context`.
[[nodiscard]] std::optional<std::vector<uint32_t>> evidence_of_ranges(const nlohmann::json& ranges, int64_t n_context);

}  // namespace kvscope::engine
