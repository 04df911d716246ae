#include "common/find_phrases.h"

#include <algorithm>

namespace kvscope {
namespace {

bool is_of_word(char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

bool is_whole(std::string_view text, size_t begin, size_t end) {
    const bool goes_back = begin > 0 && is_of_word(text[begin - 1]) && is_of_word(text[begin]);
    return !goes_back && !(end < text.size() && is_of_word(text[end - 1]) && is_of_word(text[end]));
}

}  // namespace

std::vector<ByteRange> find_phrases(std::string_view text, std::span<const std::string> phrases, size_t first) {
    std::vector<ByteRange> places;
    for (const std::string& phrase : phrases) {
        if (phrase.find_first_not_of(" \t\r\n") == std::string::npos) continue;
        for (size_t at = text.find(phrase, first); at != std::string_view::npos; at = text.find(phrase, at + 1))
            if (is_whole(text, at, at + phrase.size())) places.emplace_back(at, at + phrase.size());
    }
    std::ranges::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    return places;
}

}  // namespace kvscope
