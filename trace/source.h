// Where the groups of a trace lie: all in one file, or each in a file of a `.part` folder.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trace/hdf5.h"
#include "trace/store.h"

namespace kvscope::trace {

struct GroupPlace {
    std::filesystem::path file;
    std::string group;  ///< HDF5 path
    int number = 0;     ///< of the prompt, run or batch
};

struct PromptPlace : GroupPlace {
    std::vector<GroupPlace> runs;
};

class Source {
 public:
    /// `path` is a file, a `.part` folder, or an output of which only the folder is there. The caller
    /// holds a h5::Guard. Throws NotATrace, ReadFailed, TruncatedTrace, TraceTooNew, DamagedTrace.
    explicit Source(const std::filesystem::path& path);

    std::filesystem::path path;  ///< the file or the folder
    bool is_folder = false;
    RootAttributes root;
    std::string version;
    std::optional<std::filesystem::path> base;  ///< the trace that a folder extends
    std::optional<GroupPlace> model;
    std::vector<PromptPlace> prompts;                        ///< ascending numbers
    std::map<std::string, std::vector<GroupPlace>> results;  ///< data sets, by task

    /// An open file, kept open while it is among the last few used.
    const h5::Handle& open(const std::filesystem::path& file);

 private:
    void find_in_file();
    void find_groups(const std::filesystem::path& file);
    void find_in_folder();

    std::deque<std::pair<std::filesystem::path, h5::Handle>> open_files_;
};

/// The text of a scalar attribute of `/`, or nothing.
std::optional<std::string> root_text(hid_t file, const std::string& name);

}  // namespace kvscope::trace
