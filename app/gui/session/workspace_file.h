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
/// layout, selection and a list of the files with their sizes. `files`: what is carried, with its name in the archive,
/// which names no folder. Whole or not at all, and never over
/// the workspace of a later kvscope.
/// @throws WorkspaceError
void write_workspace(const std::filesystem::path& path, const nlohmann::json& state,
                     const std::vector<std::pair<std::filesystem::path, std::string>>& files);

/// "mine-1f0c…": the name of a folder that only this file, with these contents, is unpacked into. @throws
/// WorkspaceError
std::string workspace_folder_name(const std::filesystem::path& path);

/// Returns a workspace's state, and unpacks those of its files into `folder` that are not there yet, whole or not at
/// all.
/// @throws WorkspaceError for what its state does not list, names that lead out of the folder or come twice, links,
///         sizes that differ from those listed, more contents than the archive has bytes, too little room on the disk
nlohmann::json read_workspace(const std::filesystem::path& path, const std::filesystem::path& folder);

/// While it lives, `clean_workspaces` of any process leaves the folder alone. One that is not there is none.
class FolderInUse {
 public:
    explicit FolderInUse(const std::filesystem::path& folder);
    FolderInUse(const FolderInUse&) = delete;
    FolderInUse& operator=(const FolderInUse&) = delete;
    ~FolderInUse();

 private:
    int file_;
};

/// Removes from the folders in `folder` what can be unpacked again: files as they were in the archive, of workspaces
/// that nobody has open, and all that unpacking left behind when it was interrupted. What was written there stays:
/// notes.
void clean_workspaces(const std::filesystem::path& folder);

}  // namespace kvscope::gui
