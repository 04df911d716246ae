#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/session/run_selection.h"
#include "app/gui/session/unique_id.h"
#include "engine/options/device_name.h"
#include "engine/options/run_options.h"
#include "policies/interface/registry.h"
#include "trace/reader.h"
#include "trace/records.h"

namespace kvscope::gui {

class Session;

using engine::RunOptions;

/// What the Run view has been filled in with; as `kvscope run` takes it.
struct RunRequest {
    std::filesystem::path model;  ///< empty: the one that is loaded, else the default model
    std::string name = "prompt";
    std::string context;
    std::vector<std::string> questions;  ///< each makes a prompt of its own; blank ones are not asked
    std::vector<std::string> policies;   ///< "snapkv:window=8"
    std::string budgets;                 ///< "64,256"
    RunOptions options;                  ///< but `analyze`, for which `spectra` stands
    std::optional<bool> spectra;         ///< of the model's projections, into the trace; unset: where they cost little
    std::filesystem::path output;        ///< empty: a new file in the current folder
    bool force = false;                  ///< replaces what is at `output`
    /// Those that are not blank, without line breaks at their ends.
    std::vector<std::string> asked_questions() const;
    bool operator==(const RunRequest&) const = default;
};

/// What the view Training has been filled in with; as `kvscope train-echo` takes it.
struct TrainingRequest {
    std::vector<std::filesystem::path> texts;  ///< none: the one that comes along
    double ratio = 0.5;
    int64_t n_tokens = 0;     ///< that are read at most; 0: all
    bool by_descent = false;  ///< the first stage by gradient descent, else by least squares
    int64_t steps = 600;      ///< of that
    int64_t tune_steps = 0;   ///< of the second stage; 0: none
    bool tune_by_qk = false;  ///< its loss: the attention's divergence, else its outputs
    std::filesystem::path output;
    bool force = false;  ///< replaces what is at `output`
    bool operator==(const TrainingRequest&) const = default;
};

/// How far the last training has come.
struct TrainingStatus {
    struct Stage {
        std::string loss;            ///< "keys-values", "outputs", "qk-kl"
        std::vector<double> errors;  ///< of each step: the share that is missed, or nats
    };
    std::vector<Stage> stages;
    std::vector<std::string> messages;
    std::filesystem::path output;
    bool is_done = false;  ///< the maps are at `output`
    std::string error;     ///< why they are not, where it failed
    uint64_t stamp = 0;    ///< changes with each step
};

/// A job that waits until those before it have ended.
struct WaitingJob {
    uint64_t number = 0;
    std::string what;  ///< as EngineStatus::what
    bool operator==(const WaitingJob&) const = default;
};

/// A run that was cancelled.
struct StoppedRun {
    std::string what;  ///< as EngineStatus::what
    std::string rest;  ///< what Continue repeats and what it does not, as a sentence
};

/// Up to here spectra are computed with a run without being asked for, once for each model.
constexpr double little_for_spectra_seconds = 20;

struct EngineStatus {
    enum class State { idle, loading, running, cancelling };
    State state = State::idle;
    std::string what;                  ///< "demo.h5: 15 runs"
    std::string phase;                 ///< "prefill"
    double share = 0;                  ///< of the phase, 0 to 1
    double seconds_left = -1;          ///< of the phase; below 0: not known yet
    std::string model;                 ///< name of the model that is loaded; empty: none
    std::filesystem::path model_path;  ///< of that model
    std::string device;                ///< that this model is on: "cuda:0: NVIDIA H100, …"; empty: the processor
    std::string model_error;           ///< why the model that was chosen last is not the one loaded; empty: it is
    bool is_model_refused = false;     ///< the model that was chosen last cannot be loaded: a run would be refused, too
    int64_t context_length = 0;        ///< of that model
    double spectra_seconds = 0;        ///< what that model's spectra cost, about; 0: they are kept already
    std::vector<engine::DeviceChoice> devices;  ///< of this machine, the processor first; empty: not known yet
    std::string no_card;                        ///< why the processor is the only one; empty where it is not
    std::string error;                          ///< of the last job, whichever it was; empty: it went well
    bool busy() const { return state != State::idle; }
};

/// An answer as far as it is decoded, of a run of the job under way.
struct PartialAnswer {
    int run = -1;  ///< its number in the trace; −1: of a what-if
    RunKey key{};  ///< not valid where no document has the run yet
    std::string label{};
    std::string question{};  ///< that is answered; empty where none was asked
    std::string text{};
    std::optional<bool> is_full{};  ///< where its cache can change its form: whether it is whole now
    bool has_ended = false;         ///< nothing is decoded any more: its cache keeps the form that it has
};

/// How many tokens a text, with the longest of its questions, has for the model that is loaded.
struct TokenCount {
    int64_t n_tokens = 0;
    int64_t n_visible = 0;  ///< of them, what policies see
    int64_t context_length = 0;
    std::string error;
    std::string remark{};                         ///< on how the text was tokenized; empty where there is none
    std::optional<policies::ModelShape> shape{};  ///< of that model
    std::string model_fingerprint{};
    double token_bytes = 0;  ///< that its full cache holds of a token; 0: not known

    /// Of what policies see; no tokens where it is not known.
    policies::CacheSize cache_size() const {
        if (!shape || token_bytes <= 0) return {};
        const int n_numbers = 2 * shape->n_layers * shape->n_kv_heads * shape->head_dim;
        return {*shape, n_visible, token_bytes / n_numbers};
    }
};

/// What a prompt's prefill left behind, in memory: a policy can decide again with any parameters. Thread-safe.
class PrefillInMemory {
 public:
    virtual ~PrefillInMemory() = default;

    const uint64_t number = unique_id();  ///< what results of it are known by

    /// Why a policy cannot decide from it, as a sentence; empty where it can.
    virtual std::string obstacle(const policies::PolicySpec& spec, int64_t budget) const = 0;
    /// The widest window that a policy can have.
    virtual int widest_window() const = 0;
    /// The run as this policy at this budget makes it, in entries and as a share of the full cache. For worker threads;
    /// @throws as policies do
    virtual trace::RunRecord what_if(const trace::Reader& reader, int prompt, const policies::PolicySpec& spec,
                                     int64_t budget, double share, uint64_t seed) const = 0;
};

/// The engine beside the window, on a thread of its own. One job at a time; further ones wait. All calls from the
/// window's thread; none blocks and none throws: what goes wrong becomes a notice and `EngineStatus::error`.
class EngineSession {
 public:
    virtual ~EngineSession() = default;

    /// Loads the model if need be and runs the job. The trace is opened in the session as soon as its prompt is there;
    /// kept sets follow, then answers. What is finished stays on disk whatever happens, and the same request once more
    /// goes on from there.
    /// @returns the job's number, for `error_of`; 0 where the request was refused
    virtual uint64_t run(const RunRequest& request) = 0;
    /// Where that goes on with a run that was stopped, although the request names no file; empty: it begins anew.
    virtual std::filesystem::path goes_on_at(const RunRequest& request) const = 0;
    /// Goes on with the run whose unfinished trace stands in the folder `<output>.part`, as its recipe says, on the
    /// trace's model among those known. @param output that name, or the folder's @returns as `run`
    virtual uint64_t go_on(const std::filesystem::path& output) = 0;
    /// The demo's trace in kvscope-demo/ of the current folder: opened where it is complete, else run.
    virtual void run_demo() = 0;
    /// @param path empty: the default model
    virtual void load_model(const std::filesystem::path& path) = 0;
    /// Makes a prompt's prefill again from its exact token ids. @param model empty: the trace's, among those known
    virtual void repeat_prefill(int document, int prompt, const std::filesystem::path& model) = 0;
    /// Computes the spectra of the trace's model and keeps them in the cache folder, where every trace of that model
    /// has them from.
    virtual void compute_spectra(int document) = 0;
    /// Trains EchoKV's maps for the model that is loaded, else the default one. Stopped, the same request goes on.
    virtual void train(const TrainingRequest& request) = 0;
    virtual const TrainingStatus& training() const = 0;
    /// Fills `EngineStatus::devices`, once, beside whatever else is under way: a card is taken into use for it.
    virtual void look_for_devices() = 0;
    /// Ends the job under way at the next safe place, or pauses it there where it is a run. Those that wait begin after
    /// it.
    virtual void cancel() = 0;
    /// Whether a job waits or is under way.
    virtual bool has_job(uint64_t job) const = 0;
    /// The jobs that wait, in the order in which they begin.
    virtual std::vector<WaitingJob> waiting() const = 0;
    /// Takes a waiting job out of the queue. Nothing happens where it has begun, or ended.
    virtual void drop(uint64_t job) = 0;
    /// Whether a run that waits, or is under way, writes to this file.
    virtual bool is_taken(const std::filesystem::path& output) const = 0;
    /// The run that was cancelled last; nullopt where there is none, or it was started again.
    virtual std::optional<StoppedRun> stopped_run() const = 0;
    /// Continues that run: where memory still holds it, nothing is repeated; else from what is finished on the disk.
    /// @returns as `run`; 0 where there is none
    virtual uint64_t continue_stopped_run() = 0;
    virtual EngineStatus status() const = 0;
    /// Why a job failed, whatever has been done since; empty where it has not ended, or went well.
    virtual std::string error_of(uint64_t job) const = 0;
    /// Of the job under way; empty where nothing is decoded.
    virtual const std::vector<PartialAnswer>& partial_answers() const = 0;
    /// Changes a run's cache between compressed and full behind the step that is decoded next; the trace says when.
    /// Nothing happens where the run is not decoded any more, or its cache has one form alone.
    virtual void switch_cache(int run) = 0;

    /// Tokens of the prompt as it would be sent, counted beside the window: the newest finished count, nullopt before
    /// the first. A small model is loaded for it where none is.
    virtual std::optional<TokenCount> count_tokens(const RunRequest& request) = 0;

    /// nullptr where the prompt's prefill is not in memory.
    virtual std::shared_ptr<const PrefillInMemory> prefill(int document, int prompt) const = 0;

    /// Why a run can neither be asked more nor decoded, as a sentence; empty where it can.
    virtual std::string obstacle_to_asking(const RunKey& run) const = 0;
    /// Whether the run's cache is still there to be asked; else it is made again first, with one prefill for all.
    virtual bool has_cache(const RunKey& run) const = 0;
    /// Asks the caches of runs one question each, all those of a prompt as one batch, with as many new tokens and the
    /// sampling of their trace. The answers go into their documents.
    virtual void ask(const std::vector<RunKey>& runs, const std::string& question) = 0;
    /// Makes what-ifs as runs: they get an answer, how far it is from the full cache's, and what their caches hold.
    virtual void decode(const std::vector<RunKey>& what_ifs) = 0;

    /// Once a frame: what arrived from the engine's thread goes into the session.
    virtual void update() = 0;
};

/// @param notice called on the window's thread with what a person should see
/// @param wake   called on any thread: something arrived, draw soon
/// @param known_models where a trace's model may be, beside the one loaded and the default; called on the window's
///               thread
/// @param n_threads that models run on; 0: one a core
/// @param before_step called on the engine's thread before each step of a run whose cache can change its form; may
/// wait,
///               so that a test meets a run in the middle of its answer
std::unique_ptr<EngineSession> make_engine_session(Session& session,
                                                   std::function<void(const std::string&, bool is_error)> notice,
                                                   std::function<void()> wake,
                                                   std::function<std::vector<std::filesystem::path>()> known_models,
                                                   int n_threads = 0, std::function<void()> before_step = nullptr);

}  // namespace kvscope::gui
