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

/// Bytes [begin, end) of an answer that a decode step wrote.
struct StepPlace {
    size_t begin = 0;
    size_t end = 0;
    bool operator==(const StepPlace&) const = default;
};

/// Places of the tokens `ids` in their text. `pieces` holds the text of the tokens that are known (those of the
/// prompt). Tokens between them share what is left: words that begin with a blank, where there are enough tokens for
/// them, and whole characters, so that their places are nearly right.
std::vector<StepPlace> place_steps(std::string_view text, std::span<const int32_t> ids,
                                   const std::unordered_map<int32_t, std::string>& pieces);

/// The same of an answer to a prompt of the trace. The end of the text writes nothing.
std::vector<StepPlace> answer_places(const trace::Reader& reader, int prompt, std::string_view text,
                                     std::span<const int32_t> ids);

}  // namespace kvscope::analysis
