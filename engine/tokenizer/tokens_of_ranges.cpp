#include "engine/tokenizer/tokens_of_ranges.h"

#include <algorithm>
#include <utility>

namespace kvscope::checkpoint {

std::vector<uint32_t> tokens_of_ranges(std::span<const uint32_t> ends, std::vector<ByteRange> ranges) {
    std::ranges::sort(ranges);
    std::vector<uint32_t> tokens;
    size_t begin = 0, end = 0;  // bytes of the token
    auto next = ranges.begin();
    for (uint32_t token = 0; token < ends.size(); ++token) {
        if (ends[token] == 0 || ends[token] < end) continue;  // a token without text
        if (ends[token] > end) begin = std::exchange(end, ends[token]);
        while (next != ranges.end() && next->second <= begin) ++next;
        if (next != ranges.end() && next->first < end) tokens.push_back(token);
    }
    return tokens;
}

}  // namespace kvscope::checkpoint
