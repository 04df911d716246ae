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

#include "app/gui/session/selection.h"
#include "app/gui/session/unfinished_answers.h"
#include "common/unique_id.h"
#include "trace/reader.h"

namespace kvscope::gui {

struct Note {
    int prompt = 0;
    int64_t first_token = 0;
    int64_t last_token = 0;
    std::string text;
    std::string unknown_json;  ///< unknown fields from a later version of kvscope; may be empty
};

/// A question asked of a run after the trace was made, and the answer. The text grows during decoding.
struct FurtherAnswer {
    int id = -1;
    int prompt = 0;
    RunId asked = {};     ///< id of the run; invalid if unknown
    int run_number = -1;  ///< number of the run in the trace; −1 for a what-if
    std::string run;      ///< recorded label of the run
    std::string question;
    std::string text;
    std::string remark;  ///< a remark to show with the answer; may be empty
    bool finished = false;
    std::string error;         ///< why there is no answer; empty on success
    std::string unknown_json;  ///< unknown fields from a later version of kvscope; may be empty
};

/// A what-if saved with the annotations. Its kept sets are computed again from these settings.
struct KeptWhatIf {
    int prompt = 0;
    int run_number = -1;  ///< number of the source run in the trace
    std::string run;      ///< label of the source run
    std::string parameters_json;
    int64_t budget = 0;
    bool tried = false;            ///< restoring the what-if has failed
    std::string unknown_json;      ///< unknown fields from a later version of kvscope; may be empty
    std::string answer_json = {};  ///< decoded answer; may be empty
};

struct GivenLabel {
    int prompt = 0;
    int run_number = -1;  ///< number of the run in the trace
    std::string run;      ///< recorded label of the run
    std::string label;
    std::string unknown_json = {};  ///< unknown fields from a later version of kvscope; may be empty
    [[nodiscard]] bool operator==(const GivenLabel&) const = default;
};

/// Whether a text can be a label. A label has more than spaces and no "##", which Dear ImGui does not display.
[[nodiscard]] bool can_be_label(const std::string& label);

/// A run and the reader that contains it. Can be passed to worker threads.
struct RunAt {
    std::shared_ptr<const trace::Reader> reader;
    int prompt = 0;
    int run = 0;  ///< index in the reader's prompt

    [[nodiscard]] trace::Place place() const { return trace::Place::of_run(prompt, run); }
    [[nodiscard]] const trace::RunAttributes& attributes() const { return reader->run(prompt, run); }
    [[nodiscard]] std::shared_ptr<const trace::Kept> kept() const { return reader->kept(prompt, run); }
    [[nodiscard]] size_t n_rows() const { return reader->n_rows(prompt, run); }
    [[nodiscard]] RunAt with_stop(const std::stop_token& stop) const {
        return {std::make_shared<const trace::Reader>(reader->with_stop(stop)), prompt, run};
    }
};

/// An open trace. Its file is never changed. Runs that the app adds stay in memory and come after the runs of the file:
/// first the finished runs of the current job, then what-ifs. A run keeps its id for the lifetime of the document.
class Document {
 public:
    Document(int id, std::filesystem::path path, bool is_written = false);

    [[nodiscard]] int id() const { return id_; }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] bool is_written() const { return is_written_; }
    void set_written(const std::filesystem::path& path) {
        path_ = path;
        is_written_ = true;
        unfinished_answers_.clear();
    }
    /// Whether only the folder of an unfinished trace exists.
    [[nodiscard]] bool is_unfinished() const { return !file_->complete() && file_->path().extension() == ".part"; }
    /// Answers of the runs that are missing in an unfinished trace. Empty while a job writes the trace.
    [[nodiscard]] const std::vector<UnfinishedAnswer>& unfinished_answers() const { return unfinished_answers_; }
    [[nodiscard]] std::string name() const { return path_.filename().string(); }

    /// Returns a reader of the file's runs, followed by the runs in memory. Can be passed to other threads.
    [[nodiscard]] const std::shared_ptr<const trace::Reader>& reader() const { return reader_; }
    [[nodiscard]] const std::shared_ptr<const trace::Reader>& file() const { return file_; }

    /// Reads the file again and drops runs in memory that are now in the file. If this throws, nothing changes.
    void reload();

    [[nodiscard]] bool has_text(const std::string& text) const;

    /// Whether the file now contains a different trace, with another recipe or other prompts.
    [[nodiscard]] bool is_of_another_trace() const;

    /// Adds or replaces finished runs that the file lacks. Throws std::invalid_argument for arrays of the wrong shape.
    void set_pending_runs(int prompt, std::map<int, trace::RunRecord> runs_by_number);
    /// Adds a what-if of the run `source`. Throws like set_pending_runs().
    RunId add_run(int prompt, trace::RunRecord run, RunId source);
    /// Throws std::out_of_range if the what-if does not exist, and the exceptions of set_pending_runs().
    void replace_run(RunId what_if, trace::RunRecord run);
    void remove_run(RunId what_if);
    void keep_run(RunId what_if, const std::string& unknown_json = {});
    [[nodiscard]] std::vector<KeptWhatIf> kept_what_ifs() const;
    [[nodiscard]] bool is_what_if(RunId run) const;
    /// Returns the source of a what-if, which may no longer exist. Returns an invalid id if `run` is not a what-if.
    [[nodiscard]] RunId source_of(RunId run) const;
    [[nodiscard]] std::string what_if_stamp(RunId what_if) const;
    /// Returns the run with the same number in another prompt. For a what-if, returns the counterpart of its source.
    [[nodiscard]] std::optional<RunId> like(int prompt, RunId run, int other_prompt) const;
    /// Whether a job has finished the run, but the file does not contain it yet.
    [[nodiscard]] bool is_pending(RunId run) const;

    [[nodiscard]] const std::vector<GivenLabel>& given_labels() const { return given_labels_; }
    void set_given_labels(std::vector<GivenLabel> labels);
    [[nodiscard]] bool can_be_renamed(int prompt, RunId run) const { return number_of(prompt, run).has_value(); }
    /// Sets the label of a run. An empty text or the recorded label removes the user's label.
    void give_label(int prompt, RunId run, const std::string& label);

    /// Throws std::out_of_range if the run does not exist.
    [[nodiscard]] RunId id_of(int prompt, int run) const;
    [[nodiscard]] RunKey key_of(int prompt, int run) const { return {id_, prompt, id_of(prompt, run)}; }
    /// Returns the index of a run in the reader's prompt, or nullopt if the run no longer exists.
    [[nodiscard]] std::optional<int> place_of(int prompt, RunId run) const;
    [[nodiscard]] const std::vector<RunId>& runs(int prompt) const;
    [[nodiscard]] std::vector<RunKey> keys(int prompt) const;
    /// Returns the runs in display order, with what-ifs after their sources.
    [[nodiscard]] std::vector<RunId> shown_order(int prompt) const;

    /// Stamps for Tasks. All change with the file and the given labels. Stamps of runs also change with the runs.
    [[nodiscard]] std::string stamp() const;
    [[nodiscard]] std::string run_stamp(int prompt, RunId run) const;
    [[nodiscard]] std::string runs_stamp(int prompt) const;

    int prompt = 0;                 ///< index of the shown prompt
    bool runs_were_chosen = false;  ///< the user has hidden or shown runs
    std::set<RunKey> hidden;
    std::map<int, std::set<int64_t>> pins;
    std::vector<Note> notes;
    std::vector<KeptWhatIf> saved_what_ifs;  ///< saved what-ifs that are not restored yet (see restore_what_ifs())
    bool annotations_changed = false;        ///< the annotations differ from the saved ones
    std::string annotations_in_file;         ///< annotations that were read or written last, as JSON
    std::vector<std::string> annotations_notices;  ///< messages about the annotations file for the user

    [[nodiscard]] const Note* note_on(int64_t first_token, int64_t last_token) const {
        return note_on(prompt, first_token, last_token);
    }
    /// Sets the note on tokens of a prompt. An empty text removes the note.
    void write_note(int of_prompt, int64_t first_token, int64_t last_token, const std::string& text);
    void write_note(int64_t first_token, int64_t last_token, const std::string& text) {
        write_note(prompt, first_token, last_token, text);
    }
    void toggle_pin(int64_t token);

    [[nodiscard]] const std::vector<FurtherAnswer>& further_answers() const {
        return further_answers_;
    }  ///< oldest first
    void set_further_answers(std::vector<FurtherAnswer> answers);
    void remove_further_answer(int id);
    [[nodiscard]] int add_further_answer(const RunKey& run, const std::string& question);
    [[nodiscard]] FurtherAnswer* further_answer(int id);
    /// Returns the run with this number and recorded label. Number −1 stands for a what-if.
    [[nodiscard]] std::optional<RunId> run_called(int prompt, int run_number, const std::string& label) const;
    [[nodiscard]] RunId run_of(const FurtherAnswer& answer) const;

 private:
    struct MemoryRun {
        RunId id;
        std::shared_ptr<const trace::RunRecord> record;
        uint64_t version = 0;
        RunId source = {};  ///< set for what-ifs
        bool kept = false;
        std::string unknown_json = {};  ///< set for kept what-ifs, see KeptWhatIf
    };
    struct MemoryRuns {
        std::map<int, MemoryRun> pending;  ///< by number in the trace
        std::vector<MemoryRun> added;
    };
    struct Numbered {
        std::string label;
        RunId id;
    };

    [[nodiscard]] const Note* note_on(int of_prompt, int64_t first_token, int64_t last_token) const;
    [[nodiscard]] std::filesystem::path source() const;
    void follow_to_finished_file();
    void show(std::shared_ptr<const trace::Reader> file, std::map<int, MemoryRuns> memory);
    void number_runs_of_file();
    void label_runs();
    [[nodiscard]] RunId numbered(int prompt, int number, const std::string& label);
    [[nodiscard]] const MemoryRun* memory_run(RunId run) const;
    [[nodiscard]] std::optional<std::pair<int, std::string>> number_of(int prompt, RunId run) const;

    int id_;
    std::filesystem::path path_;
    bool is_written_ = false;
    std::vector<UnfinishedAnswer> unfinished_answers_;
    std::shared_ptr<const trace::Reader> file_;
    std::shared_ptr<const trace::Reader> reader_;
    std::map<int, MemoryRuns> memory_;
    uint64_t file_version_ = unique_id();
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
