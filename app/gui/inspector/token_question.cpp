#include "app/gui/inspector/token_question.h"

namespace kvscope::gui {

TokenQuestion token_question(const Session& session) {
    const auto usable = [&](const RunKey& key) {
        return session.exists(key) && session.attributes(key).status == "complete";
    };
    for (const bool is_hover : {false, true}) {
        const Cursor cursor = is_hover ? session.hover() : session.cursor();
        if (!cursor.has_tokens()) continue;
        TokenQuestion asked{cursor.run, cursor.first_token, is_hover,
                            is_hover ? cursor.first_token : cursor.last_token};
        if (!usable(asked.run)) {
            for (const RunKey& key : session.visible_runs(true)) {
                if (cursor.run.document >= 0 && key.document != cursor.run.document) continue;
                asked.run = key;
                break;
            }
        }
        if (usable(asked.run) && session.document(asked.run)->prompt == asked.run.prompt) return asked;
    }
    return {};
}

}  // namespace kvscope::gui
