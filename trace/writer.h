// Writes traces so that SIGKILL or a full disk never loses finished work: each prompt and run goes to its own file in
// `<path>.part/`, which is renamed when complete. finish() joins the files into `path`.
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/records/records.h"
#include "trace/records/trace_errors.h"

namespace kvscope::trace {

enum class OutputState {
    absent,     ///< nothing exists: the writer starts a new trace
    resumable,  ///< an incomplete trace of the same recipe: the writer continues it
    complete,   ///< a complete trace of the same recipe: nothing to do
};

struct WriterOptions {
    /// Lets finish() replace any trace at the output path. An incomplete trace of the same recipe is still resumed,
    /// unless it extends another trace.
    bool force = false;
    std::string generator = "kvscope";
    /// Returns whether an existing trace with this recipe (JSON) can become part of the new trace. An incomplete trace
    /// is continued. A complete trace is extended: the caller rewrites only results of tasks that gain results.
    std::function<bool(const std::string& recipe_json)> is_part_of_it{};
    /// The attribute `created_utc` of a new trace. Default: now.
    std::optional<std::time_t> created{};
};

/// Checks whether a Writer with these arguments can start. Leaves no files and ignores locks. Returns absent, resumable
/// or, without force, complete. Throws OutputExists, WriteFailed, ReadFailed; std::invalid_argument if the recipe is
/// not JSON.
[[nodiscard]] OutputState check_output_state(const std::filesystem::path& path, std::string_view recipe_json,
                                             const WriterOptions& options = {});

class Writer {
 public:
    /// Creates or resumes `<path>.part/`. `recipe_json` describes the complete trace (model, prompts, policies, …).
    /// Throws AlreadyComplete, OutputExists, OutputBusy, WriteFailed; ReadFailed if finished parts cannot be read now;
    /// std::invalid_argument if the recipe is not JSON.
    Writer(const std::filesystem::path& path, std::string recipe_json, const WriterOptions& options = {});
    Writer(Writer&&) noexcept;
    Writer& operator=(Writer&&) noexcept;
    /// Keeps the .part folder for a later resume and releases its lock.
    ~Writer();

    [[nodiscard]] bool resumed() const;
    /// Whether the trace extends a complete trace. An earlier writer may have begun the extension.
    [[nodiscard]] bool extends() const;
    /// Returns messages for the user about damaged parts, which were renamed and count as missing.
    [[nodiscard]] const std::vector<std::string>& set_aside() const;
    [[nodiscard]] bool has_model() const;
    [[nodiscard]] bool has_prompt(int prompt) const;
    /// A failed run also counts as written.
    [[nodiscard]] bool has_run(int prompt, int run) const;
    [[nodiscard]] bool has_results(std::string_view task, int batch) const;
    /// Returns the rows of a batch. Requires has_results().
    [[nodiscard]] const std::vector<ResultRow>& results(std::string_view task, int batch) const;
    /// Returns the size of all files in the `.part` folder, with the trace that it extends.
    [[nodiscard]] std::uint64_t stored_bytes() const;

    // The next functions return after their part is written, synced and renamed. They replace a part of the same
    // number, but throw std::logic_error for a part of the extended trace. They throw WriteFailed, and
    // std::invalid_argument for vectors that break schema.h. Invalid UTF-8 becomes U+FFFD, and NUL becomes U+2400.

    /// Must be the first call, because all shapes depend on the model.
    void write_model(const ModelRecord& record);
    /// Requires the model and, if `context_of` is set, the prompt that it names.
    void write_prompt(int prompt, const PromptRecord& record);
    /// Requires the prompt. Runs are numbered from 0, and one run must have the policy `full`. If `context_of` names
    /// another prompt, first write run `run` of the other prompt, so that kept_* and scores are stored once.
    void write_run(int prompt, int run, const RunRecord& record);
    /// Removes the prompt and its runs, which were written to the folder. Does nothing if the folder lacks the prompt.
    void remove_prompt(int prompt);
    /// Writes one batch of rows, e.g. the samples of one job. finish() joins the batches of a task in ascending order.
    void write_results(std::string_view task, int batch, const std::vector<ResultRow>& rows);

    /// Joins all parts into `path` with complete = 1 and removes the .part folder. No write may follow.
    /// Throws std::invalid_argument if numbers have gaps; WriteFailed; ReadFailed if a part cannot be read now;
    /// DamagedTrace if a damaged part was set aside, which a new writer makes again.
    void finish();

 private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace kvscope::trace
