#include "engine/classifier/windows.h"

namespace kvscope::engine {

std::vector<Window> cut_into_windows(const checkpoint::ClassifierTokenizer& tokenizer,
                                     std::span<const checkpoint::TextToken> tokens, size_t room) {
    const auto last_end = [&](size_t begin) {
        for (size_t end = begin + room; end > begin; --end) {
            const std::string& last = tokenizer.spelling(tokens[end - 1].id);
            if (last == "." || last == "\n") return end;
        }
        for (size_t end = begin + room; end > begin; --end) {
            if (!tokenizer.continues_word(tokens[end].id)) return end;
        }
        return begin + room;
    };
    std::vector<Window> windows;
    size_t begin = 0;
    while (tokens.size() - begin > room) {
        const size_t end = last_end(begin);
        windows.push_back({begin, end});
        begin = end;
    }
    if (begin < tokens.size()) windows.push_back({begin, tokens.size()});
    return windows;
}

}  // namespace kvscope::engine
