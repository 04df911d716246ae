#pragma once

#include <string>
#include <string_view>

namespace kvscope::checkpoint {

inline constexpr std::string_view safetensors_kind = "a safetensors file";

/// Describes a file by its first bytes, for example as "a GGUF file" or "a web page (HTML), …".
[[nodiscard]] std::string kind_of_content(std::string_view begin);

}  // namespace kvscope::checkpoint
