#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "app/gui/session/document.h"

namespace kvscope::gui {

/// Returns the path of the annotations file of a trace. The file holds what the app adds to the trace: pins, notes, run
/// labels, further answers, kept what-ifs and the view state. The trace itself is never edited. If a later version of
/// kvscope has written the usual file, the path is "….notes.v1.json", and the other file stays unchanged.
std::filesystem::path annotations_path(const std::filesystem::path& trace);

/// Returns the annotations files of a trace that exist, including those of later versions of kvscope.
std::vector<std::filesystem::path> annotation_files(const std::filesystem::path& trace);

/// Reads the annotations of a document. `annotations_notices` lists what cannot be parsed. That part stays in the file.
void load_annotations(Document& document);
/// Returns the view state that was saved last (see view_state()), or null if there is none.
nlohmann::json load_view(const std::filesystem::path& trace);

/// Writes the annotations of a document and its view state, or removes the file if both are empty. The write is atomic.
/// Changes that other processes made since the file was read stay, and so do fields of later versions of kvscope. An
/// unreadable file is not replaced for the view state alone. For annotations it is first renamed, and
/// `annotations_notices` reports the new name.
/// @throws std::runtime_error if the file cannot be written
void save_annotations(Document& document, const nlohmann::json& view);

}  // namespace kvscope::gui
