#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/session/selection.h"
#include "app/gui/session/tasks.h"
#include "common/unique_id.h"
#include "engine/options/device_name.h"
#include "engine/options/run_options.h"
#include "policies/registry/registry.h"
#include "trace/reader.h"
#include "trace/records/records.h"

namespace kvscope::engine {
struct Task;
}

namespace kvscope::gui {

class Session;

using engine::RunOptions;

/// A benchmark task, and the values that the user chose for its parameters.
struct TaskSettings {
    const engine::Task* task = nullptr;
    policies::ParameterValues values;
    [[nodiscard]] bool operator==(const TaskSettings&) const = default;
};

/// Contents of the Run form. The members correspond to options of `kvscope run`, or of `kvscope eval` if `task` is set.
struct RunRequest {
    std::filesystem::path model;  ///< empty: the loaded model, else the default model
    std::string name = "prompt";
    std::string context;
    std::vector<std::string> questions;  ///< each makes its own prompt; blank questions are ignored
    /// Text files, JSONL files and folders. If there are any, their prompts are run instead of `context`.
    std::vector<std::filesystem::path> sources;
    std::optional<TaskSettings> task{};  ///< if set, its samples are run instead of prompts
    std::vector<std::string> policies;   ///< e.g. "snapkv:window=8"
    std::string budgets;                 ///< e.g. "64,256"
    RunOptions options;                  ///< `analyze` is unused; see `spectra`
    std::optional<bool> spectra;   ///< record spectra of the model's projections; unset: only if they need little time
    std::filesystem::path output;  ///< empty: a new file in the current folder
    bool force = false;            ///< replace the file at `output`
    /// Returns the questions that are not blank, without line breaks at their ends.
    [[nodiscard]] std::vector<std::string> asked_questions() const;
    [[nodiscard]] bool operator==(const RunRequest&) const = default;
};

/// Contents of the Training form. The members correspond to options of `kvscope train-echo`.
struct TrainingRequest {
    std::vector<std::filesystem::path> texts;  ///< empty: the bundled text
    double ratio = 0.5;
    int64_t n_tokens = 0;     ///< maximum number of tokens to read; 0: all
    bool by_descent = false;  ///< first stage by gradient descent; false: by least squares
    int64_t steps = 600;      ///< steps of gradient descent
    int64_t tune_steps = 0;   ///< steps of the second stage; 0: no second stage
    bool tune_by_qk = false;  ///< loss of the second stage: divergence of attention; false: error of attention outputs
    std::filesystem::path output;
    bool force = false;  ///< replace the file at `output`
    [[nodiscard]] bool operator==(const TrainingRequest&) const = default;
};

struct TrainingStatus {
    struct Stage {
        std::string loss;            ///< "keys-values", "outputs" or "qk-kl"
        std::vector<double> errors;  ///< loss at each step: relative error, or nats for "qk-kl"
    };
    std::vector<Stage> stages;
    std::vector<std::string> messages;
    std::filesystem::path output;
    bool is_done = false;  ///< the maps are written to `output`
    std::string error;     ///< why training failed; empty otherwise
    uint64_t stamp = 0;    ///< changes at each step
};

struct WaitingJob {
    uint64_t number = 0;
    std::string what;  ///< see EngineStatus::what
    [[nodiscard]] bool operator==(const WaitingJob&) const = default;
};

struct StoppedRun {
    std::string what;  ///< see EngineStatus::what
    std::string rest;  ///< a sentence that says what Continue will and will not repeat
};

/// If the spectra of a model take at most this time, the first run of the model computes them without a request.
inline constexpr double little_for_spectra_seconds = 20;

struct EngineStatus {
    enum class State { idle, loading, running, cancelling };
    State state = State::idle;
    std::string what;                  ///< the job, e.g. "demo.h5: 15 runs"
    std::string phase;                 ///< the phase of the job, e.g. "prefill"
    double share = 0;                  ///< completed share of the phase, 0 to 1
    double seconds_left = -1;          ///< remaining time of the phase; negative if unknown
    std::string model;                 ///< name of the loaded model; empty if none is loaded
    std::filesystem::path model_path;  ///< path of the loaded model
    std::string device;             ///< device of the loaded model, e.g. "cuda:0: NVIDIA H100, …"; empty for the CPU
    std::string model_error;        ///< why the model chosen last is not loaded; empty if it is
    bool is_model_refused = false;  ///< the model chosen last cannot be loaded, so a run would be refused
    int64_t context_length = 0;     ///< context length of the loaded model in tokens
    double spectra_seconds = 0;     ///< estimated time for the spectra of the loaded model; 0 if they are cached
    std::vector<engine::DeviceChoice> devices;  ///< devices of this machine, CPU first; empty until known
    std::string why_only_cpu;                   ///< why there is only the CPU; empty if there are other devices
    std::string error;                          ///< why the last job failed; empty if it succeeded
    [[nodiscard]] bool busy() const { return state != State::idle; }
};

struct PartialAnswer {
    int run = -1;  ///< number of the run in the trace; −1 for a what-if
    RunKey key{};  ///< invalid if no document contains the run yet
    std::string label{};
    std::string question{};  ///< the question; empty if there is none
    std::string text{};
    std::optional<bool> is_full{};  ///< whether the cache is full at present; unset if its form cannot change
    bool has_ended = false;         ///< decoding has ended, so the form of the cache is final
};

/// Prompts of a text file, a JSONL file or a folder.
struct PromptSource {
    int n_prompts = 0;
    int n_with_question = 0;            ///< prompts that have a question of their own
    std::vector<std::string> problems;  ///< why files or lines are left out, one reason each
};

/// Number of tokens of the longest prompt with a question, counted for the loaded model.
struct TokenCount {
    int64_t n_tokens = 0;
    int64_t n_visible = 0;  ///< number of tokens that policies see
    int64_t context_length = 0;
    std::string error;
    std::string remark{};                         ///< a remark on the tokenization; may be empty
    std::optional<policies::ModelShape> shape{};  ///< shape of the model
    std::string model_fingerprint{};
    double token_bytes = 0;               ///< bytes that the full cache holds per token; 0 if unknown
    std::vector<int64_t> lengths{};       ///< numbers of tokens of all prompts
    std::vector<std::string> left_out{};  ///< why prompts cannot be tokenized, one reason each

    [[nodiscard]] policies::CacheSize cache_size() const {
        if (!shape || token_bytes <= 0) return {};
        const int n_numbers = 2 * shape->n_layers * shape->n_kv_heads * shape->head_dim;
        return {*shape, n_visible, token_bytes / n_numbers};
    }
};

/// A prompt's prefill, held in memory so that policies can decide again with other parameters. Thread-safe.
class PrefillInMemory {
 public:
    virtual ~PrefillInMemory() = default;

    const uint64_t number = unique_id();  ///< identifies this prefill in stamps

    /// Returns the reason why a policy cannot decide from this prefill, or "" if it can.
    [[nodiscard]] virtual std::string obstacle(const policies::PolicySpec& spec, int64_t budget) const = 0;
    [[nodiscard]] virtual int widest_window() const = 0;
    /// Lets a policy decide and returns the run. `budget` counts entries. Worker threads only. Throws as the policy.
    [[nodiscard]] virtual trace::RunRecord what_if(const trace::Reader& reader, int prompt,
                                                   const policies::PolicySpec& spec, int64_t budget, double share,
                                                   uint64_t seed) const = 0;
};

/// A sample of a task and the run that answers it again.
struct SampleRun {
    std::string sample;  ///< name, as in `kvscope run --prompt-from TRACE:SAMPLE`
    std::string policy;  ///< "snapkv:window=8"
    std::string budget;  ///< "64", or "12.5%"
    [[nodiscard]] bool operator==(const SampleRun&) const = default;
};

/// Runs engine jobs one at a time on a background thread. UI thread only. Functions neither block nor throw: errors
/// are reported as notices and in EngineStatus::error.
class EngineSession {
 public:
    virtual ~EngineSession() = default;

    /// Starts or continues the run of a request. Returns the job's number, or 0 if the request is refused.
    [[nodiscard]] virtual uint64_t run(const RunRequest& request) = 0;
    /// Returns the file that a request without an output would continue, or an empty path.
    [[nodiscard]] virtual std::filesystem::path continued_output(const RunRequest& request) const = 0;
    /// Runs a sample of a trace again and records everything, with the options of the trace. The output has the names
    /// of trace and sample; runs are added to an existing output. Returns the job's number, or 0 if it is refused.
    [[nodiscard]] virtual uint64_t run_sample(int document, const SampleRun& run) = 0;
    /// Continues the unfinished trace in `<output>.part`. Returns the job's number, or 0 if the request is refused.
    [[nodiscard]] virtual uint64_t go_on(const std::filesystem::path& output) = 0;
    /// Opens kvscope-demo/demo.h5 of the current folder, or runs the demo if the trace is not complete.
    virtual void run_demo() = 0;
    /// @param path path of the model; empty for the default model
    virtual void load_model(const std::filesystem::path& path) = 0;
    /// Repeats the prefill of a prompt from its token ids. @param model path of the model; empty to search known models
    virtual void repeat_prefill(int document, int prompt, const std::filesystem::path& model) = 0;
    /// Computes the spectra of the trace's model and caches them for all traces of this model.
    virtual void compute_spectra(int document) = 0;
    /// Trains EchoKV's maps for the loaded or default model. The same request continues an interrupted training.
    virtual void train(const TrainingRequest& request) = 0;
    [[nodiscard]] virtual const TrainingStatus& training() const = 0;
    /// Fills EngineStatus::devices once, also while a job runs. Initializes the GPUs.
    virtual void look_for_devices() = 0;
    /// Ends the current job at the next safe point. A run pauses instead. Then the next waiting job starts.
    virtual void cancel() = 0;
    [[nodiscard]] virtual bool has_job(uint64_t job) const = 0;
    [[nodiscard]] virtual std::vector<WaitingJob> waiting() const = 0;
    /// Removes a waiting job from the queue. Has no effect if the job has started or ended.
    virtual void drop(uint64_t job) = 0;
    /// Whether a waiting or running job writes to this file.
    [[nodiscard]] virtual bool is_taken(const std::filesystem::path& output) const = 0;
    /// Returns the run that was canceled last, or nullopt if there is none or the run was continued.
    [[nodiscard]] virtual std::optional<StoppedRun> stopped_run() const = 0;
    /// Returns the job's number, or 0 if there is no stopped run.
    virtual uint64_t continue_stopped_run() = 0;
    [[nodiscard]] virtual EngineStatus status() const = 0;
    [[nodiscard]] virtual std::string error_of(uint64_t job) const = 0;
    [[nodiscard]] virtual const std::vector<PartialAnswer>& partial_answers() const = 0;
    /// Switches a run's cache between compressed and full after the next step, if the cache has both forms.
    virtual void switch_cache(int run) = 0;

    /// Returns the latest count of the prompt's tokens, or nullopt before the first count. Counts in the background.
    [[nodiscard]] virtual std::optional<TokenCount> count_tokens(const RunRequest& request) = 0;
    /// Returns the prompts of a source of RunRequest, read in the background. Call once per frame.
    [[nodiscard]] virtual TaskResult<PromptSource> read_source(const std::filesystem::path& source) = 0;

    [[nodiscard]] virtual std::shared_ptr<const PrefillInMemory> prefill(int document, int prompt) const = 0;

    /// Returns the reason why a run cannot be asked or decoded, or "" if it can.
    [[nodiscard]] virtual std::string obstacle_to_asking(const RunKey& run) const = 0;
    /// Whether the cache of the run is in memory. Otherwise, ask() rebuilds the cache first.
    [[nodiscard]] virtual bool has_cache(const RunKey& run) const = 0;
    /// Asks runs a question, as one batch per prompt, and adds the answers to the documents.
    virtual void ask(const std::vector<RunKey>& runs, const std::string& question) = 0;
    /// Decodes what-ifs and adds their answers, divergences from the full run and cache sizes.
    virtual void decode(const std::vector<RunKey>& what_ifs) = 0;

    /// Passes results of the engine's thread to the session. Call once per frame.
    virtual void update() = 0;
};

/// @param notice called on the UI thread with a message for the user
/// @param wake called on any thread when a result has arrived and a frame should be drawn
/// @param known_models returns further paths to search for a trace's model; called on the UI thread
/// @param n_threads number of threads for models; 0: one per core
/// @param before_step called on the engine's thread before each step of a run with two forms of its cache; may block
[[nodiscard]] std::unique_ptr<EngineSession> make_engine_session(
    Session& session, Notice notice, std::function<void()> wake,
    std::function<std::vector<std::filesystem::path>()> known_models, int n_threads = 0,
    std::function<void()> before_step = nullptr);

}  // namespace kvscope::gui
