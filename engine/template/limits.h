#pragma once

#include <jinja/lexer.h>

namespace kvscope::chat_template {

/// Protects the recursive Jinja interpreter's stack: refuses deeper nesting and longer expressions than in real
/// templates, and adds calls of `enter_macro` and `leave_macro`, which count nested calls, to every macro.
/// @throws std::runtime_error if the template is too deep
void limit_depth(jinja::lexer_result& lexed);

}  // namespace kvscope::chat_template
