#include "engine/template/limits.h"

#include <fmt/format.h>

#include <set>
#include <stdexcept>
#include <string>
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

}  // namespace

void limit_depth(jinja::lexer_result& lexed) {
    static const std::set<std::string> opening{"if", "elif", "for", "macro", "call", "filter", "set"};
    std::vector<token> out;
    out.reserve(lexed.tokens.size() + 64);
    // Of each open block, how many levels it has taken: an elif is a level of its own inside its if.
    std::vector<size_t> levels;
    size_t depth = 0, brackets = 0, length = 0;
    bool in_macro_head = false;

    for (size_t i = 0; i < lexed.tokens.size(); ++i) {
        const token& now = lexed.tokens[i];
        const bool starts_statement = now.t == token::open_statement && i + 1 < lexed.tokens.size();
        const std::string word = starts_statement ? lexed.tokens[i + 1].value : "";
        if (word == "endmacro") append_call(out, "leave_macro", now.pos);
        out.push_back(now);

        switch (now.t) {
            case token::open_statement:
                length = brackets = 0;
                if (word == "elif") {
                    if (!levels.empty()) ++levels.back();
                    ++depth;
                } else if (word == "set") {
                    // Opens a block only without "=".
                    bool assigns = false;
                    for (size_t k = i; k < lexed.tokens.size() && lexed.tokens[k].t != token::close_statement; ++k) {
                        assigns = assigns || lexed.tokens[k].t == token::equals;
                    }
                    if (!assigns) {
                        levels.push_back(1);
                        ++depth;
                    }
                } else if (opening.contains(word) || word == "generation") {
                    levels.push_back(1);
                    ++depth;
                } else if (word.starts_with("end") && !levels.empty()) {
                    depth -= levels.back();
                    levels.pop_back();
                }
                in_macro_head = word == "macro";
                break;
            case token::close_statement:
                if (in_macro_head) append_call(out, "enter_macro", now.pos);
                in_macro_head = false;
                break;
            case token::open_expression:
                length = brackets = 0;
                break;
            case token::open_paren:
            case token::open_square_bracket:
            case token::open_curly_bracket:
                ++brackets;
                break;
            case token::close_paren:
            case token::close_square_bracket:
            case token::close_curly_bracket:
                brackets -= brackets > 0 ? 1 : 0;
                break;
            default:
                break;
        }
        if (depth + brackets > deepest_nesting) {
            throw std::runtime_error(fmt::format("it is nested more than {} levels deep", deepest_nesting));
        }
        if (++length > longest_expression) {
            throw std::runtime_error(fmt::format("an expression in it has more than {} parts", longest_expression));
        }
        if (now.t == token::text) length = 0;
    }
    lexed.tokens = std::move(out);
}

}  // namespace kvscope::chat_template
