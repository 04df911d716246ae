#pragma once

#include <string>

#include "app/gui/inspector/token_question.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Notes on tokens. They are kept in a file beside the trace (document.h).
class TokenNotes {
 public:
    /// The field of the note on the selected tokens, and the list. What was written is taken over when the field is
    /// left or Enter is pressed.
    void draw(Context& context, Document& document, const TokenQuestion& asked);
    /// Those on the document's prompt, each a click away; nothing where there are none.
    static void draw_list(Context& context, const Document& document);

 private:
    std::string text_;
    bool is_writing_ = false;
};

}  // namespace kvscope::gui
