#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer_json_node.h"
#include "engine/tokenizer/tokenizer_limits.h"

struct pcre2_real_code_8;

namespace kvscope::checkpoint {

struct Span {
    size_t begin = 0;
    size_t end = 0;
    bool matched = false;
};

/// A regular expression for Oniguruma (Ruby syntax) that PCRE2 runs. Different syntax is translated or refused.
class Regex {
 public:
    [[nodiscard]] static Regex from_oniguruma(std::string_view pattern);

    [[nodiscard]] static Regex literal(std::string_view text);

    /// Cuts valid UTF-8 into matches and gaps. As in Oniguruma, there are no empty matches directly after a match.
    [[nodiscard]] std::vector<Span> cut(std::string_view text, TokenizerLimits& limits) const;

 private:
    explicit Regex(const std::string& pcre_pattern);

    struct Free {
        void operator()(pcre2_real_code_8* code) const;
    };
    std::shared_ptr<pcre2_real_code_8> code_;
};

/// Returns the pattern {"Regex": …} or {"String": …} of a Split or Replace. @throws std::runtime_error
[[nodiscard]] Regex regex_of(const JsonNode& pattern);

}  // namespace kvscope::checkpoint
