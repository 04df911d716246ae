#pragma once

#include <string>
#include <string_view>

namespace kvscope::checkpoint {

inline constexpr std::string_view safetensors_kind = "a safetensors file";

/// Describes a file by its first bytes: "a GGUF file", "a web page (HTML), as a failed download leaves it".
std::string kind_of_content(std::string_view begin);

}  // namespace kvscope::checkpoint
