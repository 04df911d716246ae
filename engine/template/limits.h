#pragma once

#include <jinja/lexer.h>

namespace kvscope::chat_template {

/// Keeps a damaged or malicious template from exhausting the stack of the Jinja interpreter, which recurses over the
/// template's structure: refuses nesting and single expressions deeper than any real template's, and makes every macro
/// count its calls by a call of `enter_macro` at its beginning and `leave_macro` at its end, two functions that the
/// renderer defines.
/// @throws std::runtime_error if the template is too deep
void limit_depth(jinja::lexer_result& lexed);

}  // namespace kvscope::chat_template
