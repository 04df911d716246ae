#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/gui/inspector/token_question.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Notes on tokens. They are kept in a file beside the trace (document.h).
class TokenNotes {
 public:
    /// The field of the note on the selected tokens, and the list. What was written is taken over when the field is
    /// left, by whatever way, or Enter is pressed.
    void draw(Context& context, Document& document, const TokenQuestion& asked);
    /// In place of `draw` where no token is shown: takes over what was written.
    void finish(Session& session);
    /// Those on the document's prompt, each a click away; nothing where there are none.
    static void draw_list(Context& context, const Document& document);

 private:
    struct Place {
        int document;
        int prompt;
        int64_t first_token, last_token;
        bool operator==(const Place&) const = default;
    };
    void draw_field(Session& session, const Document& document, const Place& here);

    std::string text_;
    std::optional<Place> writing_;  ///< what `text_` is on while the field has the keyboard
};

}  // namespace kvscope::gui
