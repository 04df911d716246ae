#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/token_texts.h"
#include "app/gui/session/tasks.h"

namespace kvscope::gui {

class Session;
class Document;

/// A prompt's tokens as a reader knows them.
struct PromptText : analysis::TokenTexts {
    std::vector<int32_t> ids;
    std::vector<std::string> shown;  ///< spaces as ·, line breaks as ↵, tabs as →, bytes that are no character as ⟨E2⟩
    uint64_t number = 0;             ///< its own: in the stamp of what is made of it
    int prompt = 0;                  ///< of its document
};

/// @param tokens as a trace has them: a byte that is no character alone is written ⟨E2⟩
PromptText make_prompt_text(std::vector<int32_t> ids, std::vector<std::string> tokens);

using analysis::shown_token;
using analysis::whole_characters;

/// The document's shown prompt: no value until it is read, whatever was shown before; why it cannot be read.
TaskResult<PromptText> ask_prompt_text(Session& session, const Document& document);
/// The same without the reason.
std::shared_ptr<const PromptText> prompt_text(Session& session, const Document& document);

/// (first, last) token of each.
using TokenSpans = std::vector<std::pair<int64_t, int64_t>>;

/// The spans of Session::mark in the document's shown prompt; none until they are found.
TokenSpans marked_spans(Session& session, const Document& document);
/// Those of Session::search; nullptr where nothing is searched, and until they are found.
std::shared_ptr<const TokenSpans> searched_spans(Session& session, const Document& document);

}  // namespace kvscope::gui
