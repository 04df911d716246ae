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
    [[nodiscard]] bool operator==(const StepPlace&) const = default;
};

/// Finds the bytes of `text` that each token wrote. The places of unknown tokens are estimated.
/// @param pieces texts of the known tokens, by id
[[nodiscard]] std::vector<StepPlace> step_byte_ranges(std::string_view text, std::span<const int32_t> ids,
                                                      const std::unordered_map<int32_t, std::string>& pieces);

/// Finds the bytes that each token of an answer wrote. The end-of-text token has an empty range.
[[nodiscard]] std::vector<StepPlace> answer_byte_ranges(const trace::Reader& reader, int prompt, std::string_view text,
                                                        std::span<const int32_t> ids);

}  // namespace kvscope::analysis
