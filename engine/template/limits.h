#pragma once

#include <jinja/lexer.h>

namespace kvscope::chat_template {

/// Limits nesting and expressions, and counts calls of macros, to protect the recursive interpreter's stack.
/// @throws std::runtime_error if the template exceeds a limit
void limit_depth(jinja::lexer_result& lexed);

}  // namespace kvscope::chat_template
