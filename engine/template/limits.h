#pragma once

#include <jinja/lexer.h>

namespace kvscope::chat_template {

/// Protects the stack of the recursive Jinja interpreter: limits nesting and the length of expressions, and adds calls
/// of `enter_macro` and `leave_macro` to every macro.
/// @throws std::runtime_error if the template exceeds a limit
void limit_depth(jinja::lexer_result& lexed);

}  // namespace kvscope::chat_template
