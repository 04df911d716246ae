#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/tables/letters_drawn_together.h"
#include "app/gui/view_data/prompt_text.h"

namespace kvscope::gui {

/// Adjacent tokens in a line, or a single token, that must be shaped as one text. Their letters join (Arabic, Indic
/// scripts, marks, emoji), or the tokens share the bytes of a character.
struct JoinedTokens {
    size_t first = 0;  ///< index into PromptLines::placed
    size_t end = 0;
    bool has_space = false;  ///< whether a space of the first token precedes `text`
    bool is_right_to_left = false;
    std::string text;            ///< text in the format of PromptText::shown
    std::vector<uint32_t> ends;  ///< byte offset in `text` of each token's end
};

using analysis::has_letters_drawn_together;
using analysis::is_drawn_with_next_token;

/// Joins the adjacent tokens `first` to `last`. The caller sets the fields `first` and `end` of the result.
[[nodiscard]] JoinedTokens join_tokens(const PromptText& prompt, uint32_t first, uint32_t last);

}  // namespace kvscope::gui
