#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// The session's open traces (`paths`, in their order), selection, A and B, hidden runs, mark and token axis.
nlohmann::json session_state(const Session& session, const std::vector<std::filesystem::path>& paths);

/// A state with what `before`, which a later kvscope wrote, holds besides what this one knows.
nlohmann::json with_unknown(nlohmann::json state, const nlohmann::json& before);

/// Opens what the state names, relative paths from `folder`, and goes to its selection. Traces that cannot be opened
/// are left out, with their messages returned; so is what no longer fits.
std::vector<std::string> restore_session(Session& session, const nlohmann::json& state,
                                         const std::filesystem::path& folder);

/// How a trace is looked at: its prompt, hidden runs, the mark and, where they are its own, A, B and the selection.
nlohmann::json view_state(const Session& session, const Document& document);
/// Goes there. Runs that are others now are left out; mark and selection only where the trace is alone, and the mark,
/// A and B where there is none yet.
void restore_view(Session& session, Document& document, const nlohmann::json& state);

}  // namespace kvscope::gui
