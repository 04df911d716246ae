#include "engine/tasks/longbench/sequence_matcher.h"

#include <map>
#include <vector>

namespace kvscope::engine::longbench {
namespace {

constexpr size_t shortest_with_frequent_characters = 200;

struct Block {
    size_t a, b, size;
};

class SequenceMatcher {
 public:
    SequenceMatcher(std::u32string_view a, std::u32string_view b) : a_(a), b_(b) {
        for (size_t j = 0; j < b.size(); ++j) places_[b[j]].push_back(j);
        if (b.size() >= shortest_with_frequent_characters)
            std::erase_if(places_, [&](const auto& item) { return item.second.size() > b.size() / 100 + 1; });
    }

    size_t n_matched() const {
        struct Part {
            size_t a_begin, a_end, b_begin, b_end;
        };
        size_t n = 0;
        std::vector<Part> parts{{0, a_.size(), 0, b_.size()}};
        while (!parts.empty()) {
            const Part part = parts.back();
            parts.pop_back();
            const Block block = longest_match(part.a_begin, part.a_end, part.b_begin, part.b_end);
            if (block.size == 0) continue;
            n += block.size;
            if (part.a_begin < block.a && part.b_begin < block.b)
                parts.push_back({part.a_begin, block.a, part.b_begin, block.b});
            if (block.a + block.size < part.a_end && block.b + block.size < part.b_end)
                parts.push_back({block.a + block.size, part.a_end, block.b + block.size, part.b_end});
        }
        return n;
    }

 private:
    Block longest_match(size_t a_begin, size_t a_end, size_t b_begin, size_t b_end) const {
        Block best{a_begin, b_begin, 0};
        std::map<size_t, size_t> lengths;  // of the match that ends at a place of b
        for (size_t i = a_begin; i < a_end; ++i) {
            std::map<size_t, size_t> next;
            if (const auto found = places_.find(a_[i]); found != places_.end()) {
                for (const size_t j : found->second) {
                    if (j < b_begin) continue;
                    if (j >= b_end) break;
                    const auto before = j > 0 ? lengths.find(j - 1) : lengths.end();
                    const size_t length = (before == lengths.end() ? 0 : before->second) + 1;
                    next[j] = length;
                    if (length > best.size) best = {i + 1 - length, j + 1 - length, length};
                }
            }
            lengths = std::move(next);
        }
        while (best.a > a_begin && best.b > b_begin && a_[best.a - 1] == b_[best.b - 1])
            best = {best.a - 1, best.b - 1, best.size + 1};
        while (best.a + best.size < a_end && best.b + best.size < b_end &&
               a_[best.a + best.size] == b_[best.b + best.size])
            ++best.size;
        return best;
    }

    std::u32string_view a_, b_;
    std::map<char32_t, std::vector<size_t>> places_;  ///< of each character in b that can begin a match
};

}  // namespace

double matched_share(std::u32string_view a, std::u32string_view b) {
    const size_t n = a.size() + b.size();
    if (n == 0) return 1;
    return 2.0 * static_cast<double>(SequenceMatcher(a, b).n_matched()) / static_cast<double>(n);
}

}  // namespace kvscope::engine::longbench
