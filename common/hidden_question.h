#pragma once

#include <string_view>

namespace kvscope {

/// Follows the name of a sample or a setting where policies did not see the question, although they saw it elsewhere.
inline constexpr std::string_view hidden_question_suffix = ", question hidden";

}  // namespace kvscope
