#include "engine/template/interpreter.h"

#include <fmt/format.h>
#include <jinja/lexer.h>
#include <jinja/parser.h>
#include <jinja/runtime.h>

#include <cctype>
#include <exception>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kvscope::chat_template {
namespace {

constexpr size_t largest_source = 1 << 20;
constexpr int deepest_macro_calls = 100;
constexpr int64_t longest_range = 100'000;  // as in Jinja's sandbox, which transformers uses

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

/// Limits nesting and expressions, and counts calls of macros, to protect the recursive interpreter's stack.
/// @throws std::runtime_error if the template exceeds a limit
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

/// Returns the reason from an error message without the excerpt of the template.
std::string reason_of(const std::exception& error) {
    std::string text = error.what();
    if (const size_t at = text.rfind("Error: "); at != std::string::npos && text.starts_with("\n")) {
        const size_t place = text.find(" at line ");
        std::string line =
            place == std::string::npos ? "" : text.substr(place + 4, text.find(" in source", place) - place - 4);
        text = text.substr(at + 7) + (line.empty() ? "" : " (" + line + " of the template)");
    } else {
        text = text.substr(0, text.find('\n'));
        for (const std::string_view head : {"parser: ", "lexer: ", "Parser Error: "}) {
            if (text.starts_with(head)) text.erase(0, head.size());
        }
    }
    return text;
}

jinja::program compiled(const std::string& source) {
    if (source.size() > largest_source) throw std::runtime_error("it is larger than 1 MiB");
    // The interpreter drops the first character if white space and a block follow. An empty expression prevents the
    // loss.
    const bool text_first =
        !source.empty() && source.front() != '{' && !std::isspace(static_cast<unsigned char>(source.front()));
    jinja::lexer_result lexed = jinja::lexer().tokenize((text_first ? "{{ '' }}" : "") + source);
    limit_depth(lexed);
    return jinja::parse_from_tokens(lexed);
}

void set_variables(const Request& request, jinja::context& scope) {
    using namespace jinja;
    auto list = mk_val<value_array>();
    for (const auto& [role, content] : request.messages) {
        auto one = mk_val<value_object>();
        one->insert("role", mk_val<value_string>(role));
        one->insert("content", mk_val<value_string>(content));
        list->push_back(one);
    }
    scope.set_val("messages", list);
    scope.set_val("tools", mk_val<value_none>());
    scope.set_val("documents", mk_val<value_none>());
    scope.set_val("add_generation_prompt", mk_val<value_bool>(request.add_generation_prompt));
    for (const auto& [name, text] : request.special_tokens) scope.set_val(name, mk_val<value_string>(text));
    scope.set_val("range", mk_val<value_func>("range", [](const func_args& args) -> value {
                      for (const value& arg : args.get_args()) {
                          if (!is_val<value_int>(arg)) continue;
                          const int64_t number = arg->as_int();
                          if (number > longest_range || number < -longest_range)
                              throw std::runtime_error(fmt::format("range() beyond {}", longest_range));
                      }
                      return global_builtins().at("range")(args);
                  }));
}

Reply rendered(const Request& request, const jinja::program& program) {
    using namespace jinja;
    context scope(request.source);
    if (request.now) scope.current_time = *request.now;
    set_variables(request, scope);

    std::optional<std::string> refusal;
    scope.set_val("raise_exception", mk_val<value_func>("raise_exception", [&refusal](const func_args& args) -> value {
                      refusal = args.count() > 0 ? args.get_pos(0)->as_string().str() : "no reason given";
                      throw raised_exception(*refusal);
                  }));
    int calls = 0;
    scope.set_val("enter_macro", mk_val<value_func>("enter_macro", [&calls](const func_args&) -> value {
                      if (++calls > deepest_macro_calls) {
                          throw std::runtime_error(
                              fmt::format("macros call each other more than {} levels deep", deepest_macro_calls));
                      }
                      return mk_val<value_string>("");
                  }));
    scope.set_val("leave_macro", mk_val<value_func>("leave_macro", [&calls](const func_args&) -> value {
                      --calls;
                      return mk_val<value_string>("");
                  }));
    try {
        const value results = runtime(scope).execute(program);
        return {Reply::Kind::text, runtime::gather_string_parts(results)->as_string().str()};
    } catch (const std::exception& error) {
        if (refusal) return {Reply::Kind::refused, *refusal};
        return {Reply::Kind::failed, reason_of(error)};
    }
}

}  // namespace

Reply render_template(const Request& request) {
    jinja::program program;
    try {
        program = compiled(request.source);
    } catch (const std::exception& error) {
        return {Reply::Kind::invalid, reason_of(error)};
    }
    return request.render ? rendered(request, program) : Reply{Reply::Kind::text, ""};
}

}  // namespace kvscope::chat_template
