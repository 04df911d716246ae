#pragma once

namespace kvscope::chat_template {

// Limits for reading and rendering one template. Real templates need milliseconds and megabytes.
inline constexpr int seconds_of_processor = 5;
inline constexpr int seconds_in_all = 30;  ///< elapsed time, for machines under load
inline constexpr int megabytes_of_memory = 1024;
inline constexpr int megabytes_of_stack = 64;
inline constexpr int megabytes_of_text = 256;  ///< length of the rendered text

}  // namespace kvscope::chat_template
