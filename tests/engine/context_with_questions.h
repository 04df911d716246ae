#pragma once

#include <cstdint>
#include <string>

namespace kvscope::engine::testing {

inline const std::string context =
    "The quick brown fox jumps over the lazy dog, and then the other fox in the northern forest finds the hen within "
    "the inner garden; there are ten of them.";
inline const std::string first_question = "Which animal is lazy?";
inline const std::string second_question = "How many hens are there?";
inline constexpr int64_t n_new = 12;  ///< number of tokens of an answer

}  // namespace kvscope::engine::testing
