#include "engine/template/interpreter.h"

#include <fmt/format.h>
#include <jinja/parser.h>
#include <jinja/runtime.h>

#include <cctype>
#include <cstdlib>
#include <exception>
#include <stdexcept>

#include "engine/template/limits.h"

namespace kvscope::chat_template {
namespace {

constexpr size_t largest_source = 1 << 20;
constexpr int deepest_macro_calls = 100;
constexpr int64_t longest_range = 100'000;  // as in Jinja's sandbox, which transformers uses

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
