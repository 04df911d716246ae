#include "app/gui/inspector/inspected_token.h"

#include <algorithm>

namespace kvscope::gui {

InspectedToken find_inspected_token(const Session& session) {
    const auto usable = [&](const RunKey& key) {
        return session.exists(key) && session.attributes(key).status == "complete";
    };
    for (const bool is_hover : {false, true}) {
        const Cursor cursor = is_hover ? session.hover() : session.cursor();
        if (!cursor.has_tokens()) continue;
        InspectedToken asked{cursor.run, cursor.first_token, is_hover,
                             is_hover ? cursor.first_token : cursor.last_token};
        const auto& flicker = session.pair.flicker;  // the only visible run
        if (flicker && flicker->document == cursor.run.document && flicker->prompt == cursor.run.prompt)
            asked.run = *flicker;
        if (!usable(asked.run)) {
            for (const RunKey& key : session.visible_runs(true)) {
                if (cursor.run.document >= 0 && key.document != cursor.run.document) continue;
                asked.run = key;
                break;
            }
        }
        if (!usable(asked.run)) continue;
        const Document& document = *session.document(asked.run);
        if (document.prompt != asked.run.prompt) continue;
        // Policies do not decide about the question, so the range ends before it.
        const int64_t n_visible = document.reader()->prompt(asked.run.prompt).visible_tokens();
        if (asked.token < n_visible) asked.last_token = std::min(asked.last_token, n_visible - 1);
        return asked;
    }
    return {};
}

}  // namespace kvscope::gui
