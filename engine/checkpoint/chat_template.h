#pragma once

#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/files/checkpoint_error.h"

namespace kvscope::checkpoint {

struct Message {
    std::string role;  ///< system, user or assistant
    std::string content;
};

/// A model's Jinja chat template, rendered as by `apply_chat_template` of transformers: trim_blocks and lstrip_blocks
/// are on, with the same variables (messages, tools and documents as none, add_generation_prompt, bos_token, eos_token
/// and the other special tokens) and functions (raise_exception, strftime_now, tojson). A separate program reads and
/// renders templates, with limits on time, memory and depth. StopCheck can end it.
class ChatTemplate {
 public:
    /// Returns the template of a GGUF file or a Hugging Face directory: chat_template.jinja, else chat_template in
    /// tokenizer_config.json, else chat_template.json. Of several templates, it takes the one named "default"; if there
    /// is none, the result has a problem. Returns nullopt if the model has no template.
    /// @throws CheckpointError if a file is damaged or the template is not valid Jinja
    static std::optional<ChatTemplate> of_model(const std::filesystem::path& model);

    /// @param origin         names the template in error messages, usually its file
    /// @param special_tokens variables such as bos_token, with their text
    /// @param problem        reason why nothing can be rendered; the source is then ignored
    /// @throws CheckpointError if the template is not valid Jinja
    ChatTemplate(std::string source, std::map<std::string, std::string> special_tokens, std::string origin,
                 std::string problem = {});

    const std::string& source() const;
    /// Returns the reason why render() always fails, or an empty text.
    const std::string& problem() const;
    const std::map<std::string, std::string>& special_tokens() const;

    /// Returns the text to encode with add_special = false and parse_special = true.
    /// @param now time for strftime_now; the current time if empty
    /// @throws CheckpointError if the template refuses the messages (raise_exception), fails or exceeds a limit
    std::string render(std::span<const Message> messages, bool add_generation_prompt,
                       std::optional<std::time_t> now = std::nullopt) const;

 private:
    struct Origin;
    std::shared_ptr<const Origin> origin_;
};

/// A prompt as the model reads it.
struct RenderedPrompt {
    std::string text;
    size_t question_begin = 0;  ///< text.size() if there is no question
};

/// Applies the template, if any, to one user message, context + "\n\n" + question, or only the context if the question
/// is empty. Finds the start of the question in the result. Templates may strip white space around the message.
/// @throws CheckpointError if the template changes the message otherwise, so that the question is not found
RenderedPrompt render_prompt(const std::optional<ChatTemplate>& chat_template, std::string_view context,
                             std::string_view question, std::optional<std::time_t> now = std::nullopt);

}  // namespace kvscope::checkpoint
