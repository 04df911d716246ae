#include "app/gui/session/trace_names.h"

#include <algorithm>

namespace kvscope::gui {

std::string badge_of(const Session& session, const Document& document) {
    const auto& all = session.documents();
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.get() == &document; });
    return std::to_string(found - all.begin() + 1);
}

std::string title_of(const Session& session, const Document& document) {
    constexpr size_t most_characters = 24;
    std::string name = session.name_of(document);
    return name.size() <= most_characters ? name : "[" + badge_of(session, document) + "]";
}

std::string label_in_title(const Session& session, const RunKey& run) {
    const RunLook look = session.look(run);
    return look.trace.empty() ? look.label : title_of(session, *session.document(run)) + ": " + look.run;
}

}  // namespace kvscope::gui
