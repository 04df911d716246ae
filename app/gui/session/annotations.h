#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "app/gui/session/document.h"

namespace kvscope::gui {

/// The file beside a trace that holds what the window adds to it: pins, notes, labels of runs, further answers, kept
/// what-ifs, how it
/// was looked at. The trace itself is never edited. Where a later kvscope has written it, this one leaves it as it is
/// and has a file of its own, "….notes.v1.json".
std::filesystem::path annotations_path(const std::filesystem::path& trace);

/// All of these files that are there, also the later kvscope's, to be carried with the trace.
std::vector<std::filesystem::path> annotation_files(const std::filesystem::path& trace);

/// Reads what is there into a document. What cannot be understood is told by `annotations_notices` and stays in the
/// file.
void load_annotations(Document& document);
/// How the trace was looked at when that was saved last; null where nothing is remembered.
nlohmann::json load_view(const std::filesystem::path& trace);

/// Writes a document's annotations and `view` (null: nothing to remember), whole or not at all, or removes the file
/// where there are none. What others wrote there since it was read stays, and so does what a later kvscope put beside
/// what this one knows. A file that cannot be read or understood is not written for the view's sake; for a person's
/// annotations it is first renamed, which is told by `annotations_notices`.
/// @throws std::runtime_error
void save_annotations(Document& document, const nlohmann::json& view);

}  // namespace kvscope::gui
