#pragma once

#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "engine/files/checkpoint_error.h"

namespace kvscope::checkpoint {

struct Message {
    std::string role;  ///< system, user or assistant
    std::string content;
};

/// A model's Jinja chat template. A separate program renders it with limits on time, memory and depth. After a stop
/// request, the functions end that program and throw Stopped.
class ChatTemplate {
 public:
    /// Returns the template of a GGUF file or a Hugging Face directory, or nullopt if there is none. If there are
    /// several templates but none is named "default", the result has a problem(). @throws CheckpointError
    [[nodiscard]] static std::optional<ChatTemplate> of_model(const std::filesystem::path& model,
                                                              const std::stop_token& stop = {});

    /// @param problem reason why nothing can be rendered; `source` is then ignored
    /// @throws CheckpointError if the template is not valid Jinja
    ChatTemplate(std::string source, std::map<std::string, std::string> special_tokens, std::string origin,
                 std::string problem = {}, const std::stop_token& stop = {});

    [[nodiscard]] const std::string& source() const;
    /// Returns the reason why render() always fails, or an empty text.
    [[nodiscard]] const std::string& problem() const;
    [[nodiscard]] const std::map<std::string, std::string>& special_tokens() const;

    /// Returns the text for encode() with add_special = false and parse_special = true.
    /// @throws CheckpointError if the template refuses the messages (raise_exception), fails or exceeds a limit
    std::string render(std::span<const Message> messages, bool add_generation_prompt,
                       std::optional<std::time_t> now = std::nullopt, const std::stop_token& stop = {}) const;

 private:
    struct Origin;
    std::shared_ptr<const Origin> origin_;
};

struct RenderedPrompt {
    std::string text;
    size_t question_begin = 0;  ///< text.size() if there is no question
};

/// Applies the template, if any, to context + separator + question, and finds the question's start.
/// @throws CheckpointError if the template does more to the message than strip white space
[[nodiscard]] RenderedPrompt render_prompt(const std::optional<ChatTemplate>& chat_template, std::string_view context,
                                           std::string_view question, std::optional<std::time_t> now = std::nullopt,
                                           const std::stop_token& stop = {}, std::string_view separator = "\n\n");

}  // namespace kvscope::checkpoint
