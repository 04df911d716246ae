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

/// A model's own Jinja chat template, rendered as `apply_chat_template` of transformers does: trim_blocks and
/// lstrip_blocks on, the same variables (messages, tools and documents none, add_generation_prompt, bos_token,
/// eos_token and the other special tokens) and functions (raise_exception, strftime_now, tojson). Templates are read
/// and rendered by a program of their own, under limits of time, memory and depth; StopCheck ends them.
class ChatTemplate {
 public:
    /// The template of a GGUF file or a Hugging Face directory (chat_template.jinja, else chat_template in
    /// tokenizer_config.json, else chat_template.json, the one named "default" if there are several); nothing if the
    /// model has none. Where none of several is named so, the result has a problem.
    /// @throws CheckpointError if a file is damaged or the template is not valid Jinja
    static std::optional<ChatTemplate> of_model(const std::filesystem::path& model);

    /// @param origin         names the template in error messages: usually the file it is from
    /// @param special_tokens variables such as bos_token and their text
    /// @throws CheckpointError if the template is not valid Jinja
    /// @param problem        why nothing can be rendered; the source counts for nothing then
    ChatTemplate(std::string source, std::map<std::string, std::string> special_tokens, std::string origin,
                 std::string problem = {});

    const std::string& source() const;
    /// Why render() refuses all messages; empty: it does not.
    const std::string& problem() const;
    const std::map<std::string, std::string>& special_tokens() const;

    /// The text to encode with add_special off and parse_special on.
    /// @param now what strftime_now tells; the present if none is given
    /// @throws CheckpointError if the template refuses the messages (raise_exception), fails, or goes beyond a limit
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

/// Applies the template (none: the text as it is) to one user message, context + "\n\n" + question, or the context
/// alone if the question is empty, and finds where the question begins in the result. Templates may strip white space
/// around the message.
/// @throws CheckpointError if the template alters the message otherwise, so that the place cannot be found
RenderedPrompt render_prompt(const std::optional<ChatTemplate>& chat_template, std::string_view context,
                             std::string_view question, std::optional<std::time_t> now = std::nullopt);

}  // namespace kvscope::checkpoint
