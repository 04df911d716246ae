#pragma once

#include <cstring>
#include <vector>

namespace kvscope::engine::testing {

/// Whether the values are bit-identical, so that NaN equals NaN.
template <class T>
[[nodiscard]] bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace kvscope::engine::testing
