#pragma once

#include <stdexcept>

#include "engine/template/request.h"

namespace kvscope::checkpoint {

/// A template was stopped because it took too much time or memory, or was nested too deeply. The message names the
/// limit.
struct TemplateLimit : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Sends the request to the program kvscope-chat-template, which is installed beside this one, and waits for the reply.
/// StopCheck can end the wait. Safe with threads: no code of ours runs between fork and exec.
/// @throws TemplateLimit; std::runtime_error if the program is missing or cannot be started
chat_template::Reply ask_template_process(const chat_template::Request& request);

}  // namespace kvscope::checkpoint
