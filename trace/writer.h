// Writes a trace so that neither SIGKILL nor a full disk loses anything finished: each prompt and
// run goes whole into a file of its own in `<path>.part/` and is renamed into place; finish() joins
// them into `path`.
#pragma once

#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/records.h"
#include "trace/trace_errors.h"

namespace kvscope::trace {

/// What stands at an output path, as seen by a writer with a given recipe.
enum class OutputState {
    absent,     // nothing: a new trace is begun
    resumable,  // an incomplete trace of the same recipe: it is continued
    complete,   // a complete trace of the same recipe: nothing to do
    other,      // anything else: refused without force
};

/// Recipes are compared as JSON values: order of keys and white space do not matter.
/// Throws std::invalid_argument if `recipe_json` is not JSON.
OutputState output_state(const std::filesystem::path& path, std::string_view recipe_json);

struct WriterOptions {
    /// Begin anew over whatever is at the output. A trace already there stays until finish()
    /// replaces it; an incomplete one of the same recipe is still resumed, unless it extends one.
    bool force = false;
    /// The attribute `generator`.
    std::string generator = "kvscope";
    /// Whether a trace of this other recipe (JSON) is a part of the one that is to be written, which numbers its
    /// prompts and runs in the same way. An unfinished one is then taken over as it is. A complete one is extended:
    /// its model, prompts and runs count as written. Of a task to whose results something is added, all of them have to
    /// be written again.
    std::function<bool(const std::string& recipe_json)> is_part_of_it{};
    /// The attribute `created_utc` of a trace that is begun; unset: now.
    std::optional<std::time_t> created{};
};

/// What stands in the way of a Writer with these arguments is told, and nothing is left there: before what is to be
/// written is computed. Whether another process works there is not asked.
/// Returns what such a writer would go on with: absent, resumable, or complete (never with force).
/// Throws OutputExists, WriteFailed, ReadFailed; std::invalid_argument for a recipe that is not JSON.
OutputState check_output(const std::filesystem::path& path, std::string_view recipe_json,
                         const WriterOptions& options = {});

class Writer {
 public:
    /// Creates `<path>.part/` or resumes it. `recipe_json` describes all that the trace is to hold
    /// (model fingerprint, prompts, policies, budgets, seeds …).
    /// Throws AlreadyComplete, OutputExists, OutputBusy, WriteFailed; ReadFailed where what was finished cannot be read
    /// now (nothing of it is touched); std::invalid_argument for a recipe that is not JSON.
    Writer(std::filesystem::path path, std::string recipe_json, WriterOptions options = {});
    Writer(Writer&&) noexcept;
    Writer& operator=(Writer&&) noexcept;
    /// Leaves the .part folder as it is, to be resumed; releases the lock.
    ~Writer();

    /// True if something was there to resume.
    [[nodiscard]] bool resumed() const;
    /// True if a complete trace is extended, also where that was begun before.
    [[nodiscard]] bool extends() const;
    /// To tell: which parts of what was there to resume were damaged. Each was set aside under another name, beside the
    /// others until finish(), and counts as not there.
    [[nodiscard]] const std::vector<std::string>& set_aside() const;
    [[nodiscard]] bool has_model() const;
    [[nodiscard]] bool has_prompt(int prompt) const;
    /// `status` of a run does not matter: a failed run is finished, too.
    [[nodiscard]] bool has_run(int prompt, int run) const;
    [[nodiscard]] bool has_results(std::string_view task, int batch) const;
    /// The rows of a batch, where has_results().
    [[nodiscard]] const std::vector<ResultRow>& results(std::string_view task, int batch) const;

    // Each call is written, synced and renamed when it returns; an earlier one of the same number is
    // replaced, unless it lies in the trace that is extended (std::logic_error). A record whose vectors do not have the
    // shapes of schema.h throws std::invalid_argument; a full or failing disk throws WriteFailed and leaves all else as
    // it was. Text that is not valid UTF-8 is stored with U+FFFD, a NUL with U+2400.

    /// Must come first: all shapes depend on it.
    void write_model(const ModelRecord& record);
    /// Needs the model; with `context_of`, that prompt, too.
    void write_prompt(int prompt, const PromptRecord& record);
    /// Needs the prompt. Runs are numbered from 0; the policy `full` must be among them. Of a prompt
    /// with `context_of`, the run of the same number there should be written first: kept_* and scores
    /// are then stored once. So are scores that are those of another run of the prompt, bit by bit, whatever its
    /// number.
    void write_run(int prompt, int run, const RunRecord& record);
    /// Rows of a batch, e.g. one job's samples; finish() joins a task's batches in ascending order.
    void write_results(std::string_view task, int batch, const std::vector<ResultRow>& rows);

    /// Joins everything into `path` with complete = 1 and removes the .part folder. Prompts and each
    /// prompt's runs must be numbered without gaps (std::invalid_argument). Nothing can be written
    /// afterwards. Throws WriteFailed; ReadFailed where a part cannot be read now; DamagedTrace where one was damaged
    /// since it was written: that was set aside, and a writer opened anew makes it again.
    void finish();

 private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace kvscope::trace
