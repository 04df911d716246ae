#pragma once

#include <stdexcept>

#include "engine/template/request.h"

namespace kvscope::checkpoint {

/// A template that was given up: it took too long, too much memory, or nested too deep. The message says which limit.
struct TemplateLimit : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Has kvscope-chat-template answer, the program beside this one, and waits for it; StopCheck ends the waiting. Safe in
/// a process with threads: nothing of ours runs between fork and exec.
/// @throws TemplateLimit; std::runtime_error if the program is not there or cannot be started
chat_template::Reply ask_template_process(const chat_template::Request& request);

}  // namespace kvscope::checkpoint
