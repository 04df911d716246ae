// Contents of the folder of an unfinished trace:
//
//   t.h5.part/trace.json           format, version, generator, created_utc, recipe, and whether t.h5 is complete
//             lock                 locked by the process that writes
//             base.h5              hard link to the complete trace that this trace extends
//             model.h5             a small trace; like the next three, renamed from *.tmp when complete
//             prompt-0.h5          prompt 0
//             run-0-3.h5           run 3 of prompt 0
//             results-niah-0.h5    batch 0 of the task niah
//             run-0-2.damaged-1    a damaged part that was set aside
//             answers.json         answers decoded so far, written by the app
//             *.tmp                incomplete files, useless after a crash
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "trace/hdf5/hdf5.h"
#include "trace/store_records.h"

namespace kvscope::trace {

inline constexpr std::string_view answers_name = "answers.json";

/// Returns the path of an output after links are resolved.
[[nodiscard]] std::filesystem::path resolve_output_links(const std::filesystem::path& output);

/// Returns "t.h5.part" for "t.h5". All links to a file have the same folder, so one lock covers all writers.
[[nodiscard]] std::filesystem::path part_folder_of(const std::filesystem::path& output);

/// Returns the joined trace, or nullopt if none exists. `folder` may be gone. Throws like read_folder_record().
[[nodiscard]] std::optional<std::filesystem::path> find_joined_trace(const std::filesystem::path& folder);

[[nodiscard]] std::string part_file_name_of_base_trace();
[[nodiscard]] std::string part_file_name_of_model();
[[nodiscard]] std::string part_file_name_of_prompt(int prompt);
[[nodiscard]] std::string part_file_name_of_run(int prompt, int run);
[[nodiscard]] std::string part_file_name_of_results(std::string_view task, int batch);

/// Returns the file that holds a run: the run's own part, or the trace that the folder extends.
[[nodiscard]] std::filesystem::path file_of_run(const std::filesystem::path& folder, int prompt, int run);

/// The finished parts in a folder, found by file name. Excludes the contents of the trace that the folder extends.
struct Parts {
    bool model = false;
    std::set<int> prompts;
    std::map<int, std::set<int>> runs;
    std::map<std::string, std::set<int>> results;

    [[nodiscard]] bool empty() const { return !model && prompts.empty() && runs.empty() && results.empty(); }
};
[[nodiscard]] Parts list_parts(const std::filesystem::path& folder);

/// Opens a part for reading. Requires an h5::Guard. Throws ReadFailed if the part cannot be read now; TruncatedTrace,
/// DamagedTrace or NotATrace if its contents are damaged.
[[nodiscard]] h5::Handle open_part(const std::filesystem::path& part);
/// Renames a damaged part, e.g. to "run-0-2.damaged-1". Returns a message for the user. Throws WriteFailed.
[[nodiscard]] std::string set_damaged_part_aside(const std::filesystem::path& part, const std::string& reason);
[[nodiscard]] bool is_damaged_part_set_aside(const std::filesystem::path& file);

/// Reads trace.json. Returns nullopt without such a file. Throws NotATrace, ReadFailed, TraceTooNew, DamagedTrace.
[[nodiscard]] std::optional<RootAttributes> read_folder_record(const std::filesystem::path& folder);
void write_folder_record(const std::filesystem::path& folder, const RootAttributes& root);

/// Makes `trace` the base of the folder, as a hard link or, if links fail, as a copy. Throws WriteFailed.
void link_or_copy_base_trace(const std::filesystem::path& folder, const std::filesystem::path& trace);

/// Returns the name of an item in the folder that no writer creates, or "" if there is no such item.
[[nodiscard]] std::string foreign_entry(const std::filesystem::path& folder);
/// Removes the temporary files that a crash left. The caller must hold the folder's lock.
void remove_temporary_files(const std::filesystem::path& folder);
/// Removes the folder. Deletes trace.json last, so that a folder is still recognized after an interrupted removal.
void remove_folder(const std::filesystem::path& folder);

/// Keeps other processes from writing the folder. The kernel releases the lock if the process ends.
class FolderLock {
 public:
    FolderLock() = default;
    explicit FolderLock(const std::filesystem::path& folder);
    FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    FolderLock& operator=(FolderLock&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~FolderLock();

 private:
    int descriptor_ = -1;
};

/// Throws NotATrace or TraceTooNew unless this build can read a trace with this format and version.
void require_readable_version(const std::filesystem::path& file, const std::string& format, const std::string& version);

}  // namespace kvscope::trace
