#pragma once

#include "engine/template/request.h"

namespace kvscope::chat_template {

/// Parses the request's template with llama.cpp's Jinja interpreter and renders its messages. Time and memory depend on
/// the template without limits, so only the program in main.cpp may call this, which sets limits.
Reply interpret(const Request& request);

}  // namespace kvscope::chat_template
