#pragma once

#include <string>
#include <string_view>

namespace kvscope::checkpoint {

inline constexpr std::string_view safetensors_kind = "a safetensors file";

/// Describes a file by its first bytes, for messages about wrong files: "a GGUF file", "a web page (HTML), as a failed
/// download leaves it". Empty if unknown. A few hundred bytes suffice.
std::string kind_of_content(std::string_view begin);

}  // namespace kvscope::checkpoint
