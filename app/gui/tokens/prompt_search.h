#pragma once

#include <cstdint>
#include <memory>

#include "app/gui/session/prompt_text.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// A field that searches the prompt as one types, Session::search, and what it found.
class PromptSearch {
 public:
    /// The field, and how many matches there are; Ctrl+F, F3 and Shift+F3 wherever the keyboard is.
    void draw(Context& context, const Document& document);

    /// As draw() last found them; nullptr where nothing is searched.
    const TokenSpans* found() const { return found_.get(); }
    size_t current() const { return match_; }

 private:
    const TokenSpans& matches(Context& context, const Document& document);
    void go_to(Context& context, const Document& document, const TokenSpans& found, bool back);

    std::shared_ptr<const TokenSpans> found_;    ///< of this frame
    std::shared_ptr<const TokenSpans> counted_;  ///< those that match_ counts in
    size_t match_ = static_cast<size_t>(-1);
    enum class Wanted { none, last, next };
    Wanted wanted_ = Wanted::none;  ///< match to go to as soon as they are found
};

}  // namespace kvscope::gui
