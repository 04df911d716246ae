#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kvscope::gui {

/// Thrown if a workspace is damaged, has a later version, or cannot be written.
struct WorkspaceError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Writes a workspace: a ZIP archive of traces, their annotations and `workspace.json` with layout, selection and a
/// list of the files. The write is atomic and does not replace a workspace of a later version.
/// @param files paths and their names in the archive, without folders
void write_workspace(const std::filesystem::path& path, const nlohmann::json& state,
                     const std::vector<std::pair<std::filesystem::path, std::string>>& files);

/// Returns the name of the folder for unpacking: "mine-1f0c…". The name depends on the file's path and contents.
std::string unpacking_folder_name(const std::filesystem::path& path);

/// Returns the state of a workspace and unpacks missing files into `folder`, each atomically. Throws WorkspaceError if
/// the archive is damaged or unsafe, e.g. has links or unlisted files, or if the disk is full.
nlohmann::json unpack_workspace(const std::filesystem::path& path, const std::filesystem::path& folder);

/// Protects an existing folder from remove_unpacked_workspaces() of any process.
class FolderInUse {
 public:
    explicit FolderInUse(const std::filesystem::path& folder);
    FolderInUse(const FolderInUse&) = delete;
    FolderInUse& operator=(const FolderInUse&) = delete;
    ~FolderInUse();

 private:
    int file_;
};

/// Removes unpacked files from the subfolders of `folder`, except open workspaces and changed or added files.
void remove_unpacked_workspaces(const std::filesystem::path& folder);

}  // namespace kvscope::gui
