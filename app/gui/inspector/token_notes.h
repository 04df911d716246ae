#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/gui/inspector/inspected_token.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// A field and a list for notes on tokens. The notes are saved in the annotations.
class TokenNotes {
 public:
    /// Draws the field for the note on the selected tokens, and all notes. Saves the text when the field loses focus.
    void draw(Context& context, Document& document, const InspectedToken& asked);
    /// Saves the edited text. Call instead of draw() if no token is shown.
    void finish(Session& session);
    /// Draws the notes on the document's prompt, if any. A click selects the note's tokens.
    static void draw_list(Context& context, const Document& document);

 private:
    struct Place {
        int document;
        int prompt;
        int64_t first_token, last_token;
        [[nodiscard]] bool operator==(const Place&) const = default;
    };
    void draw_field(Session& session, const Document& document, const Place& here);

    std::string text_;
    std::optional<Place> writing_;  ///< place of the note in `text_` while it is edited
};

}  // namespace kvscope::gui
