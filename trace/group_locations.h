// Finds the groups of a trace: all in one file, or in the files of a `.part` folder.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trace/hdf5/hdf5.h"
#include "trace/store_records.h"

namespace kvscope::trace {

struct GroupPlace {
    std::filesystem::path file;
    std::string group;  ///< HDF5 path of the group
    int number = 0;     ///< number of the prompt, run or batch
};

struct PromptPlace : GroupPlace {
    std::vector<GroupPlace> runs;
};

class Source {
 public:
    /// Opens a file, a `.part` folder, or an output of which only the `.part` folder exists. Requires an h5::Guard.
    /// Throws NotATrace, ReadFailed, TruncatedTrace, TraceTooNew, DamagedTrace.
    explicit Source(std::filesystem::path path);

    std::filesystem::path path;  ///< the file or the folder
    bool is_folder = false;
    RootAttributes root;
    std::string version;
    std::optional<std::filesystem::path> base;  ///< the trace that the folder extends
    std::optional<GroupPlace> model;
    std::vector<PromptPlace> prompts;                        ///< in ascending order of numbers
    std::map<std::string, std::vector<GroupPlace>> results;  ///< result tables by task

    /// Returns an open file. The last few files that were used stay open.
    [[nodiscard]] const h5::Handle& open(const std::filesystem::path& file);

 private:
    void find_in_file();
    void find_groups(const std::filesystem::path& file);
    void find_in_folder();

    std::deque<std::pair<std::filesystem::path, h5::Handle>> open_files_;
};

[[nodiscard]] std::optional<std::string> read_root_text_attribute(hid_t file, const std::string& name);

}  // namespace kvscope::trace
