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

/// A prompt as the model reads it.
struct Prompt {
    std::string name;
    std::string context;                  ///< as given; empty where a trace's cannot be told from its template's text
    std::string text;                     ///< exactly what is tokenised, template applied
    std::string question;                 ///< as asked; empty without
    std::string chat_template;            ///< source; empty where none was applied
    std::vector<int32_t> ids;             ///< (N) of the whole text
    std::vector<std::string> token_text;  ///< (N) as shown to a person
    int64_t n_context = 0;                ///< tokens before the first with a character of the question; N without one
    bool query_aware = true;              ///< policies see the question
    bool parses_special = true;           ///< control tokens that the text spells are those tokens, not letters
    std::time_t rendered_at = 0;          ///< what the template took for the present

    /// What the user says: the context, and the question behind an empty line.
    std::string content() const { return question.empty() ? context : context + "\n\n" + question; }

    /// Tokens that policies see and may drop.
    int64_t n_visible() const { return query_aware ? static_cast<int64_t>(ids.size()) : n_context; }
};

struct PromptOptions {
    std::string name = "prompt";
    bool use_template = true;  ///< the model's own chat template, where it has one
    bool query_aware = true;
    int64_t n_new = 0;          ///< tokens that have to fit behind the prompt
    std::string origin = {};    ///< what messages call the text: a file; empty: the prompt by its name
    bool may_exceed = false;    ///< prepared also where it is longer than the model's context: to count its tokens
    bool parse_special = true;  ///< without a template; what a template writes is always parsed
    std::optional<std::time_t> now = {};  ///< what the template takes for the present; unset: the present
};

/// That a text can be tokenised. @param origin what messages call it @throws UsageError where it is not UTF-8
void require_utf8(std::string_view text, const std::string& origin);

/// That a text's tokens can be read: a vocabulary may have more tokens than the model has embeddings, as long as nobody
/// uses those. @throws UsageError
void require_embeddings(const Model& model, std::span<const int32_t> ids, const std::string& origin);

/// Renders and tokenises the whole text, for query-aware prompts and others alike. The question begins at the first
/// token that contains one of its characters.
/// @throws UsageError, which names the prompt's origin, for an empty prompt, text that is not UTF-8, tokens that the
///         model has no embedding for, or more of them than its context holds.
Prompt prepare_prompt(const Model& model, std::string_view context, std::string_view question,
                      const PromptOptions& options);

/// A text's tokens, read as the prompt's own text was.
checkpoint::Encoding encode_as(const Model& model, const Prompt& prompt, std::string_view text);

/// What has to be known of how the prompts' texts were tokenised, a sentence each: control tokens that the user's own
/// text spells, and what became of them; how many characters have no token. Of several prompts with the same remark the
/// first is named.
/// @param parse_special as it was asked for
std::vector<std::string> remarks_on_tokens(const Model& model, std::span<const Prompt> prompts, bool parse_special);

/// A trace's prompt as it stands there, token ids and all: nothing is rendered or tokenised again. A trace has the
/// whole text alone: its `context` is what the model's template makes exactly that text of, at the time of the trace.
/// @param n_new tokens that have to fit behind the prompt
/// @throws UsageError where the trace was made with another model, has no such prompt, or where it does not fit.
Prompt stored_prompt(const Model& model, const trace::Reader& reader, int prompt, int64_t n_new);

}  // namespace kvscope::engine
