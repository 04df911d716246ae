#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kvscope::gui {

/// A workspace file is damaged, of a later version, or cannot be written.
struct WorkspaceError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// One file to hand to a colleague: a ZIP archive of the traces, the notes beside them, and `workspace.json` with
/// layout and selection. `files`: what is carried, with its name in the archive. Whole or not at all, and never over
/// the workspace of a later kvscope.
/// @throws WorkspaceError
void write_workspace(const std::filesystem::path& path, const nlohmann::json& state,
                     const std::vector<std::pair<std::filesystem::path, std::string>>& files);

/// "mine-1f0c…": the name of a folder that only this file, with these contents, is unpacked into. @throws
/// WorkspaceError
std::string workspace_folder_name(const std::filesystem::path& path);

/// Returns a workspace's state, and unpacks it into `folder` where that is not there yet, whole or not at all; a folder
/// that is there is left as it is. Names that lead out of the folder are refused. @throws WorkspaceError
nlohmann::json read_workspace(const std::filesystem::path& path, const std::filesystem::path& folder);

}  // namespace kvscope::gui
