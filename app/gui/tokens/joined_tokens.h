#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/tables/joined_letters.h"
#include "app/gui/session/prompt_text.h"

namespace kvscope::gui {

/// Neighbouring tokens of a line that read right only as one text: letters that join across them (Arabic, Indic, marks,
/// emoji), or a character whose bytes they share. Or one token of such letters.
struct JoinedTokens {
    size_t first = 0;  ///< in PromptLines::placed
    size_t end = 0;
    bool has_space = false;  ///< the first token's blank stands before `text`
    bool is_right_to_left = false;
    std::string text;            ///< as PromptText::shown
    std::vector<uint32_t> ends;  ///< byte of `text` where each token ends
};

using analysis::is_set_as_one;
using analysis::joins_next;

/// Tokens first … last, which stand side by side, as one text; where they stand is for the caller to fill in.
JoinedTokens join_tokens(const PromptText& prompt, uint32_t first, uint32_t last);

}  // namespace kvscope::gui
