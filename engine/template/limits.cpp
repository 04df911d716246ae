#include "engine/template/limits.h"

#include <fmt/format.h>

#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kvscope::chat_template {
namespace {

using jinja::token;

constexpr size_t deepest_nesting = 100;
constexpr size_t longest_expression = 2000;  // in tokens

void append_call(std::vector<token>& out, const char* function, size_t position) {
    for (const auto& [type, text] :
         std::initializer_list<std::pair<token::type, const char*>>{{token::open_expression, "{{"},
                                                                    {token::identifier, function},
                                                                    {token::open_paren, "("},
                                                                    {token::close_paren, ")"},
                                                                    {token::close_expression, "}}"}}) {
        out.push_back({type, text, position});
    }
}

/// Whether a set statement uses "=". Without "=", it opens a block.
bool assigns(const std::vector<token>& tokens, size_t statement) {
    for (size_t k = statement; k < tokens.size() && tokens[k].t != token::close_statement; ++k) {
        if (tokens[k].t == token::equals) return true;
    }
    return false;
}

class Nesting {
 public:
    /// @throws std::runtime_error if the nesting or an expression exceeds its limit
    void follow(const token& now, const std::string& word, bool is_assignment) {
        switch (now.t) {
            case token::open_statement:
                length_ = brackets_ = 0;
                open_or_close(word, is_assignment);
                break;
            case token::open_expression:
                length_ = brackets_ = 0;
                break;
            case token::open_paren:
            case token::open_square_bracket:
            case token::open_curly_bracket:
                ++brackets_;
                break;
            case token::close_paren:
            case token::close_square_bracket:
            case token::close_curly_bracket:
                brackets_ -= brackets_ > 0 ? 1 : 0;
                break;
            default:
                break;
        }
        if (depth_ + brackets_ > deepest_nesting) {
            throw std::runtime_error(fmt::format("it is nested more than {} levels deep", deepest_nesting));
        }
        if (++length_ > longest_expression) {
            throw std::runtime_error(fmt::format("an expression in it has more than {} parts", longest_expression));
        }
        if (now.t == token::text) length_ = 0;
    }

 private:
    void open_or_close(const std::string& word, bool is_assignment) {
        static const std::set<std::string> opening{"if", "for", "macro", "call", "filter", "generation"};
        if (word == "elif") {
            if (!levels_.empty()) ++levels_.back();
            ++depth_;
        } else if (opening.contains(word) || (word == "set" && !is_assignment)) {
            levels_.push_back(1);
            ++depth_;
        } else if (word.starts_with("end") && !levels_.empty()) {
            depth_ -= levels_.back();
            levels_.pop_back();
        }
    }

    /// Number of levels of each open block. Each elif adds a level.
    std::vector<size_t> levels_;
    size_t depth_ = 0;
    size_t brackets_ = 0;
    size_t length_ = 0;  ///< tokens of the current expression
};

}  // namespace

void limit_depth(jinja::lexer_result& lexed) {
    std::vector<token> out;
    out.reserve(lexed.tokens.size() + 64);
    Nesting nesting;
    bool in_macro_head = false;
    for (size_t i = 0; i < lexed.tokens.size(); ++i) {
        const token& now = lexed.tokens[i];
        const bool starts_statement = now.t == token::open_statement && i + 1 < lexed.tokens.size();
        const std::string word = starts_statement ? lexed.tokens[i + 1].value : "";
        if (word == "endmacro") append_call(out, "leave_macro", now.pos);
        out.push_back(now);
        if (now.t == token::open_statement) in_macro_head = word == "macro";
        if (now.t == token::close_statement && std::exchange(in_macro_head, false))
            append_call(out, "enter_macro", now.pos);
        nesting.follow(now, word, word == "set" && assigns(lexed.tokens, i));
    }
    lexed.tokens = std::move(out);
}

}  // namespace kvscope::chat_template
