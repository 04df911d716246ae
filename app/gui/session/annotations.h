#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "app/gui/session/document.h"

namespace kvscope::gui {

/// Returns the path of the annotations file of a trace: "….notes.json", or "….notes.v1.json" if a later version of
/// kvscope has written the former.
std::filesystem::path annotations_path(const std::filesystem::path& trace);

/// Returns all existing annotations files of a trace, including those of later versions.
std::vector<std::filesystem::path> annotation_files(const std::filesystem::path& trace);

/// Reads the annotations of a document. `annotations_notices` lists what cannot be parsed.
void load_annotations(Document& document);
/// Returns the view state that was saved last (see view_state()), or null.
nlohmann::json load_view(const std::filesystem::path& trace);

/// Writes the annotations of a document and its view state atomically, or removes the file if both are empty. Keeps
/// changes by other processes and fields of later versions. An unreadable file is renamed first, or kept if only the
/// view state has changed. Throws std::runtime_error if the file cannot be written.
void save_annotations(Document& document, const nlohmann::json& view);

}  // namespace kvscope::gui
