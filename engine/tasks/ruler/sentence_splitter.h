#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvscope::engine::ruler {

/// Splits English texts into the sentences of NLTK 3.10.4's `sent_tokenize`: Punkt (Kiss and Strunk, Computational
/// Linguistics 32(4), 2006) with NLTK's trained parameters.
class SentenceSplitter {
 public:
    /// @param parameters lines "file:line" of NLTK's folder punkt_tab/english @param name of the file for messages
    /// @throws UsageError if a file's lines are missing or malformed
    SentenceSplitter(std::string_view parameters, const std::string& name);

    /// @param text words between spaces, without other white space
    [[nodiscard]] std::vector<std::string> split(std::string_view text) const;

 private:
    struct Token;

    [[nodiscard]] std::vector<Token> tokens_of(std::u32string_view text) const;
    /// Whether a token other than the last ends a sentence.
    [[nodiscard]] bool contains_end(std::u32string_view text) const;
    void reconsider(Token& token, const Token& next) const;
    /// Returns 1 if the token probably begins a sentence, 0 if it probably does not, -1 if its spelling does not tell.
    [[nodiscard]] int begins_sentence(const Token& token) const;
    [[nodiscard]] int spelling_contexts(const std::string& type) const;

    std::set<std::string> abbreviations_;
    std::set<std::pair<std::string, std::string>> collocations_;
    std::set<std::string> starters_;
    std::map<std::string, int> spelling_contexts_;
};

}  // namespace kvscope::engine::ruler
