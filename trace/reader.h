// Reads a complete trace, or a `.part` folder as an incomplete trace. Opening reads only attributes. Any number of
// threads may use one Reader. Failed reads throw the types of trace_errors.h; a wrong index throws std::out_of_range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/records/block.h"
#include "trace/records/records.h"
#include "trace/records/schema.h"
#include "trace/records/trace_errors.h"

namespace kvscope::trace {

struct Place {
    int prompt = -1;  ///< −1 for /model
    int run = -1;     ///< −1 for the prompt itself

    [[nodiscard]] static Place of_model() { return {}; }
    [[nodiscard]] static Place of_prompt(int prompt) { return {prompt, -1}; }
    [[nodiscard]] static Place of_run(int prompt, int run) { return {prompt, run}; }
};

class Reader {
 public:
    /// Opens a trace file, a `.part` folder, or an output of which only the `.part` folder exists. Throws NotATrace,
    /// ReadFailed, TruncatedTrace, TraceTooNew, DamagedTrace.
    /// @param stop after a stop request, this constructor and all reads throw Stopped
    explicit Reader(const std::filesystem::path& path, std::stop_token stop = {});
    Reader(Reader&&) noexcept;
    Reader& operator=(Reader&&) noexcept;
    ~Reader();

    /// Returns a reader with one more run of `prompt`, at index n_runs(prompt), which exists only in memory (a
    /// what-if). If a vector of `run` is empty, its data set does not exist. Copies no data of the trace.
    /// Throws std::invalid_argument if a vector has another shape than in schema.h or the kept entries are invalid.
    [[nodiscard]] Reader with_run(int prompt, RunRecord run) const;
    /// Returns a reader that replaces all given labels by `labels`, by {prompt, run}. Throws std::out_of_range.
    [[nodiscard]] Reader with_labels(const std::map<std::pair<int, int>, std::string>& labels) const;
    /// Returns a reader of the same files whose reads throw Stopped after a stop request.
    [[nodiscard]] Reader with_stop(std::stop_token stop) const;
    [[nodiscard]] const std::stop_token& stop_token() const;
    [[nodiscard]] bool is_in_file(int prompt, int run) const;

    [[nodiscard]] const std::filesystem::path& path() const;
    [[nodiscard]] const std::string& version() const;
    [[nodiscard]] const std::string& generator() const;
    [[nodiscard]] const std::string& created_utc() const;
    /// Returns an empty text if another program wrote the trace without a recipe.
    [[nodiscard]] const std::string& recipe_json() const;
    [[nodiscard]] bool complete() const;

    /// An incomplete trace may lack the model.
    [[nodiscard]] bool has_model() const;
    [[nodiscard]] const ModelAttributes& model() const;
    [[nodiscard]] int n_prompts() const;
    [[nodiscard]] const PromptAttributes& prompt(int prompt) const;
    /// Returns the prompt's number in the trace. Numbers of an incomplete trace may have gaps; indices have none.
    [[nodiscard]] int prompt_number(int prompt) const;
    [[nodiscard]] int run_number(int prompt, int run) const;
    [[nodiscard]] int n_runs(int prompt) const;
    [[nodiscard]] const RunAttributes& run(int prompt, int run) const;
    [[nodiscard]] const std::vector<RunAttributes>& runs(int prompt) const;
    [[nodiscard]] std::optional<int> full_run(int prompt) const;

    // These functions read any data set of schema.h. `T` is the element type in memory; HDF5 converts numbers.

    [[nodiscard]] bool has(Place place, const schema::DataSet& data_set) const;
    [[nodiscard]] std::vector<std::size_t> shape(Place place, const schema::DataSet& data_set) const;
    /// Returns the number of tokens in a run's answer, end of text included, or 0 if no answer is recorded.
    [[nodiscard]] std::int64_t answer_length(int prompt, int run) const;
    /// Returns all values, row-major. T is float, double, int32_t, uint8_t, uint16_t, uint32_t or uint64_t.
    template <class T>
    [[nodiscard]] std::vector<T> read(Place place, const schema::DataSet& data_set) const;
    template <class T>
    [[nodiscard]] std::vector<T> read(Place place, const schema::DataSet& data_set, const Block& block) const;
    /// Returns the values of one layer. Requires a data set whose first dimension is the layers.
    template <class T>
    [[nodiscard]] std::vector<T> read_layer(Place place, const schema::DataSet& data_set, std::size_t layer) const;

    [[nodiscard]] std::vector<std::int32_t> token_ids(int prompt) const;
    [[nodiscard]] std::vector<std::string> token_text(int prompt) const;
    [[nodiscard]] std::vector<float> window_attention(int prompt, std::size_t layer) const;
    /// Returns the (R, N) scores of one layer, exact for f32 and f64, or an empty vector if the run has no scores.
    [[nodiscard]] std::vector<double> scores(int prompt, int run, std::size_t layer) const;
    /// Returns all kept entries. They are read once and then shared by all readers of the files.
    [[nodiscard]] std::shared_ptr<const Kept> kept(int prompt, int run) const;
    /// Like kept(), but the caller alone holds entries that have not been read before.
    [[nodiscard]] std::shared_ptr<const Kept> kept_for_now(int prompt, int run) const;
    /// Returns R, the run's number of rows per layer: G or H, depending on the run's granularity.
    [[nodiscard]] std::size_t n_rows(int prompt, int run) const;

    // These functions return complete records, as the writer received them.

    [[nodiscard]] RunRecord run_record(int prompt, int run) const;

    /// Returns the benchmark tasks with results.
    [[nodiscard]] std::vector<std::string> result_tasks() const;
    /// Whether the trace has the table /results/<task>, also for `prompts`.
    [[nodiscard]] bool has_results(std::string_view task) const;
    /// Returns the rows of /results/<task>, also of `prompts`. They are read once, and are valid while a reader of the
    /// files exists. For tables of earlier versions, `model`, `dtype`, `seed` and similar columns come from the
    /// trace's model and recipe, and measures are NaN. Throws std::out_of_range without the table.
    [[nodiscard]] std::span<const ResultRow> results(std::string_view task) const&;
    /// A temporary reader returns a copy.
    [[nodiscard]] std::vector<ResultRow> results(std::string_view task) &&;
    /// Returns the number of rows. Throws std::out_of_range without the table.
    [[nodiscard]] std::size_t n_results(std::string_view task) const;
    /// Returns the run's row of /results/prompts. Returns nullopt if the table is missing or damaged, or if no row has
    /// the run's attributes. Rows of earlier versions, which lack columns, have no `coverage`.
    /// analysis::result_rows_of_prompt() then computes the measures.
    [[nodiscard]] std::optional<ResultRow> stored_row(int prompt, int run) const;

 private:
    struct Impl;
    explicit Reader(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace kvscope::trace
