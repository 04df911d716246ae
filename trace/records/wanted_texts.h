// The text columns of /results/<task> that a caller reads. Numbers are always read.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace kvscope::trace {

struct WantedTexts {
    bool all = true;                            ///< whether all columns are read whole
    std::set<std::string_view> whole = {};      ///< names of columns; unused if `all` is set
    std::set<std::string_view> shortened = {};  ///< names of columns whose texts are shortened (shortened_text())

    [[nodiscard]] bool contain(std::string_view column) const {
        return all || whole.contains(column) || shortened.contains(column);
    }
};

/// Returns a text of at most 64 bytes unchanged. A longer text becomes 32 digits of a 128-bit hash and the text's last
/// 32 bytes, so that equal texts stay equal, and different texts differ.
[[nodiscard]] std::string shortened_text(std::string_view text);

}  // namespace kvscope::trace
