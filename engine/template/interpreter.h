#pragma once

#include "engine/template/request.h"

namespace kvscope::chat_template {

/// Reads the request's template with llama.cpp's Jinja interpreter and renders its messages. The interpreter does what
/// a template says, for as long and with as much memory as that takes: only the program in main.cpp calls this on the
/// template of a model, under limits.
Reply interpret(const Request& request);

}  // namespace kvscope::chat_template
