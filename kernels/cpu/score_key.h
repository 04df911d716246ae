#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace kvscope::kernels {

template <class Score>
using KeyOf = std::conditional_t<sizeof(Score) == 4, uint32_t, uint64_t>;

/// Returns an unsigned number with the same order as the scores.
template <class Score>
[[nodiscard]] KeyOf<Score> sort_key_of_score(Score score) {
    using Key = KeyOf<Score>;
    constexpr Key sign_bit = Key{1} << (8 * sizeof(Key) - 1);
    const Key bits = std::bit_cast<Key>(score + Score{0});  // turns -0 into +0
    return (bits & sign_bit) ? ~bits : bits | sign_bit;
}

}  // namespace kvscope::kernels
