#pragma once

#include <memory>

#include "app/gui/view/view.h"
#include "app/gui/view_data/prompt_text.h"

namespace kvscope::gui {

/// Search field for the prompt (Session::search) and its matches.
class PromptSearch {
 public:
    /// Draws the field and the number of matches. Handles Ctrl+F, F3 and Shift+F3 for any keyboard focus.
    void draw(Context& context, const Document& document);

    /// Returns the matches of the last draw(), or nullptr if there is no search.
    [[nodiscard]] const TokenSpans* found() const { return found_.get(); }
    [[nodiscard]] size_t current() const { return match_; }

 private:
    [[nodiscard]] const TokenSpans& matches(Context& context, const Document& document);
    void go_to(Context& context, const Document& document, const TokenSpans& found, bool back);

    std::shared_ptr<const TokenSpans> found_;    ///< matches in this frame
    std::shared_ptr<const TokenSpans> counted_;  ///< matches to which match_ is an index
    size_t match_ = static_cast<size_t>(-1);
    enum class Wanted { none, last, next };
    Wanted wanted_ = Wanted::none;  ///< match to select when the matches are known
};

}  // namespace kvscope::gui
