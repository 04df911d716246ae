#pragma once

#include <string>
#include <string_view>

namespace kvscope {

/// Replaces each occurrence of `from`, which is not empty. Does not search in inserted text.
inline void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
}

}  // namespace kvscope
