#pragma once

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/gui/session/engine_session.h"
#include "app/gui/session/session.h"
#include "app/gui/view_data/live_what_if.h"

namespace kvscope::gui::testing {

namespace fs = std::filesystem;

inline const std::string text =
    "The quick brown fox jumps over the lazy dog, and then the other fox in the northern forest finds the hen within "
    "the inner garden; there are ten of them, 12 in winter, and naturally all of them are thirsty.";

/// A session with an engine and a small model in its own folder. The test draws the frames.
class SessionWithEngine {
 public:
    /// @param before_step see make_engine_session
    explicit SessionWithEngine(const std::string& name = "test", std::function<void()> before_step = nullptr)
        : folder(fs::temp_directory_path() / ("kvscope-engine-session-" + name + "-" + std::to_string(getpid()))),
          before_step_of_runs(std::move(before_step)) {
        fs::remove_all(folder);
        fs::create_directories(folder);
        session.tasks.wait();
    }
    ~SessionWithEngine() { fs::remove_all(folder); }

    [[nodiscard]] RunRequest request(std::vector<std::string> policies, const std::string& budgets) const {
        RunRequest wanted;
        wanted.model = fs::path(KVSCOPE_TEST_DATA) / "models" / "llama3-gqa-sharded";
        wanted.context = text;
        wanted.policies = std::move(policies);
        wanted.budgets = budgets;
        wanted.options.n_new = 4;
        wanted.output = folder / "run.h5";
        return wanted;
    }

    void frame() {
        engine->update();
        session.end_frame();
    }

    void until_idle() {
        for (int i = 0; i < 60'000 && engine->status().busy(); ++i) {
            frame();
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        REQUIRE(!engine->status().busy());
        frame();
    }

    /// Draws frames until the what-if is complete.
    void settle(LiveWhatIf& what_if) {
        for (int i = 0; i < 4; ++i) {
            what_if.update(session, engine.get());
            session.tasks.wait();
        }
        what_if.update(session, engine.get());
    }

    fs::path folder;
    Tasks tasks{[] {}};
    Session session{tasks};
    std::vector<std::string> errors, notices;
    std::vector<fs::path> known_models;
    std::function<void()> before_step_of_runs;
    std::unique_ptr<EngineSession> engine = make_engine_session(
        session,
        [this](const std::string& message, bool is_error) { (is_error ? errors : notices).push_back(message); }, [] {},
        [this] { return known_models; }, 0, before_step_of_runs);
};

}  // namespace kvscope::gui::testing
