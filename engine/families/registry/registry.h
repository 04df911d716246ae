#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/families/api/family.h"

namespace kvscope::checkpoint {

/// Returns every family of this build, from all engine/families/*.cpp.
[[nodiscard]] const std::vector<Family>& families();

/// @throws std::out_of_range for unknown names
[[nodiscard]] const Family& family_named(std::string_view name);

/// Returns the family that `matches` accepts, or nullptr.
/// @param model_name returns the name that selects the family if `matches` accepts several; otherwise not called
[[nodiscard]] const Family* find_family(const std::function<bool(const Family&)>& matches,
                                        const std::function<std::string()>& model_name);

[[nodiscard]] std::string supported_models();

/// Returns why a model type ("qwen3_moe") is not supported, such as "a mixture of experts", or an empty text.
[[nodiscard]] std::string kind_of_refused_model(std::string_view name);

}  // namespace kvscope::checkpoint
