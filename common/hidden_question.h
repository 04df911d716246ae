#pragma once

#include <string_view>

namespace kvscope {

/// Follow the name of a sample or a setting if policies saw the question in some rows of a table, but not in others.
inline constexpr std::string_view hidden_question_suffix = ", question hidden";
inline constexpr std::string_view seen_question_suffix = ", question seen";

}  // namespace kvscope
