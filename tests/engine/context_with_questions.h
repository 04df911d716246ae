#pragma once

#include <string>

namespace kvscope::engine::testing {

inline const std::string context =
    "The quick brown fox jumps over the lazy dog, and then the other fox in the northern forest finds the hen within "
    "the inner garden; there are ten of them.";
inline const std::string first_question = "Which animal is lazy?";
inline const std::string second_question = "How many hens are there?";

}  // namespace kvscope::engine::testing
