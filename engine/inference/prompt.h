#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/model.h"
#include "trace/reader.h"

namespace kvscope::engine {

/// A prompt as text and as tokens.
struct Prompt {
    std::string name;
    std::string context;                  ///< text before the question, without template; empty if unknown
    std::string text;                     ///< the exact text that is tokenized, with the chat template applied
    std::string question;                 ///< question of the prompt; empty if there is none
    std::string chat_template;            ///< source of the chat template; empty if none was applied
    std::vector<int32_t> ids;             ///< (N) tokens of the whole text
    std::vector<std::string> token_text;  ///< (N) readable text of each token
    int64_t n_context = 0;                ///< number of tokens before the question; N without a question
    bool query_aware = true;              ///< whether policies see the question
    bool parses_special = true;           ///< whether control tokens in the text are parsed as such, not as letters
    std::time_t rendered_at = 0;          ///< time that the template took as the current time

    /// Returns the user's message: the context, then an empty line and the question if there is one.
    std::string content() const { return question.empty() ? context : context + "\n\n" + question; }

    /// Returns the number of tokens that policies see and may drop.
    int64_t n_visible() const { return query_aware ? static_cast<int64_t>(ids.size()) : n_context; }
};

/// Options for preparing a prompt.
struct PromptOptions {
    std::string name = "prompt";
    bool use_template = true;  ///< apply the model's chat template, if it has one
    bool query_aware = true;
    int64_t n_new = 0;          ///< new tokens that must fit in the context after the prompt
    std::string origin = {};    ///< source of the text in messages, such as a file; if empty, the prompt's name
    bool may_exceed = false;    ///< accept prompts longer than the model's context, to count their tokens
    bool parse_special = true;  ///< parse control tokens in a text without template; templated texts are always parsed
    std::optional<std::time_t> now = {};  ///< current time for the template; if unset, the clock's time
};

/// Checks that a text is UTF-8. @param origin source of the text in messages @throws UsageError
void require_utf8(std::string_view text, const std::string& origin);

/// Checks that the model has an embedding for each token. @throws UsageError
void require_embeddings(const Model& model, std::span<const int32_t> ids, const std::string& origin);

/// Applies the template and tokenizes the whole text. The question begins at the first token that contains one of its
/// characters. @throws UsageError, naming the origin, for a prompt that cannot be used
Prompt prepare_prompt(const Model& model, std::string_view context, std::string_view question,
                      const PromptOptions& options);

/// Encodes a text in the same way as the prompt's own text.
checkpoint::Encoding encode_as(const Model& model, const Prompt& prompt, std::string_view text);

/// Returns remarks on the tokenization, a sentence each: control tokens in the user's own text, and characters without
/// a token. A remark on several prompts names the first one.
std::vector<std::string> remarks_on_tokens(const Model& model, std::span<const Prompt> prompts, bool parse_special);

/// Returns a prompt of a trace with its recorded token ids. Sets `context` if the model's template, at the trace's
/// time, produces exactly the recorded text from it.
/// @throws UsageError if the trace was made with another model, has no such prompt, or if the prompt does not fit
Prompt stored_prompt(const Model& model, const trace::Reader& reader, int prompt, int64_t n_new);

}  // namespace kvscope::engine
