#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer_json_node.h"

struct pcre2_real_code_8;

namespace kvscope::checkpoint {

/// A part of a text that a pattern either matched or skipped.
struct Span {
    size_t begin = 0;
    size_t end = 0;
    bool matched = false;
};

/// A regular expression of a tokenizer.json, written for Oniguruma (Ruby syntax) and run by PCRE2. Syntax with a
/// different meaning is translated (\s, \w, \h, line anchors, \u). Constructs without a PCRE2 equivalent are refused.
class Regex {
 public:
    /// @throws std::runtime_error if the pattern is invalid or unsupported
    static Regex from_oniguruma(std::string_view pattern);

    /// Returns a pattern that matches exactly this text.
    static Regex literal(std::string_view text);

    /// Cuts `text` (valid UTF-8) into matches and the gaps between them, in order. Like Oniguruma's iterator, reports
    /// empty matches except directly after another match.
    std::vector<Span> cut(std::string_view text) const;

 private:
    explicit Regex(const std::string& pcre_pattern);

    struct Free {
        void operator()(pcre2_real_code_8* code) const;
    };
    std::shared_ptr<pcre2_real_code_8> code_;
};

/// Returns the pattern of a Split or Replace in tokenizer.json: {"Regex": …} or {"String": …}.
/// @throws std::runtime_error with the node's path if the pattern is neither or is invalid
Regex regex_of(const JsonNode& pattern);

}  // namespace kvscope::checkpoint
