#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "app/gui/session/session.h"

namespace kvscope::gui {

/// Returns the open traces, selection, A and B, hidden runs, mark and token axis as JSON. `paths` has a path per trace.
[[nodiscard]] nlohmann::json session_state(const Session& session, const std::vector<std::filesystem::path>& paths);

/// Returns `state` with the fields of `before` that only a later version of kvscope knows.
[[nodiscard]] nlohmann::json with_fields_of_later_versions(nlohmann::json state, const nlohmann::json& before);

/// Opens the traces of a state and restores the rest. Relative paths start at `folder`. Returns a message per failure.
[[nodiscard]] std::vector<std::string> restore_session(Session& session, const nlohmann::json& state,
                                                       const std::filesystem::path& folder);

/// Returns the prompt, hidden runs, mark, A, B and selection of one trace as JSON.
[[nodiscard]] nlohmann::json trace_display_state(const Session& session, const Document& document);
/// Restores a view state without replacing an existing mark, A or B. Runs that have changed are ignored. The mark and
/// the selection are restored only if no other trace is open.
void restore_trace_display(Session& session, Document& document, const nlohmann::json& state);

}  // namespace kvscope::gui
