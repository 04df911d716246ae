#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "app/gui/session/engine_session.h"
#include "engine/checkpoint/checkpoint.h"
#include "tests/gui/driven_window.h"
#include "tests/gui/session_with_engine.h"
#include "tests/gui/small_model.h"
#include "tests/policies/echo_maps_file.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui::testing {

/// Pauses the engine before a step of the answer until the test allows it. Steps are counted from 0.
class HeldSteps {
 public:
    /// Called on the engine's thread before each step.
    void before_step() {
        std::unique_lock lock(mutex_);
        ++n_begun_;
        changed_.wait(lock, [this] { return n_begun_ <= allowed_; });
    }
    /// Allows n steps in total.
    void allow(int n) {
        const std::lock_guard lock(mutex_);
        allowed_ = n;
        changed_.notify_all();
    }
    void allow_all() { allow(std::numeric_limits<int>::max()); }
    /// Whether the engine waits after n steps.
    [[nodiscard]] bool waits_behind(int n) {
        const std::lock_guard lock(mutex_);
        return n_begun_ == n + 1 && allowed_ == n;
    }

 private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int n_begun_ = 0;
    int allowed_ = 0;
};

/// Lets the engine continue when the test ends, because the closing app waits for it.
struct AllowedAtTheEnd {
    HeldSteps& steps;
    ~AllowedAtTheEnd() { steps.allow_all(); }
};

/// Maps for a run of EchoKV on the small model, whose cache can be made full and compressed.
[[nodiscard]] inline policies::test::EchoMapsFile maps_of_small_model() {
    return {{.n_layers = 2, .n_kv_heads = 2, .head_dim = 16, .group = 2, .local = 4},
            checkpoint::open_checkpoint(small_model)->fingerprint()};
}

/// A session with an engine that pauses before each step of runs made together with EchoKV.
class HeldSession {
 public:
    explicit HeldSession(const std::string& name) : gui(name, [this] { steps.before_step(); }) {}

    /// Policy of the paused run.
    [[nodiscard]] std::string echokv() const { return "echokv:recent=9,maps=" + maps.path(); }
    /// Draws frames until the engine waits after n steps and `is_told` holds.
    void wait_after(int n, const std::function<bool()>& is_told) {
        const auto waits = [&] { return steps.waits_behind(n) && is_told(); };
        for (int i = 0; i < patience && gui.engine->status().busy() && !waits(); ++i) {
            gui.frame();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        REQUIRE(waits());
    }
    /// Cancels the paused run.
    void cancel() {
        gui.engine->cancel();
        steps.allow_all();
        gui.until_idle();
    }

    HeldSteps steps;
    const policies::test::EchoMapsFile maps = maps_of_small_model();
    SessionWithEngine gui;

 private:
    const AllowedAtTheEnd at_the_end_{steps};
};

/// The app with the small model, in which a run of EchoKV pauses before each step of its answer.
class HeldWindow {
 public:
    explicit HeldWindow(AppOptions options) : driven(held(std::move(options))) {
        REQUIRE(driven.draw_until([&] { return engine().status().model_path == small_model; }, patience));
        driven.settle();
    }

    [[nodiscard]] EngineSession& engine() { return *driven.app().engine(); }
    /// Draws frames until the run waits after n steps and has reported them.
    void wait_after(int n) {
        REQUIRE(
            driven.draw_until([&] { return steps.waits_behind(n) && !engine().partial_answers().empty(); }, patience));
        driven.settle();
    }
    void let_it_end() {
        steps.allow_all();
        REQUIRE(driven.draw_until([&] { return !engine().status().busy(); }, patience));
    }

    const trace::sample::TemporaryFolder folder;
    const policies::test::EchoMapsFile maps = maps_of_small_model();
    HeldSteps steps;
    DrivenApp driven;

 private:
    [[nodiscard]] AppOptions held(AppOptions options) {
        options.traces = {small_model};
        options.before_step = [this] { steps.before_step(); };
        return options;
    }

    const AllowedAtTheEnd at_the_end_{steps};
};

}  // namespace kvscope::gui::testing
