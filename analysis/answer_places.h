#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/reader.h"

namespace kvscope::analysis {

/// Bytes [begin, end) of an answer that one decode step wrote.
struct StepPlace {
    size_t begin = 0;
    size_t end = 0;
    bool operator==(const StepPlace&) const = default;
};

/// Finds the bytes of `text` that each of the tokens `ids` wrote. The bytes of tokens that are not in `pieces` are
/// estimated: adjacent unknown tokens share the text between known ones, by words if there are enough tokens, else by
/// characters.
/// @param pieces texts of the known tokens (those of the prompt)
std::vector<StepPlace> place_steps(std::string_view text, std::span<const int32_t> ids,
                                   const std::unordered_map<int32_t, std::string>& pieces);

/// place_steps() for an answer to a prompt of the trace. The end-of-text token gets an empty range.
std::vector<StepPlace> answer_places(const trace::Reader& reader, int prompt, std::string_view text,
                                     std::span<const int32_t> ids);

}  // namespace kvscope::analysis
