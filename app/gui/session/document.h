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
    RunId asked = {};     ///< the run, where it is known
    int run_number = -1;  ///< in the trace; −1: a what-if
    std::string run;      ///< its label
    std::string question;
    std::string text;
    std::string remark;  ///< what has to be known about it; empty where nothing
    bool finished = false;
    std::string error;         ///< why there is none
    std::string unknown_json;  ///< what a later kvscope saved with it; empty: nothing
};

/// Settings of a what-if that is kept beside the trace, or was decoded: from them its selection is made again.
struct KeptWhatIf {
    int prompt = 0;
    int run_number = -1;  ///< in the trace, of the run that it came from
    std::string run;      ///< its label
    std::string parameters_json;
    int64_t budget = 0;
    bool tried = false;            ///< and could not be made again
    std::string unknown_json;      ///< what a later kvscope saved with it; empty: nothing
    std::string answer_json = {};  ///< what it was decoded to; empty: it was not
};

/// What a person calls a run of the trace.
struct GivenLabel {
    int prompt = 0;
    int run_number = -1;  ///< in the trace
    std::string run;      ///< its recorded label
    std::string label;
    std::string unknown_json = {};  ///< what a later kvscope saved with it; empty: nothing
    bool operator==(const GivenLabel&) const = default;
};

/// Not of spaces alone, and without "##", which would end what a widget shows of it.
bool can_be_label(const std::string& label);

/// A run as one reader has it: what a worker thread is given.
struct RunAt {
    std::shared_ptr<const trace::Reader> reader;
    int prompt = 0;
    int run = 0;  ///< of that reader's prompt

    trace::Place place() const { return trace::Place::of_run(prompt, run); }
    const trace::RunAttributes& attributes() const { return reader->run(prompt, run); }
    std::shared_ptr<const trace::Kept> kept() const { return reader->kept(prompt, run); }
    size_t n_rows() const { return reader->n_rows(prompt, run); }
};

/// An open trace. The file is never edited; runs that the window adds are held in memory and stand behind those in it:
/// first what a job under way has kept so far, then what-ifs. A run keeps its id while others come and go, and when a
/// job's run comes to be in the file; no id is given twice.
class Document {
 public:
    /// @param is_written as Session::open has it
    /// @throws what trace::Reader throws
    Document(int id, const std::filesystem::path& path, bool is_written = false);

    int id() const { return id_; }
    const std::filesystem::path& path() const { return path_; }
    bool is_written() const { return is_written_; }
    /// A job begins to write the trace of that path, or goes on with it.
    void set_written(const std::filesystem::path& path) {
        path_ = path;
        is_written_ = true;
        unfinished_answers_.clear();
    }
    /// Whether there is the folder of a trace alone, whose run has not come to its end.
    bool is_unfinished() const { return !file_->complete() && file_->path().extension() == ".part"; }
    /// Of an unfinished trace that nobody writes: what was decoded of runs that it does not have.
    const std::vector<UnfinishedAnswer>& unfinished_answers() const { return unfinished_answers_; }
    std::string name() const { return path_.filename().string(); }

    /// The trace with the runs in memory behind those of the file. Safe to hand to other threads.
    const std::shared_ptr<const trace::Reader>& reader() const { return reader_; }
    /// The file alone.
    const std::shared_ptr<const trace::Reader>& file() const { return file_; }

    /// Reads the file anew: an unfinished trace has grown. Runs in memory stay, but for those of a job that are in the
    /// file now. @throws what trace::Reader throws, and then everything is as it was.
    void reload();

    /// Whether one of its prompts has the text, as find_text finds it. Reads the prompts' tokens once for each text.
    bool has_text(const std::string& text) const;

    /// Whether the file at its path has become another trace, asked for by another recipe or with other prompts: not
    /// where it has grown. @throws what trace::Reader throws
    bool is_of_another_trace() const;

    /// Adds or replaces what a job under way has kept of runs, by their numbers in the trace to be; what the file has
    /// of them already stays. @throws std::invalid_argument for arrays that do not fit, and then everything is as it
    /// was.
    void set_pending_runs(int prompt, std::map<int, trace::RunRecord> runs_by_number);
    /// Adds a what-if. @param source the run that it came from @throws as set_pending_runs
    RunId add_run(int prompt, trace::RunRecord run, RunId source);
    /// @throws as set_pending_runs; std::out_of_range where there is no such what-if
    void replace_run(RunId what_if, trace::RunRecord run);
    void remove_run(RunId what_if);
    /// A what-if is to be there again when the trace is opened the next time.
    /// @param unknown_json as KeptWhatIf has it
    void keep_run(RunId what_if, const std::string& unknown_json = {});
    /// Those to be written beside the trace, also what was not made again yet.
    std::vector<KeptWhatIf> kept_what_ifs() const;
    bool is_what_if(RunId run) const;
    /// The run that a what-if came from, which may be gone; not valid where the run is no what-if.
    RunId source_of(RunId run) const;
    /// Changes whenever this what-if does, and for nothing else: not where the file grows or a run is renamed.
    std::string what_if_stamp(RunId what_if) const;
    /// The same run of another prompt, of a what-if that of the run that it came from: by its number in the trace, as
    /// an unfinished one has not all of them. nullopt where there is none.
    std::optional<RunId> like(int prompt, RunId run, int other_prompt) const;
    /// A job has kept it, and it is not in the file yet.
    bool is_pending(RunId run) const;

    /// The labels that a person gave runs, of runs that are not there (yet), too; the reader has them.
    const std::vector<GivenLabel>& given_labels() const { return given_labels_; }
    void set_given_labels(std::vector<GivenLabel> labels);
    /// A what-if cannot.
    bool can_be_renamed(int prompt, RunId run) const { return number_of(prompt, run).has_value(); }
    /// An empty label, or the recorded one, takes it away; does nothing where the run cannot be renamed.
    void give_label(int prompt, RunId run, const std::string& label);

    /// The run that stands at a place of the reader's prompt. @throws std::out_of_range where there is none
    RunId id_of(int prompt, int run) const;
    RunKey key_of(int prompt, int run) const { return {id_, prompt, id_of(prompt, run)}; }
    /// Where a run stands in the reader's prompt; nullopt where it is gone.
    std::optional<int> place_of(int prompt, RunId run) const;
    /// The runs of a prompt in the reader's order.
    const std::vector<RunId>& runs(int prompt) const;
    std::vector<RunKey> keys(int prompt) const;
    /// In the order in which they are shown: each what-if behind the run that it came from.
    std::vector<RunId> shown_order(int prompt) const;

    /// Changes whenever the file's part of the contents or a given label does, and whenever this run does: stamps for
    /// Tasks.
    std::string stamp() const;
    std::string run_stamp(int prompt, RunId run) const;
    /// Of all of a prompt's runs.
    std::string runs_stamp(int prompt) const;

    int prompt = 0;                         ///< the one that is shown
    bool runs_were_chosen = false;          ///< a person has hidden or shown some
    std::set<RunKey> hidden;                ///< runs that views leave out
    std::map<int, std::set<int64_t>> pins;  ///< pinned tokens by prompt
    std::vector<Note> notes;
    std::vector<KeptWhatIf> saved_what_ifs;  ///< beside the trace, but not among the runs (restore_what_ifs())
    bool annotations_changed = false;  ///< pins, notes, labels, further answers or kept what-ifs, since they were saved
    std::string annotations_in_file;   ///< what of them annotations.h read or wrote last, as JSON
    std::vector<std::string> annotations_notices;  ///< what a person is to be told about that file

    /// The note on exactly these tokens of the shown prompt; nullptr where there is none.
    const Note* note_on(int64_t first_token, int64_t last_token) const {
        return note_on(prompt, first_token, last_token);
    }
    /// Sets, changes or, with an empty text, takes away the note on these tokens of a prompt, or of the shown one.
    void write_note(int of_prompt, int64_t first_token, int64_t last_token, const std::string& text);
    void write_note(int64_t first_token, int64_t last_token, const std::string& text) {
        write_note(prompt, first_token, last_token, text);
    }
    void toggle_pin(int64_t token);

    const std::vector<FurtherAnswer>& further_answers() const { return further_answers_; }  ///< oldest first
    /// Those that were saved. Numbers them.
    void set_further_answers(std::vector<FurtherAnswer> answers);
    void remove_further_answer(int id);
    /// Begins an answer of a run of a prompt. @returns its id
    int add_further_answer(const RunKey& run, const std::string& question);
    /// nullptr where it was taken away.
    FurtherAnswer* further_answer(int id);
    /// The run of that number and label; −1: a what-if of that label. nullopt where there is none.
    std::optional<RunId> run_called(int prompt, int run_number, const std::string& label) const;
    /// The run that gave an answer; not valid where it is gone.
    RunId run_of(const FurtherAnswer& answer) const;

 private:
    /// A run in memory. Its version is its own among all that ever were in this document.
    struct MemoryRun {
        RunId id;
        std::shared_ptr<const trace::RunRecord> record;
        uint64_t version;
        RunId source = {};  ///< of a what-if
        bool kept = false;
        std::string unknown_json = {};  ///< of a kept one, as KeptWhatIf has it
    };
    struct MemoryRuns {
        std::map<int, MemoryRun> pending;  ///< by number in the trace to be
        std::vector<MemoryRun> added;
    };
    /// A run of the trace, which may be in memory yet.
    struct Numbered {
        std::string label;
        RunId id;
    };

    const Note* note_on(int of_prompt, int64_t first_token, int64_t last_token) const;
    /// Where the trace is now: at its path, or in the folder of an unfinished one.
    std::filesystem::path source() const;
    /// What was opened by the name of an unfinished trace's folder has the file's name once it is finished.
    void follow_to_finished_file();
    void show(std::shared_ptr<const trace::Reader> file, std::map<int, MemoryRuns> memory);
    void number_runs_of_file();
    void label_runs();
    RunId numbered(int prompt, int number, const std::string& label);
    const MemoryRun* memory_run(RunId run) const;
    /// The run's number and label, for what is stored beside the trace; nullopt for a what-if.
    std::optional<std::pair<int, std::string>> number_of(int prompt, RunId run) const;

    int id_;
    std::filesystem::path path_;
    bool is_written_ = false;
    std::vector<UnfinishedAnswer> unfinished_answers_;
    std::shared_ptr<const trace::Reader> file_;
    std::shared_ptr<const trace::Reader> reader_;
    std::map<int, MemoryRuns> memory_;
    uint64_t file_version_ = unique_id();
    /// What has_text() was asked last, of which version of the file, and the answer.
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
    std::map<int, std::vector<RunId>> runs_;            ///< by prompt, as in the reader
    std::map<std::pair<int, int>, Numbered> numbered_;  ///< by prompt and number in the trace
    int64_t next_id_ = 0;
    std::vector<FurtherAnswer> further_answers_;
    int next_answer_ = 0;
};

}  // namespace kvscope::gui
