#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/runs/token_texts.h"
#include "app/gui/session/tasks.h"

namespace kvscope::gui {

class Session;
class Document;

struct PromptText : analysis::TokenTexts {
    std::vector<int32_t> ids;
    std::vector<std::string>
        shown;  ///< visible texts: · for space, ↵ for a line break, → for a tab, ⟨E2⟩ for an incomplete character
    uint64_t number = 0;  ///< unique id, for use in stamps
    int prompt = 0;       ///< index in the document
};

/// @param tokens texts from a trace, in which an incomplete character is written as ⟨E2⟩
[[nodiscard]] PromptText make_prompt_text_from_tokens(std::vector<int32_t> ids, std::vector<std::string> tokens);

using analysis::shown_token;
using analysis::whole_characters_of_tokens;

[[nodiscard]] TaskResult<PromptText> ask_prompt_text(Session& session, const Document& document);
/// Returns nullptr until the tokens are read.
[[nodiscard]] std::shared_ptr<const PromptText> prompt_text(Session& session, const Document& document);

using TokenSpans = std::vector<std::pair<int64_t, int64_t>>;

/// Returns the spans of Session::mark in the document's shown prompt, or none until the search has finished.
TokenSpans marked_spans(Session& session, const Document& document);
/// Returns the spans of Session::search, or nullptr if there is no search text or no result yet.
[[nodiscard]] std::shared_ptr<const TokenSpans> searched_spans(Session& session, const Document& document);

}  // namespace kvscope::gui
