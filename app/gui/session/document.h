#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/session/run_selection.h"
#include "app/gui/session/unfinished_answers.h"
#include "app/gui/session/unique_id.h"
#include "trace/reader.h"

namespace kvscope::gui {

/// The user's note on some tokens of a prompt.
struct Note {
    int prompt = 0;
    int64_t first_token = 0;
    int64_t last_token = 0;
    std::string text;
    std::string unknown_json;  ///< unknown fields from a later version of kvscope; may be empty
};

/// A question asked of a run's cache after the trace was made, and its answer. The text grows during decoding.
struct FurtherAnswer {
    int id = -1;
    int prompt = 0;
    RunId asked = {};     ///< the run, if it is known
    int run_number = -1;  ///< number of the run in the trace; −1 for a what-if
    std::string run;      ///< recorded label of the run
    std::string question;
    std::string text;
    std::string remark;  ///< a remark to show with the answer; may be empty
    bool finished = false;
    std::string error;         ///< why there is no answer; empty on success
    std::string unknown_json;  ///< unknown fields from a later version of kvscope; may be empty
};

/// Settings from which the kept sets of a what-if are computed again. Stored in the annotations file.
struct KeptWhatIf {
    int prompt = 0;
    int run_number = -1;  ///< number of the source run in the trace
    std::string run;      ///< label of the source run
    std::string parameters_json;
    int64_t budget = 0;
    bool tried = false;            ///< the what-if could not be restored
    std::string unknown_json;      ///< unknown fields from a later version of kvscope; may be empty
    std::string answer_json = {};  ///< decoded answer; may be empty
};

/// A label that the user has given to a run of the trace.
struct GivenLabel {
    int prompt = 0;
    int run_number = -1;  ///< number of the run in the trace
    std::string run;      ///< recorded label of the run
    std::string label;
    std::string unknown_json = {};  ///< unknown fields from a later version of kvscope; may be empty
    bool operator==(const GivenLabel&) const = default;
};

/// Whether a text can be a label: it has more than spaces and no "##", from which ImGui hides the rest of a label.
bool can_be_label(const std::string& label);

/// A run and the reader that contains it. Can be passed to worker threads.
struct RunAt {
    std::shared_ptr<const trace::Reader> reader;
    int prompt = 0;
    int run = 0;  ///< index in the reader's prompt

    trace::Place place() const { return trace::Place::of_run(prompt, run); }
    const trace::RunAttributes& attributes() const { return reader->run(prompt, run); }
    std::shared_ptr<const trace::Kept> kept() const { return reader->kept(prompt, run); }
    size_t n_rows() const { return reader->n_rows(prompt, run); }
};

/// An open trace. The file is never edited. Runs that the app adds are held in memory and come after the runs of the
/// file: first those that the current job has finished so far, then what-ifs. A run keeps its id when other runs are
/// added or removed, and when a run of a job gets written to the file. Ids are not reused.
class Document {
 public:
    /// @param is_written see Session::open()
    /// @throws the exceptions of trace::Reader
    Document(int id, const std::filesystem::path& path, bool is_written = false);

    int id() const { return id_; }
    const std::filesystem::path& path() const { return path_; }
    bool is_written() const { return is_written_; }
    /// Marks the trace as being written by a job, to the given path.
    void set_written(const std::filesystem::path& path) {
        path_ = path;
        is_written_ = true;
        unfinished_answers_.clear();
    }
    /// Whether only the folder of an unfinished trace exists.
    bool is_unfinished() const { return !file_->complete() && file_->path().extension() == ".part"; }
    /// Answers of runs that are not in the file yet, if the trace is unfinished and no job writes it.
    const std::vector<UnfinishedAnswer>& unfinished_answers() const { return unfinished_answers_; }
    std::string name() const { return path_.filename().string(); }

    /// Reader of the file's runs followed by the runs in memory. Can be passed to other threads.
    const std::shared_ptr<const trace::Reader>& reader() const { return reader_; }
    /// Reader of the file's runs only.
    const std::shared_ptr<const trace::Reader>& file() const { return file_; }

    /// Reads the file again, e.g. after an unfinished trace has grown. Runs in memory stay, except runs of a job that
    /// are now in the file.
    /// @throws the exceptions of trace::Reader; the document is then unchanged
    void reload();

    /// Whether one of the prompts contains the text (see find_text). The last result is cached.
    bool has_text(const std::string& text) const;

    /// Whether the file at the path is now a different trace, with another recipe or other prompts. False if it has
    /// only grown.
    /// @throws the exceptions of trace::Reader
    bool is_of_another_trace() const;

    /// Adds or replaces finished runs of the current job, by their numbers in the trace. Ignores runs that the file
    /// already has.
    /// @throws std::invalid_argument if arrays do not fit; the document is then unchanged
    void set_pending_runs(int prompt, std::map<int, trace::RunRecord> runs_by_number);
    /// Adds a what-if.
    /// @param source run from which the what-if is derived
    /// @throws the exceptions of set_pending_runs()
    RunId add_run(int prompt, trace::RunRecord run, RunId source);
    /// Replaces the record of a what-if.
    /// @throws the exceptions of set_pending_runs(), and std::out_of_range if there is no such what-if
    void replace_run(RunId what_if, trace::RunRecord run);
    void remove_run(RunId what_if);
    /// Marks a what-if to be saved, so that it is there again when the trace is next opened.
    /// @param unknown_json see KeptWhatIf
    void keep_run(RunId what_if, const std::string& unknown_json = {});
    /// Returns the what-ifs to be saved, including those that have not been restored yet.
    std::vector<KeptWhatIf> kept_what_ifs() const;
    bool is_what_if(RunId run) const;
    /// Returns the run from which a what-if is derived, which may no longer exist. The id is invalid if `run` is not a
    /// what-if.
    RunId source_of(RunId run) const;
    /// Returns a stamp that changes only with this what-if, not when the file grows or a run is renamed.
    std::string what_if_stamp(RunId what_if) const;
    /// Returns the run with the same number in another prompt, or nullopt if there is none. For a what-if, this is the
    /// counterpart of its source. Numbers are compared because an unfinished prompt lacks some runs.
    std::optional<RunId> like(int prompt, RunId run, int other_prompt) const;
    /// Whether a job has finished the run, but the file does not contain it yet.
    bool is_pending(RunId run) const;

    /// Labels that the user has given, including those of runs that do not exist (yet). The reader applies them.
    const std::vector<GivenLabel>& given_labels() const { return given_labels_; }
    void set_given_labels(std::vector<GivenLabel> labels);
    /// Whether a run can be renamed. What-ifs cannot.
    bool can_be_renamed(int prompt, RunId run) const { return number_of(prompt, run).has_value(); }
    /// Gives a run a label. An empty or the recorded label removes the given one. No effect if the run cannot be
    /// renamed.
    void give_label(int prompt, RunId run, const std::string& label);

    /// Returns the id of the run at an index of the reader's prompt.
    /// @throws std::out_of_range if there is no such run
    RunId id_of(int prompt, int run) const;
    RunKey key_of(int prompt, int run) const { return {id_, prompt, id_of(prompt, run)}; }
    /// Returns the index of a run in the reader's prompt, or nullopt if the run no longer exists.
    std::optional<int> place_of(int prompt, RunId run) const;
    const std::vector<RunId>& runs(int prompt) const;
    std::vector<RunKey> keys(int prompt) const;
    /// Returns the runs in display order: each what-if comes after its source.
    std::vector<RunId> shown_order(int prompt) const;

    /// Stamps for Tasks. stamp() changes with the file's contents and the given labels, run_stamp() also with the run.
    std::string stamp() const;
    std::string run_stamp(int prompt, RunId run) const;
    /// Stamp that changes with any run of a prompt.
    std::string runs_stamp(int prompt) const;

    int prompt = 0;                 ///< index of the shown prompt
    bool runs_were_chosen = false;  ///< the user has hidden or shown runs
    std::set<RunKey> hidden;
    std::map<int, std::set<int64_t>> pins;
    std::vector<Note> notes;
    std::vector<KeptWhatIf> saved_what_ifs;  ///< saved what-ifs that are not restored yet (see restore_what_ifs())
    bool annotations_changed =
        false;  ///< pins, notes, labels, further answers or kept what-ifs differ from the saved ones
    std::string annotations_in_file;               ///< annotations that were read or written last, as JSON
    std::vector<std::string> annotations_notices;  ///< messages about the annotations file for the user

    /// Returns the note on exactly these tokens of the shown prompt, or nullptr.
    const Note* note_on(int64_t first_token, int64_t last_token) const {
        return note_on(prompt, first_token, last_token);
    }
    /// Sets or changes the note on tokens of a prompt (default: the shown prompt). An empty text removes the note.
    void write_note(int of_prompt, int64_t first_token, int64_t last_token, const std::string& text);
    void write_note(int64_t first_token, int64_t last_token, const std::string& text) {
        write_note(prompt, first_token, last_token, text);
    }
    void toggle_pin(int64_t token);

    const std::vector<FurtherAnswer>& further_answers() const { return further_answers_; }  ///< oldest first
    /// Replaces the further answers by saved ones and gives them ids.
    void set_further_answers(std::vector<FurtherAnswer> answers);
    void remove_further_answer(int id);
    /// Adds an unfinished answer of a run and returns its id.
    int add_further_answer(const RunKey& run, const std::string& question);
    /// Returns nullptr if the answer was removed.
    FurtherAnswer* further_answer(int id);
    /// Returns the run with this number and recorded label; for number −1, the what-if with this label. Returns nullopt
    /// if there is none.
    std::optional<RunId> run_called(int prompt, int run_number, const std::string& label) const;
    /// Returns the run that gave an answer. The id is invalid if the run no longer exists.
    RunId run_of(const FurtherAnswer& answer) const;

 private:
    /// A run in memory. Each change gets a new version number, unique in this document.
    struct MemoryRun {
        RunId id;
        std::shared_ptr<const trace::RunRecord> record;
        uint64_t version;
        RunId source = {};  ///< set for what-ifs
        bool kept = false;
        std::string unknown_json = {};  ///< set for kept what-ifs, see KeptWhatIf
    };
    struct MemoryRuns {
        std::map<int, MemoryRun> pending;  ///< by number in the trace
        std::vector<MemoryRun> added;
    };
    /// A run of the trace, which may still be only in memory.
    struct Numbered {
        std::string label;
        RunId id;
    };

    const Note* note_on(int of_prompt, int64_t first_token, int64_t last_token) const;
    /// Returns where the trace is at present: at its path or in the folder of an unfinished trace.
    std::filesystem::path source() const;
    /// Sets the path to the finished file if the trace was opened as an unfinished folder and is now complete.
    void follow_to_finished_file();
    void show(std::shared_ptr<const trace::Reader> file, std::map<int, MemoryRuns> memory);
    void number_runs_of_file();
    void label_runs();
    RunId numbered(int prompt, int number, const std::string& label);
    const MemoryRun* memory_run(RunId run) const;
    /// Returns the run's number and recorded label, which identify it in the annotations; nullopt for a what-if.
    std::optional<std::pair<int, std::string>> number_of(int prompt, RunId run) const;

    int id_;
    std::filesystem::path path_;
    bool is_written_ = false;
    std::vector<UnfinishedAnswer> unfinished_answers_;
    std::shared_ptr<const trace::Reader> file_;
    std::shared_ptr<const trace::Reader> reader_;
    std::map<int, MemoryRuns> memory_;
    uint64_t file_version_ = unique_id();
    /// Last query of has_text(), the file version it was made for, and its result.
    struct SearchedText {
        std::string text;
        uint64_t file_version = 0;
        bool is_there = false;
    };
    mutable SearchedText searched_text_;
    uint64_t run_version_ = 0;
    std::vector<GivenLabel> given_labels_;
    uint64_t labels_version_ = 0;
    std::map<int, std::vector<RunId>> in_file_;         ///< by prompt
    std::map<int, std::vector<RunId>> runs_;            ///< by prompt, in the reader's order
    std::map<std::pair<int, int>, Numbered> numbered_;  ///< by prompt and number in the trace
    int64_t next_id_ = 0;
    std::vector<FurtherAnswer> further_answers_;
    int next_answer_ = 0;
};

}  // namespace kvscope::gui
