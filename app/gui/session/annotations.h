#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "app/gui/session/document.h"

namespace kvscope::gui {

/// Returns the trace's annotations file: "….notes.json", or "….notes.v1.json" if a later kvscope wrote "….notes.json".
[[nodiscard]] std::filesystem::path annotations_path(const std::filesystem::path& trace);

/// Returns all existing annotations files of a trace, including those of later versions.
[[nodiscard]] std::vector<std::filesystem::path> annotation_files(const std::filesystem::path& trace);

/// Reads the annotations of a document. Reports values that cannot be parsed in `annotations_notices`.
void load_annotations(Document& document);
/// Returns the saved view state (see trace_display_state()), or null.
[[nodiscard]] nlohmann::json load_trace_display(const std::filesystem::path& trace);

/// Writes annotations and view state atomically, or removes the file if both are empty. Keeps changes by other
/// processes and fields of later versions. Throws std::runtime_error if the file cannot be written.
void save_annotations(Document& document, const nlohmann::json& view);

}  // namespace kvscope::gui
