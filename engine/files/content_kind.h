#pragma once

#include <string>
#include <string_view>

namespace kvscope::checkpoint {

inline constexpr std::string_view safetensors_kind = "a safetensors file";

/// What a file that begins with these bytes is, for messages about a file of the wrong kind: "a GGUF file", "a web page
/// (HTML), as a failed download leaves it"; empty if the bytes tell nothing. A few hundred bytes suffice.
std::string kind_of_content(std::string_view begin);

}  // namespace kvscope::checkpoint
