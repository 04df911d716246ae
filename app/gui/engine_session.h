#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/selection.h"
#include "policies/interface/registry.h"
#include "trace/records.h"

namespace kvscope::gui {

class Session;

/// What the Run view has been filled in with; as `kvscope run` takes it.
struct RunRequest {
    std::filesystem::path model;  ///< empty: the default model
    std::string name = "prompt";
    std::string context;
    std::string question;
    bool query_aware = true;
    bool use_template = true;
    std::vector<std::string> policies;  ///< "snapkv:window=8"
    std::string budgets;                ///< "64,256"
    int n_new = 48;
    std::filesystem::path output;  ///< empty: a new file in the current folder
};

struct EngineStatus {
    enum class State { idle, loading, running, cancelling };
    State state = State::idle;
    std::string what;          ///< "demo.h5: 14 runs"
    std::string phase;         ///< "prefill"
    double share = 0;          ///< of the phase, 0 to 1
    double seconds_left = -1;  ///< of the phase; below 0: not known yet
    std::string model;         ///< name of the model that is loaded; empty: none
    std::string error;         ///< of the last job; empty: it went well
    bool busy() const { return state != State::idle; }
};

/// An answer to a further question asked of a compressed cache; it grows while it is decoded.
struct FurtherAnswer {
    RunKey run;
    std::string question;
    std::string text;
    bool finished = false;
    std::string error;
};

/// How many tokens a text has for the model that is loaded.
struct TokenCount {
    int64_t n_tokens = 0;
    int64_t context_length = 0;
    std::string error;
};

/// The engine beside the window, on a thread of its own. One job at a time; further ones wait. All calls from the
/// window's thread; none blocks.
class EngineSession {
 public:
    virtual ~EngineSession() = default;

    /// Loads the model if need be and runs the job; the trace is opened in the session as soon as its prompt is there,
    /// and reloaded as each run ends.
    virtual void run(const RunRequest& request) = 0;
    /// Every policy on the demo prompt into kvscope-demo/demo.h5, which is opened at once where it is complete.
    virtual void run_demo() = 0;
    virtual void load_model(const std::filesystem::path& path) = 0;
    virtual void cancel() = 0;
    virtual EngineStatus status() const = 0;

    /// Tokens of the prompt as it would be sent, counted beside the window: the newest finished count, nullopt before
    /// the first or without a model.
    virtual std::optional<TokenCount> count_tokens(const RunRequest& request) = 0;

    /// Whether this prompt's prefill is in memory, so that every parameter can change without it.
    virtual bool has_prefill(int document, int prompt) const = 0;
    /// The run under other parameters, from the prefill in memory. On a worker thread; throws as policies do.
    virtual trace::RunRecord what_if(int document, int prompt, const policies::PolicySpec& spec,
                                     int64_t budget) const = 0;

    /// Whether the run's cache is still there to be asked.
    virtual bool can_ask(const RunKey& run) const = 0;
    virtual void ask(const RunKey& run, const std::string& question) = 0;
    virtual const std::vector<FurtherAnswer>& further_answers() const = 0;

    /// Once a frame: what arrived from the engine's thread goes into the session.
    virtual void update() = 0;
};

/// @param notice called on the window's thread with what a person should see
std::unique_ptr<EngineSession> make_engine_session(Session& session,
                                                   std::function<void(const std::string&, bool is_error)> notice);

}  // namespace kvscope::gui
