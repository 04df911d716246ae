#include "app/gui/session/trace_names.h"

namespace kvscope::gui {

std::string trace_badge_of(const Document& document) { return std::to_string(document.id()); }

std::string badge_in_brackets(const Document& document) { return "[" + trace_badge_of(document) + "]"; }

std::string trace_title(const Session& session, const Document& document) {
    constexpr size_t most_characters = 24;
    const std::string name = session.name_of(document);
    return badge_in_brackets(document) + (name.size() <= most_characters ? " " + name : "");
}

std::string label_in_title(const Session& session, const RunKey& run) {
    const RunLook look = session.look(run);
    return look.trace.empty() ? look.label : trace_title(session, *session.document(run)) + ": " + look.run;
}

}  // namespace kvscope::gui
