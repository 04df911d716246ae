#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "app/gui/session.h"

namespace kvscope::gui {

/// The session's open traces (`paths`, in their order), selection, A and B, hidden runs, mark and token axis.
nlohmann::json session_state(const Session& session, const std::vector<std::filesystem::path>& paths);

/// Opens what the state names, relative paths from `folder`, and goes to its selection. Traces that cannot be opened
/// are left out, with their messages returned; so is what no longer fits.
std::vector<std::string> restore_session(Session& session, const nlohmann::json& state,
                                         const std::filesystem::path& folder);

/// The file beside a trace that holds what the window adds to it: pins, notes, how it was looked at. The trace itself
/// is never edited.
std::filesystem::path annotations_path(const std::filesystem::path& trace);

/// How a trace is looked at: its prompt, hidden runs, the mark and, where they are its own, A, B and the selection.
nlohmann::json view_state(const Session& session, const Document& document);
/// Goes there. Runs that are others now are left out; mark and selection only where the trace is alone, and the mark,
/// A and B where there is none yet.
void restore_view(Session& session, Document& document, const nlohmann::json& state);
/// What save_annotations() wrote beside the trace; null where nothing is.
nlohmann::json load_view(const std::filesystem::path& trace);

/// Writes a document's annotations and `view` (null: nothing to remember), or removes the file where there are none.
/// @throws std::runtime_error
void save_annotations(const Document& document, const nlohmann::json& view);
/// Reads pins and notes where there are any; a damaged file is left alone and counts as none.
void load_annotations(Document& document);

}  // namespace kvscope::gui
