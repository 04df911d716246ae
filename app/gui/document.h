#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/gui/selection.h"
#include "trace/reader.h"

namespace kvscope::gui {

/// A person's words about some tokens of a prompt.
struct Note {
    int prompt = 0;
    int64_t first_token = 0;
    int64_t last_token = 0;
    std::string text;
};

/// An open trace. The file is never edited; runs that the window adds (what-if) are held in memory beside those in it.
class Document {
 public:
    /// @throws what trace::Reader throws
    Document(int id, const std::filesystem::path& path);

    int id() const { return id_; }
    const std::filesystem::path& path() const { return path_; }
    std::string name() const { return path_.filename().string(); }

    /// The trace with the added runs behind those of the file. Safe to hand to other threads.
    const std::shared_ptr<const trace::Reader>& reader() const { return reader_; }
    /// The file alone.
    const std::shared_ptr<const trace::Reader>& file() const { return file_; }

    /// Reads the file anew: an unfinished trace has grown. Added runs stay. @throws what trace::Reader throws, and then
    /// everything is as it was.
    void reload();

    /// Replaces the runs that the window has added to a prompt. @throws std::invalid_argument for arrays that do not
    /// fit.
    void set_added_runs(int prompt, std::vector<trace::RunRecord> runs);
    int n_added_runs(int prompt) const;

    /// Changes whenever the file's part of the contents does, and whenever this run does: stamps for Tasks.
    std::string stamp() const;
    std::string run_stamp(int prompt, int run) const;

    int prompt = 0;                         ///< the one that is shown
    std::set<RunKey> hidden;                ///< runs that views leave out
    std::map<int, std::set<int64_t>> pins;  ///< pinned tokens by prompt
    std::vector<Note> notes;

 private:
    void rebuild();

    int id_;
    std::filesystem::path path_;
    std::shared_ptr<const trace::Reader> file_;
    std::shared_ptr<const trace::Reader> reader_;
    std::map<int, std::vector<trace::RunRecord>> added_;
    std::map<int, uint64_t> added_version_;
    uint64_t file_version_ = 0;
};

}  // namespace kvscope::gui
