#pragma once

#include "engine/template/request.h"

namespace kvscope::chat_template {

/// Parses and renders a template with llama.cpp's Jinja interpreter. Call only from main.cpp, which sets limits.
Reply interpret(const Request& request);

}  // namespace kvscope::chat_template
