#pragma once

#include <stdexcept>
#include <stop_token>

#include "engine/template/request.h"

namespace kvscope::checkpoint {

/// A template exceeded a limit of time, memory or depth, which the message names.
struct TemplateLimit : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Sends the request to kvscope-chat-template and returns its reply. Thread-safe.
/// @throws TemplateLimit; Stopped after a stop request; std::runtime_error if the program is missing or cannot be
/// started
[[nodiscard]] chat_template::Reply ask_template_process(const chat_template::Request& request,
                                                        const std::stop_token& stop);

}  // namespace kvscope::checkpoint
