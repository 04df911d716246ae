#pragma once

namespace kvscope::chat_template {

// What reading and rendering one template may take. Those of real models take some milliseconds and megabytes.
constexpr int seconds_of_processor = 5;
constexpr int seconds_in_all = 30;  ///< on a machine that is busy with other things
constexpr int megabytes_of_memory = 1024;
constexpr int megabytes_of_stack = 64;
constexpr int megabytes_of_text = 256;  ///< that a template makes of the messages

}  // namespace kvscope::chat_template
