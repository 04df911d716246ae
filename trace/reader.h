// Reads a trace: a complete file, or a `.part` folder as an incomplete trace, behind one interface.
// Attributes are read at once, data sets when asked for and only the part asked for, so that a large
// trace opens immediately. What the reader does not know it ignores.
//
// Any number of threads may use one Reader: calls into HDF5 are serialised by a mutex. Errors while
// reading are those of errors.h; an index out of range is std::out_of_range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/records.h"
#include "trace/schema.h"
#include "trace/trace_errors.h"

namespace kvscope::trace {

/// A group that data sets lie in.
struct Place {
    int prompt = -1;  ///< −1: /model
    int run = -1;     ///< −1: the prompt itself

    static Place of_model() { return {}; }
    static Place of_prompt(int prompt) { return {prompt, -1}; }
    static Place of_run(int prompt, int run) { return {prompt, run}; }
};

/// A block of a data set: for each dimension, the first index and the number of them.
struct Block {
    std::vector<std::size_t> first;
    std::vector<std::size_t> count;
};

class Reader {
 public:
    /// `path` is a trace file, a `.part` folder, or an output whose `.part` folder alone is there.
    /// Throws NotATrace, ReadFailed, TruncatedTrace, TraceTooNew, DamagedTrace.
    explicit Reader(const std::filesystem::path& path);
    Reader(Reader&&) noexcept;
    Reader& operator=(Reader&&) noexcept;
    ~Reader();

    /// A reader of the same trace to which a run is added that is in no file (a what-if): run
    /// n_runs(prompt) of that prompt, and of no other prompt with the same context. An empty vector is a
    /// data set that is not there. Cheap: open files, attributes and kept entries read so far are shared,
    /// by both readers from then on. Reading what was added never waits for HDF5.
    /// Throws std::invalid_argument naming the data set, what was expected and what was found, where a
    /// vector has not the shape of schema.h or the kept entries break the format.
    [[nodiscard]] Reader with_run(int prompt, RunRecord run) const;
    /// A reader of the same trace whose runs are called otherwise: `RunAttributes::given_label` of the run at a prompt
    /// and a place, by {prompt, run}; runs that are not named are called by no such label any more. As cheap as
    /// with_run(). Throws std::out_of_range where there is no such run.
    [[nodiscard]] Reader with_labels(const std::map<std::pair<int, int>, std::string>& labels) const;
    /// False for a run that with_run() added.
    [[nodiscard]] bool is_in_file(int prompt, int run) const;

    [[nodiscard]] const std::filesystem::path& path() const;
    [[nodiscard]] const std::string& version() const;
    [[nodiscard]] const std::string& generator() const;
    [[nodiscard]] const std::string& created_utc() const;
    /// Empty in traces made elsewhere.
    [[nodiscard]] const std::string& recipe_json() const;
    [[nodiscard]] bool complete() const;

    /// An incomplete trace may lack even the model.
    [[nodiscard]] bool has_model() const;
    [[nodiscard]] const ModelAttributes& model() const;
    [[nodiscard]] int n_prompts() const;
    [[nodiscard]] const PromptAttributes& prompt(int prompt) const;
    // In an incomplete trace prompts and runs may be missing; those that are there are counted through.
    // prompt_number() and run_number() give the number in the trace; an added run has the next one.
    [[nodiscard]] int prompt_number(int prompt) const;
    [[nodiscard]] int run_number(int prompt, int run) const;
    [[nodiscard]] int n_runs(int prompt) const;
    [[nodiscard]] const RunAttributes& run(int prompt, int run) const;
    [[nodiscard]] const std::vector<RunAttributes>& runs(int prompt) const;
    /// The run with the policy `full`, if it is there.
    [[nodiscard]] std::optional<int> full_run(int prompt) const;

    // Any data set of schema.h. `T` is what is wanted in memory; HDF5 converts numbers.

    [[nodiscard]] bool has(Place place, const schema::DataSet& data_set) const;
    [[nodiscard]] std::vector<std::size_t> shape(Place place, const schema::DataSet& data_set) const;
    /// Whole, row-major. T: float, double, int32_t, uint8_t, uint16_t, uint32_t, uint64_t.
    template <class T>
    [[nodiscard]] std::vector<T> read(Place place, const schema::DataSet& data_set) const;
    template <class T>
    [[nodiscard]] std::vector<T> read(Place place, const schema::DataSet& data_set, const Block& block) const;
    /// The part of one layer, for data sets whose first dimension is the layers.
    template <class T>
    [[nodiscard]] std::vector<T> read_layer(Place place, const schema::DataSet& data_set, std::size_t layer) const;

    // The ones asked for most.

    [[nodiscard]] std::vector<std::int32_t> token_ids(int prompt) const;
    [[nodiscard]] std::vector<std::string> token_text(int prompt) const;
    /// (H, N) of a layer.
    [[nodiscard]] std::vector<float> window_attention(int prompt, std::size_t layer) const;
    /// (R, N) of a layer, exact whether stored as f32 or f64; empty if the run has no scores.
    [[nodiscard]] std::vector<double> scores(int prompt, int run, std::size_t layer) const;
    /// Whole; read once, then shared.
    [[nodiscard]] std::shared_ptr<const Kept> kept(int prompt, int run) const;
    /// R of the run: G or H by its granularity.
    [[nodiscard]] std::size_t n_rows(int prompt, int run) const;

    // Everything of a group, as it was written.

    [[nodiscard]] ModelRecord model_record() const;
    [[nodiscard]] PromptRecord prompt_record(int prompt) const;
    [[nodiscard]] RunRecord run_record(int prompt, int run) const;

    // /results

    [[nodiscard]] std::vector<std::string> result_tasks() const;
    [[nodiscard]] std::vector<ResultRow> results(std::string_view task) const;

 private:
    struct Impl;
    explicit Reader(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace kvscope::trace
