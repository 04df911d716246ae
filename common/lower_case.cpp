#include "common/lower_case.h"

#include <utility>

namespace kvscope {

std::string lower_case(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

std::vector<std::string> lower_case_words(std::string_view text) {
    std::vector<std::string> words;
    std::string word;
    for (const char c : lower_case(text) + " ") {
        const bool is_part = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
        if (is_part)
            word += c;
        else if (!word.empty())
            words.push_back(std::exchange(word, {}));
    }
    return words;
}

}  // namespace kvscope
