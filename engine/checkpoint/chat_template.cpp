#include "engine/checkpoint/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/utf8.h"
#include "engine/checkpoint/chat_template_process.h"
#include "engine/checkpoint/chat_template_source.h"

namespace kvscope::checkpoint {
namespace {

constexpr size_t largest_source = 1 << 20;

bool is_python_space(char32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

/// White space in Jinja.
bool is_ascii_space(char32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

template <typename IsSpace>
std::pair<size_t, size_t> stripped(std::string_view text, IsSpace is_space) {
    size_t begin = text.size(), end = 0;
    for (size_t at = 0; at < text.size();) {
        const Utf8Character step = decode_utf8_character(text, at);
        if (!is_space(step.code)) {
            begin = std::min(begin, at);
            end = at + step.bytes;
        }
        at += step.bytes;
    }
    return begin < end ? std::pair(begin, end) : std::pair(text.size(), text.size());
}

}  // namespace

struct ChatTemplate::Origin {
    std::string source;
    std::map<std::string, std::string> special_tokens;
    std::string file;
    std::string problem;

    /// Renders the messages. Without `render`, only checks the template and returns an empty text.
    std::string ask(std::span<const Message> messages, bool render, bool add_generation_prompt,
                    std::optional<std::time_t> now, const std::stop_token& stop) const;
};

std::optional<ChatTemplate> ChatTemplate::of_model(const std::filesystem::path& model, const std::stop_token& stop) {
    auto found = find_chat_template(model);
    if (!found) return std::nullopt;
    return ChatTemplate(std::move(found->jinja), std::move(found->special_tokens), std::move(found->origin),
                        std::move(found->problem), stop);
}

ChatTemplate::ChatTemplate(std::string source, std::map<std::string, std::string> special_tokens, std::string origin,
                           std::string problem, const std::stop_token& stop)
    : origin_(std::make_shared<const Origin>(
          Origin{std::move(source), std::move(special_tokens), std::move(origin), std::move(problem)})) {
    if (!origin_->problem.empty()) return;
    const auto refuse = [&](const char* why) {
        throw CheckpointError(origin_->file, std::string("its chat template is not valid Jinja: ") + why);
    };
    if (origin_->source.size() > largest_source) refuse("it is larger than 1 MiB");
    if (first_invalid_utf8(origin_->source) != std::string::npos) refuse("it is not valid UTF-8");
    origin_->ask({}, false, false, std::nullopt, stop);
}

const std::string& ChatTemplate::source() const { return origin_->source; }

const std::string& ChatTemplate::problem() const { return origin_->problem; }

const std::map<std::string, std::string>& ChatTemplate::special_tokens() const { return origin_->special_tokens; }

std::string ChatTemplate::Origin::ask(std::span<const Message> messages, bool render, bool add_generation_prompt,
                                      std::optional<std::time_t> now, const std::stop_token& stop) const {
    chat_template::Request request{source, special_tokens, {}, render, add_generation_prompt, now};
    for (const Message& message : messages) request.messages.emplace_back(message.role, message.content);
    using Kind = chat_template::Reply::Kind;
    chat_template::Reply reply;
    try {
        reply = ask_template_process(request, stop);
    } catch (const TemplateLimit& limit) {
        throw CheckpointError(file, std::string("its chat template was stopped: ") + limit.what());
    }
    if (reply.kind == Kind::text) return std::move(reply.text);
    const char* what = reply.kind == Kind::invalid   ? "its chat template is not valid Jinja: "
                       : reply.kind == Kind::refused ? "its chat template refuses these messages: "
                                                     : "its chat template failed: ";
    throw CheckpointError(file, what + utf8_lossy(reply.text));
}

std::string ChatTemplate::render(std::span<const Message> messages, bool add_generation_prompt,
                                 std::optional<std::time_t> now, const std::stop_token& stop) const {
    if (!problem().empty()) throw CheckpointError(origin_->file, problem());
    std::vector<Message> given(messages.begin(), messages.end());
    for (Message& message : given) {
        require_utf8(message.role);
        require_utf8(message.content);
        // Python's strip() also removes no-break spaces, so messages are stripped here if the template strips them.
        const auto [begin, end] = stripped(message.content, is_python_space);
        if (std::pair(begin, end) == stripped(message.content, is_ascii_space)) continue;
        const std::string content = std::exchange(message.content, message.content.substr(begin, end - begin));
        const std::string middle = message.content;
        auto strips = [&](std::string_view before, std::string_view after) {
            message.content = middle;
            const std::string without = origin_->ask(given, true, add_generation_prompt, now, stop);
            message.content = std::string(before) + middle + std::string(after);
            return origin_->ask(given, true, add_generation_prompt, now, stop) == without;
        };
        const std::string left = strips(" ", "") ? "" : content.substr(0, begin);
        const std::string right = strips("", " ") ? "" : content.substr(end);
        message.content = left + middle + right;
    }
    return origin_->ask(given, true, add_generation_prompt, now, stop);
}

RenderedPrompt render_prompt(const std::optional<ChatTemplate>& chat_template, std::string_view context,
                             std::string_view question, std::optional<std::time_t> now, const std::stop_token& stop,
                             std::string_view separator) {
    require_utf8(context);
    require_utf8(question);
    std::string content(context);
    if (!question.empty()) content.append(separator).append(question);
    const size_t question_in_content = content.size() - question.size();
    if (!chat_template) return {content, question.empty() ? content.size() : question_in_content};

    const Message message{"user", content};
    std::string text = chat_template->render({&message, 1}, true, now, stop);
    if (question.empty()) {
        const size_t end = text.size();
        return {std::move(text), end};
    }
    // Templates may repeat the message. The answer follows the last repetition.
    const auto [begin, end] = stripped(content, is_python_space);
    size_t at = text.rfind(content);
    size_t cut = 0;
    if (at == std::string::npos) {
        at = text.rfind(std::string_view(content).substr(begin, end - begin));
        cut = begin;
    }
    if (at == std::string::npos || begin == end || question_in_content < cut || question_in_content >= end) {
        throw CheckpointError(
            fmt::format("the chat template changes the prompt's text, so that the start of the question cannot be "
                        "found. Run without the chat template, or put the question into the prompt."));
    }
    return {std::move(text), at + question_in_content - cut};
}

}  // namespace kvscope::checkpoint
