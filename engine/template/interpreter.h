#pragma once

#include "engine/template/request.h"

namespace kvscope::chat_template {

/// Renders a template with llama.cpp's Jinja interpreter. Only main.cpp may call this, because it sets limits.
Reply render_template(const Request& request);

}  // namespace kvscope::chat_template
