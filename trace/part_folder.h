// The folder that an unfinished trace lives in:
//
//   t.h5.part/trace.json           format, version, generator, created_utc, the recipe, and whether t.h5 holds it all
//             lock                 held by the process that writes
//             base.h5              the complete trace that this one extends, under a second name; it holds the first
//                                  prompts and the first runs of each
//             model.h5             each a small trace of its own, whole once it has its name
//             prompt-0.h5
//             run-0-3.h5           run 3 of prompt 0
//             results-niah-0.h5    batch 0 of the task niah
//             run-0-2.damaged-1    a part that was found damaged, set aside and made again
//             answers.json         the window's: answers as far as they were decoded
//             *.tmp                being written; worthless after a crash
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "trace/hdf5.h"
#include "trace/store.h"

namespace kvscope::trace {

/// What the window keeps there beside the trace.
inline constexpr std::string_view answers_name = "answers.json";

/// The file that an output names: of a link to a file, that file.
std::filesystem::path linked_output(const std::filesystem::path& output);

/// "t.h5" → "t.h5.part". All links to a file have the folder of the file, so that its lock keeps their writers apart.
std::filesystem::path part_folder_of(const std::filesystem::path& output);

/// The trace that a folder's parts were joined into, once its writer has said so and removes the folder, or has removed
/// it; nothing while the folder is the trace. Throws as read_folder_record.
std::optional<std::filesystem::path> joined_trace(const std::filesystem::path& folder);

std::string base_part();
std::string model_part();
std::string prompt_part(int prompt);
std::string run_part(int prompt, int run);
std::string results_part(std::string_view task, int batch);

/// The file of a folder that holds a run: its own part, else the trace that the folder extends.
std::filesystem::path file_of_run(const std::filesystem::path& folder, int prompt, int run);

/// The finished parts of a folder, by their names alone; without those of the trace that it extends.
struct Parts {
    bool model = false;
    std::set<int> prompts;
    std::map<int, std::set<int>> runs;
    std::map<std::string, std::set<int>> results;

    [[nodiscard]] bool empty() const { return !model && prompts.empty() && runs.empty() && results.empty(); }
};
Parts list_parts(const std::filesystem::path& folder);

/// Opens a part for reading. Throws ReadFailed where the system does not let it be read now, and TruncatedTrace,
/// DamagedTrace, NotATrace where the contents prove that it is damaged. The caller holds a h5::Guard.
h5::Handle open_part(const std::filesystem::path& part);
/// Gives a damaged part another name, "run-0-2.damaged-1", so that it can be made again; nothing is deleted before the
/// trace is whole. Returns what to tell the person. Throws WriteFailed.
std::string set_damaged_part_aside(const std::filesystem::path& part, const std::string& reason);
bool is_set_aside(const std::filesystem::path& file);

/// trace.json; nothing if it is not there. Throws NotATrace, ReadFailed, TraceTooNew, DamagedTrace.
std::optional<RootAttributes> read_folder_record(const std::filesystem::path& folder);
void write_folder_record(const std::filesystem::path& folder, const RootAttributes& root);

/// Makes `trace` the one that the folder extends: by a hard link, or by a copy where the file system has none.
/// Replaces one that is there. Throws WriteFailed.
void add_base(const std::filesystem::path& folder, const std::filesystem::path& trace);

/// The name of something in the folder that no writer makes; empty where there is nothing else. Throws
/// std::filesystem::filesystem_error.
std::string foreign_entry(const std::filesystem::path& folder);
/// Removes what a crash left half written. Only while locked.
void remove_temporary_files(const std::filesystem::path& folder);
/// Removes the folder, trace.json last, so that a crash in between leaves nothing misleading.
void remove_folder(const std::filesystem::path& folder);

/// Keeps every other process off the folder. Released when destroyed, and by the kernel if the process ends.
class FolderLock {
 public:
    FolderLock() = default;
    /// Throws OutputBusy if another process has it, WriteFailed if the folder cannot be written.
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

/// Throws NotATrace or TraceTooNew unless these are a `format` and a `version` that this build reads.
void require_readable_version(const std::filesystem::path& file, const std::string& format, const std::string& version);

}  // namespace kvscope::trace
