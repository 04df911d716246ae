#pragma once

#include <jinja/lexer.h>

namespace kvscope::chat_template {

/// Protects the Jinja interpreter's stack from damaged or malicious templates, since the interpreter recurses over the
/// template's structure. Refuses nesting and expressions deeper than in real templates. Also inserts calls of
/// `enter_macro` and `leave_macro`, which the renderer defines, into every macro to count nested calls.
/// @throws std::runtime_error if the template is too deep
void limit_depth(jinja::lexer_result& lexed);

}  // namespace kvscope::chat_template
