#include "app/gui/inspector/token_question.h"

namespace kvscope::gui {

TokenQuestion token_question(const Session& session) {
    const auto usable = [&](const RunKey& key) {
        return session.exists(key) && session.attributes(key).status == "complete";
    };
    for (const Cursor* cursor : {&session.cursor(), &session.hover()}) {
        if (!cursor->has_tokens()) continue;
        TokenQuestion asked{cursor->run, cursor->first_token, cursor == &session.hover()};
        if (!usable(asked.run)) {
            for (const RunKey& key : session.visible_runs(true)) {
                if (cursor->run.document >= 0 && key.document != cursor->run.document) continue;
                asked.run = key;
                break;
            }
        }
        if (usable(asked.run) && session.document(asked.run)->prompt == asked.run.prompt) return asked;
    }
    return {};
}

}  // namespace kvscope::gui
