#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kvscope::gui {

/// A workspace file is damaged, has a later version, or cannot be written.
struct WorkspaceError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Writes a workspace, one file to share: a ZIP archive of traces, their annotations and `workspace.json`. The latter
/// has the layout, the selection and a list of the files with their sizes. The write is atomic and does not replace a
/// workspace of a later version.
/// @param files paths and their names in the archive, without folders
/// @throws WorkspaceError
void write_workspace(const std::filesystem::path& path, const nlohmann::json& state,
                     const std::vector<std::pair<std::filesystem::path, std::string>>& files);

/// Returns the name of the folder to unpack a workspace into: "mine-1f0c…". It depends on the file's path and contents.
/// @throws WorkspaceError
std::string workspace_folder_name(const std::filesystem::path& path);

/// Returns the state of a workspace and unpacks its files into `folder`, except files that are already there. Each file
/// is written atomically.
/// @throws WorkspaceError if a file is not listed in the state, has another size than listed, is a link, occurs twice
/// or would leave the folder, if the contents are larger than the archive, or if the disk is full
nlohmann::json read_workspace(const std::filesystem::path& path, const std::filesystem::path& folder);

/// Protects a folder from clean_workspaces() of any process during its lifetime. No effect if the folder does not
/// exist.
class FolderInUse {
 public:
    explicit FolderInUse(const std::filesystem::path& folder);
    FolderInUse(const FolderInUse&) = delete;
    FolderInUse& operator=(const FolderInUse&) = delete;
    ~FolderInUse();

 private:
    int file_;
};

/// Removes files that can be unpacked again, and remains of interrupted unpacking, from the folders in `folder`. Skips
/// folders of open workspaces. Files that were changed or added since, such as annotations, stay.
void clean_workspaces(const std::filesystem::path& folder);

}  // namespace kvscope::gui
