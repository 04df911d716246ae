#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace kvscope::kernels {

template <class Score>
using KeyOf = std::conditional_t<sizeof(Score) == 4, uint32_t, uint64_t>;

/// An unsigned number that orders as the score does.
template <class Score>
KeyOf<Score> key_of(Score score) {
    using Key = KeyOf<Score>;
    constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
    const Key bits = std::bit_cast<Key>(score + Score{0});  // -0 becomes +0
    return (bits & kSign) ? ~bits : bits | kSign;
}

}  // namespace kvscope::kernels
