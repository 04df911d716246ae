#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/find_phrases.h"
#include "common/hidden_question.h"
#include "engine/model/model.h"
#include "trace/reader.h"

namespace kvscope::engine {

struct Prompt {
    std::string name;
    std::string context;                  ///< text before the question, without the template; empty if unknown
    std::string text;                     ///< the exact text that is tokenized, with the chat template applied
    std::string question;                 ///< empty if there is none
    std::string separator = "\n\n";       ///< text between context and question
    std::vector<std::string> answers;     ///< accepted answers; empty if unknown
    std::string sample_hash;              ///< hash_of_sample(); empty if the context is unknown
    std::string context_hash;             ///< SHA-256 of the context; empty if it is unknown
    std::string chat_template;            ///< source of the applied chat template; empty if none
    std::vector<int32_t> ids;             ///< (N) tokens of the whole text
    std::vector<std::string> token_text;  ///< (N) readable text of each token
    int64_t n_context = 0;                ///< number of tokens before the question; N without a question
    bool query_aware = true;              ///< whether policies see the question
    bool parses_special = true;           ///< whether control tokens in the text are parsed, not read as plain text
    std::time_t rendered_at = 0;          ///< current time for the template
    /// Tokens of the context that contain an answer, ascending; empty if unknown.
    std::vector<uint32_t> evidence = {};
    /// Tokens of the evidence that belong to an answer and not to the sentence around it; the evidence if unknown.
    std::vector<uint32_t> answer_tokens = {};
    int64_t n_system = 0;  ///< number of tokens that the chat template puts before the context; 0 if unknown

    /// Returns the user's message: the context, then the separator and the question, if any.
    [[nodiscard]] std::string content() const { return question.empty() ? context : context + separator + question; }

    [[nodiscard]] int64_t n_visible() const { return query_aware ? static_cast<int64_t>(ids.size()) : n_context; }
};

struct PromptOptions {
    std::string name = "prompt";
    bool use_template = true;  ///< apply the model's chat template, if it has one
    bool query_aware = true;
    int64_t n_new = 0;                      ///< number of answer tokens that must fit in the model's context
    std::vector<std::string> answers = {};  ///< accepted answers
    std::string separator = "\n\n";         ///< text between context and question
    std::string origin = {};  ///< source of the text in messages, such as a file; if empty, the prompt's name
    bool may_exceed = false;  ///< accept prompts longer than the model's context, to count their tokens
    bool parse_special =
        true;  ///< parse control tokens in texts without template; with a template, they are always parsed
    std::optional<std::time_t> now = {};  ///< current time for the template; if unset, the clock's time
    std::stop_token stop = {};            ///< after a stop request, the template and the tokenizer throw Stopped
    /// Places of the answers in the context; if empty, the places where one of `answers` occurs.
    std::vector<ByteRange> spans = {};
    std::vector<ByteRange> answer_spans = {};  ///< parts of `spans` that are answers; empty: `spans`
};

/// @throws UsageError if a text is not UTF-8 @param origin name of the text's source for messages
void require_utf8(std::string_view text, const std::string& origin);

/// @throws UsageError if the model has no embedding for a token
void require_token_embeddings(const Model& model, std::span<const int32_t> ids, const std::string& origin);

/// Returns the SHA-256 of the JSON text ["context","question",["answer",…]], which identifies a sample independently of
/// model, template and tokenizer. The texts must be UTF-8.
[[nodiscard]] std::string hash_of_sample(std::string_view context, std::string_view question,
                                         std::span<const std::string> answers = {});

/// Returns the first 16 digits of the SHA-256 of token ids, which recipes contain.
[[nodiscard]] std::string fingerprint_of_tokens(std::span<const int32_t> ids);

/// Applies the template and tokenizes the whole text. The question begins with its first token, even if the context
/// ends in the same token. @throws UsageError, naming the origin, for a prompt that cannot be used
[[nodiscard]] Prompt tokenize_prompt(const Model& model, std::string_view context, std::string_view question,
                                     const PromptOptions& options);

[[nodiscard]] checkpoint::Encoding encode_like_prompt(const Model& model, const Prompt& prompt, std::string_view text,
                                                      const std::stop_token& stop);

/// Returns a sentence for each kind of remark: control tokens in the user's text, and characters without a token.
/// A remark on several prompts names the first one.
[[nodiscard]] std::vector<std::string> remarks_on_tokens(const Model& model, std::span<const Prompt> prompts,
                                                         bool parse_special, const std::stop_token& stop = {});

/// Returns a trace's prompt with its recorded token ids. Sets `context` only if the model's template, at the recorded
/// time, turns this context into exactly the recorded text.
/// @throws UsageError if another model made the trace, or the prompt does not exist or does not fit
[[nodiscard]] Prompt read_prompt_from_trace(const Model& model, const trace::Reader& reader, int prompt, int64_t n_new,
                                            const std::stop_token& stop = {});

/// Returns the prompt of a task's sample, from the text in the trace's recipe. @param sample the sample's name, with
/// the ending hidden_question_suffix if policies also saw its question and the prompt without it is wanted
/// @throws UsageError as read_prompt_from_trace(), or if the recorded tokens differ from those of this text
[[nodiscard]] Prompt read_sample_from_trace(const Model& model, const trace::Reader& reader, const std::string& sample,
                                            int64_t n_new, const std::stop_token& stop = {});

}  // namespace kvscope::engine
