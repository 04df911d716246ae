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
    std::string unknown_json;  ///< what a later kvscope saved with it; empty: nothing
};

/// A question that a run's cache was asked after the trace was made, and what it answered; it grows while it is
/// decoded.
struct FurtherAnswer {
    int id = -1;
    int prompt = 0;
    int run_number = -1;  ///< in the trace; −1: a what-if
    std::string run;      ///< its label
    std::string question;
    std::string text;
    std::string remark;  ///< what has to be known about it; empty where nothing
    bool finished = false;
    std::string error;         ///< why there is none
    std::string unknown_json;  ///< what a later kvscope saved with it; empty: nothing
};

/// Settings of a what-if that is kept beside the trace: from them its selection is made again.
struct KeptWhatIf {
    int prompt = 0;
    int run_number = -1;  ///< in the trace, of the run that it came from
    std::string run;      ///< its label
    std::string parameters_json;
    int64_t budget = 0;
    bool tried = false;        ///< and could not be made again
    std::string unknown_json;  ///< what a later kvscope saved with it; empty: nothing
};

/// An open trace. The file is never edited; runs that the window adds are held in memory and stand behind those in it:
/// first what a job under way has kept so far, then what-ifs.
class Document {
 public:
    /// @throws what trace::Reader throws
    Document(int id, const std::filesystem::path& path);

    int id() const { return id_; }
    const std::filesystem::path& path() const { return path_; }
    std::string name() const { return path_.filename().string(); }

    /// The trace with the runs in memory behind those of the file. Safe to hand to other threads.
    const std::shared_ptr<const trace::Reader>& reader() const { return reader_; }
    /// The file alone.
    const std::shared_ptr<const trace::Reader>& file() const { return file_; }

    /// Reads the file anew: an unfinished trace has grown. Runs in memory stay. @throws what trace::Reader throws, and
    /// then everything is as it was.
    void reload();

    /// Replaces what a job under way has kept on a prompt. @throws std::invalid_argument for arrays that do not fit,
    /// and then everything is as it was.
    void set_pending_runs(int prompt, std::vector<trace::RunRecord> runs);
    /// Adds a what-if, numbered behind all other runs. @param source the run that it came from
    /// @returns its id, which stays while runs before it come and go. @throws as set_pending_runs
    int add_run(int prompt, trace::RunRecord run, int source);
    /// @throws as set_pending_runs; std::out_of_range where there is no such what-if
    void replace_run(int id, trace::RunRecord run);
    void remove_run(int id);
    /// A what-if is to be there again when the trace is opened the next time. None that came from a run in memory is.
    /// @param unknown_json as KeptWhatIf has it
    void keep_run(int id, const std::string& unknown_json = {});
    /// Those to be written beside the trace, also what was not made again yet.
    std::vector<KeptWhatIf> kept_what_ifs() const;
    /// The run of its prompt that a what-if is now; −1 where there is none of that id.
    int run_of(int id) const;
    /// The prompt of a what-if; −1 where there is none of that id.
    int prompt_of(int id) const;
    /// The id of a what-if; −1 for a run of the file, or pending.
    int added_id(int prompt, int run) const;
    /// A prompt's runs in the order in which they are shown: each what-if behind the run that it came from.
    std::vector<int> shown_order(int prompt) const;
    /// The run that a prompt's first what-if is, or would be.
    int first_added_run(int prompt) const;

    /// Changes whenever the file's part of the contents does, and whenever this run does: stamps for Tasks.
    std::string stamp() const;
    std::string run_stamp(int prompt, int run) const;

    int prompt = 0;                         ///< the one that is shown
    bool runs_were_chosen = false;          ///< a person has hidden or shown some
    std::set<RunKey> hidden;                ///< runs that views leave out
    std::map<int, std::set<int64_t>> pins;  ///< pinned tokens by prompt
    std::vector<Note> notes;
    std::vector<KeptWhatIf> saved_what_ifs;  ///< beside the trace, but not among the runs (restore_what_ifs())
    bool annotations_changed = false;        ///< pins, notes, further answers or kept what-ifs, since they were saved
    std::string annotations_in_file;         ///< what of them annotations.h read or wrote last, as JSON
    std::vector<std::string> annotations_notices;  ///< what a person is to be told about that file

    /// The note on exactly these tokens of the shown prompt; nullptr where there is none.
    const Note* note_on(int64_t first_token, int64_t last_token) const;
    /// Sets, changes or, with an empty text, takes away the note on these tokens of the shown prompt.
    void write_note(int64_t first_token, int64_t last_token, const std::string& text);
    void toggle_pin(int64_t token);

    const std::vector<FurtherAnswer>& further_answers() const { return further_answers_; }  ///< oldest first
    /// Those that were saved. Numbers them.
    void set_further_answers(std::vector<FurtherAnswer> answers);
    void remove_further_answer(int id);
    /// Begins an answer of a run of a prompt. @returns its id
    int add_further_answer(int prompt, int run, const std::string& question);
    /// nullptr where it was taken away.
    FurtherAnswer* further_answer(int id);
    /// The run of that number and label, −1: a what-if of that label; −1 where there is none.
    int run_called(int prompt, int run_number, const std::string& label) const;

 private:
    /// A run in memory. Its version is its own among all that ever were in this document.
    struct MemoryRun {
        std::shared_ptr<const trace::RunRecord> record;
        uint64_t version;
        int id;
        int source;  ///< of a what-if
        bool kept = false;
        std::string unknown_json = {};  ///< of a kept one, as KeptWhatIf has it
    };
    struct MemoryRuns {
        std::vector<MemoryRun> pending;
        std::vector<MemoryRun> added;
    };

    std::shared_ptr<const trace::Reader> with_runs(const std::map<int, MemoryRuns>& runs) const;
    void replace(std::map<int, MemoryRuns> runs);
    MemoryRun in_memory(trace::RunRecord run, int id, int source);

    int id_;
    std::filesystem::path path_;
    std::shared_ptr<const trace::Reader> file_;
    std::shared_ptr<const trace::Reader> reader_;
    std::map<int, MemoryRuns> memory_;
    uint64_t file_version_ = 0;
    uint64_t run_version_ = 0;
    int next_id_ = 0;
    std::vector<FurtherAnswer> further_answers_;
    int next_answer_ = 0;
};

}  // namespace kvscope::gui
