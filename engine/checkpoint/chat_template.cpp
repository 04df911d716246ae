#include "engine/checkpoint/chat_template.h"

#include <fmt/format.h>
#include <jinja/parser.h>
#include <jinja/runtime.h>

#include <cctype>
#include <utility>
#include <vector>

#include "engine/checkpoint/chat_template_limits.h"
#include "engine/checkpoint/chat_template_source.h"
#include "engine/checkpoint/tokenizer_utf8.h"

namespace kvscope::checkpoint {
namespace {

constexpr size_t largest_source = 1 << 20;
constexpr int deepest_macro_calls = 100;
constexpr int64_t longest_range = 100'000;  // as in Jinja's sandbox, which transformers uses

/// The interpreter's reports run over several lines, with an excerpt of the template; this is the reason alone.
std::string reason_of(const std::exception& error) {
    std::string text = utf8_lossy(error.what());
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

/// Python's str.isspace().
bool is_python_space(char32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

/// What the interpreter takes for white space.
bool is_ascii_space(char32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// The part of a text without the white space around it.
template <typename IsSpace>
std::pair<size_t, size_t> stripped(std::string_view text, IsSpace is_space) {
    size_t begin = text.size(), end = 0;
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = utf8_step(text, at);
        if (!is_space(step.code_point)) {
            begin = std::min(begin, at);
            end = at + step.length;
        }
        at += step.length;
    }
    return begin < end ? std::pair(begin, end) : std::pair(text.size(), text.size());
}

}  // namespace

struct ChatTemplate::Compiled {
    std::string source;
    std::map<std::string, std::string> special_tokens;
    std::string origin;
    jinja::program program;

    std::string render(std::span<const Message> messages, bool add_generation_prompt,
                       std::optional<std::time_t> now) const;
};

std::optional<ChatTemplate> ChatTemplate::of_model(const std::filesystem::path& model) {
    auto found = find_chat_template(model);
    if (!found) return std::nullopt;
    return ChatTemplate(std::move(found->jinja), std::move(found->special_tokens), std::move(found->origin));
}

ChatTemplate::ChatTemplate(std::string source, std::map<std::string, std::string> special_tokens, std::string origin) {
    auto compiled = std::make_shared<Compiled>();
    compiled->source = std::move(source);
    compiled->special_tokens = std::move(special_tokens);
    compiled->origin = std::move(origin);
    try {
        if (compiled->source.size() > largest_source) throw std::runtime_error("it is larger than 1 MiB");
        if (first_invalid_utf8(compiled->source) != std::string::npos)
            throw std::runtime_error("it is not valid UTF-8");
        // The interpreter loses a first character that a block follows after white space alone; an empty expression in
        // front keeps it.
        const bool text_first = !compiled->source.empty() && compiled->source.front() != '{' &&
                                !std::isspace(static_cast<unsigned char>(compiled->source.front()));
        jinja::lexer_result lexed = jinja::lexer().tokenize((text_first ? "{{ '' }}" : "") + compiled->source);
        limit_depth(lexed);
        compiled->program = jinja::parse_from_tokens(lexed);
    } catch (const std::exception& error) {
        throw CheckpointError(compiled->origin, "its chat template is not valid Jinja: " + reason_of(error));
    }
    compiled_ = std::move(compiled);
}

const std::string& ChatTemplate::source() const { return compiled_->source; }

const std::map<std::string, std::string>& ChatTemplate::special_tokens() const { return compiled_->special_tokens; }

std::string ChatTemplate::Compiled::render(std::span<const Message> messages, bool add_generation_prompt,
                                           std::optional<std::time_t> now) const {
    using namespace jinja;
    context scope(source);
    if (now) scope.current_time = *now;

    auto list = mk_val<value_array>();
    for (const Message& message : messages) {
        auto one = mk_val<value_object>();
        one->insert("role", mk_val<value_string>(message.role));
        one->insert("content", mk_val<value_string>(message.content));
        list->push_back(one);
    }
    scope.set_val("messages", list);
    scope.set_val("tools", mk_val<value_none>());
    scope.set_val("documents", mk_val<value_none>());
    scope.set_val("add_generation_prompt", mk_val<value_bool>(add_generation_prompt));
    for (const auto& [name, text] : special_tokens) scope.set_val(name, mk_val<value_string>(text));

    std::optional<std::string> refusal;
    scope.set_val("raise_exception", mk_val<value_func>("raise_exception", [&refusal](const func_args& args) -> value {
                      refusal = args.count() > 0 ? args.get_pos(0)->as_string().str() : "no reason given";
                      throw raised_exception(*refusal);
                  }));
    scope.set_val("range", mk_val<value_func>("range", [](const func_args& args) -> value {
                      for (const value& arg : args.get_args()) {
                          if (is_val<value_int>(arg) && std::abs(arg->as_int()) > longest_range) {
                              throw std::runtime_error(fmt::format("range() beyond {}", longest_range));
                          }
                      }
                      return global_builtins().at("range")(args);
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
        return runtime::gather_string_parts(results)->as_string().str();
    } catch (const std::exception& error) {
        if (refusal) throw CheckpointError(origin, "its chat template refuses these messages: " + utf8_lossy(*refusal));
        throw CheckpointError(origin, "its chat template failed: " + reason_of(error));
    }
}

std::string ChatTemplate::render(std::span<const Message> messages, bool add_generation_prompt,
                                 std::optional<std::time_t> now) const {
    std::vector<Message> given(messages.begin(), messages.end());
    for (Message& message : given) {
        require_utf8(message.role);
        require_utf8(message.content);
        // Templates strip messages, and in Python that takes away no-break spaces and the like, too. So where a message
        // begins or ends with one, find out whether this template strips, and do what Python would.
        const auto [begin, end] = stripped(message.content, is_python_space);
        if (std::pair(begin, end) == stripped(message.content, is_ascii_space)) continue;
        const std::string content = std::exchange(message.content, message.content.substr(begin, end - begin));
        const std::string middle = message.content;
        auto strips = [&](std::string_view before, std::string_view after) {
            message.content = middle;
            const std::string without = compiled_->render(given, add_generation_prompt, now);
            message.content = std::string(before) + middle + std::string(after);
            return compiled_->render(given, add_generation_prompt, now) == without;
        };
        const std::string left = strips(" ", "") ? "" : content.substr(0, begin);
        const std::string right = strips("", " ") ? "" : content.substr(end);
        message.content = left + middle + right;
    }
    return compiled_->render(given, add_generation_prompt, now);
}

RenderedPrompt render_prompt(const std::optional<ChatTemplate>& chat_template, std::string_view context,
                             std::string_view question, std::optional<std::time_t> now) {
    require_utf8(context);
    require_utf8(question);
    std::string content(context);
    if (!question.empty()) content.append("\n\n").append(question);
    const size_t question_in_content = content.size() - question.size();
    if (!chat_template) return {content, question.empty() ? content.size() : question_in_content};

    const Message message{"user", content};
    std::string text = chat_template->render({&message, 1}, true, now);
    if (question.empty()) {
        const size_t end = text.size();
        return {std::move(text), end};
    }
    // The message may stand in the text more than once, as in templates that repeat it; the last place is what the
    // answer follows.
    const auto [begin, end] = stripped(content, is_python_space);
    size_t at = text.rfind(content);
    size_t cut = 0;
    if (at == std::string::npos) {
        at = text.rfind(std::string_view(content).substr(begin, end - begin));
        cut = begin;
    }
    if (at == std::string::npos || begin == end || question_in_content < cut || question_in_content >= end) {
        throw CheckpointError(
            fmt::format("the chat template alters the prompt's text, so the place where the question begins cannot be "
                        "found in what "
                        "it makes of it; use --chat-template off, or put the question into the prompt"));
    }
    return {std::move(text), at + question_in_content - cut};
}

}  // namespace kvscope::checkpoint
