#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer_json_node.h"

struct pcre2_real_code_8;

namespace kvscope::checkpoint {

/// A part of a text that a pattern either matched or passed over.
struct Span {
    size_t begin = 0;
    size_t end = 0;
    bool matched = false;
};

/// A regular expression of a tokenizer.json, written for Oniguruma (Ruby syntax) and run by PCRE2. Where the two read
/// the same pattern differently it is translated (\s, \w, \h, line anchors, \u); constructs that PCRE2 has no
/// equivalent for are refused.
class Regex {
 public:
    /// @throws std::runtime_error if the pattern is not valid or not supported
    static Regex from_oniguruma(std::string_view pattern);

    /// Matches exactly this text.
    static Regex literal(std::string_view text);

    /// Cuts `text` (valid UTF-8) into matches and what lies between them, in order, without gaps. Empty matches are
    /// reported except right after another match, as Oniguruma's iterator does.
    std::vector<Span> cut(std::string_view text) const;

 private:
    explicit Regex(const std::string& pcre_pattern);

    struct Free {
        void operator()(pcre2_real_code_8* code) const;
    };
    std::shared_ptr<pcre2_real_code_8> code_;
};

/// The pattern of a tokenizer.json's Split or Replace: {"Regex": …} or {"String": …}.
/// @throws std::runtime_error saying where it stands if it is neither or not valid
Regex regex_of(const JsonNode& pattern);

}  // namespace kvscope::checkpoint
