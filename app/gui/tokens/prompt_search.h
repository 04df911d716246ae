#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/view/view.h"

namespace kvscope::gui {

/// (first, last) token of each.
using TokenSpans = std::vector<std::pair<int64_t, int64_t>>;

/// A field that searches the prompt as one types, and what it found.
class PromptSearch {
 public:
    /// The field, and how many matches there are; Ctrl+F, F3 and Shift+F3 wherever the keyboard is.
    void draw(Context& context, const Document& document);
    void set_text(const std::string& text) { text_ = text; }

    /// As draw() last found them; nullptr where nothing is searched.
    const TokenSpans* found() const { return found_.get(); }
    size_t current() const { return match_; }

 private:
    const TokenSpans& matches(Context& context, const Document& document);
    void go_to(Context& context, const Document& document, const TokenSpans& found, bool back);

    TaskSlot<TokenSpans> matches_;
    std::string text_;
    std::string searched_;                     ///< stamp of the matches that match_ counts in
    std::shared_ptr<const TokenSpans> found_;  ///< of this frame
    bool found_is_current_ = true;
    size_t match_ = std::string::npos;
};

}  // namespace kvscope::gui
