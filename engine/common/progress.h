#pragma once

#include <cstdint>
#include <stop_token>
#include <string_view>

#include "common/stopped.h"

namespace kvscope::engine {

/// Receives the progress of long work. All calls come from the engine's thread.
class Progress {
 public:
    virtual ~Progress() = default;

    /// Starts a phase ("prefill", "decode", …) with a number of steps. `unit` names the steps ("layers").
    virtual void begin(std::string_view phase, int64_t steps, std::string_view unit) = 0;
    virtual void advance(int64_t done) = 0;
    virtual void message(std::string_view text) = 0;

    /// Returns the stop token of the work. After a stop request, the work throws Stopped.
    [[nodiscard]] virtual std::stop_token stop_token() const { return {}; }
    /// Called often. Throws Stopped after a stop request, or blocks to pause the work. While the work holds a resource
    /// that other work may need, it asks stop_token() instead.
    virtual void throw_if_stopped() const { kvscope::throw_if_stopped(stop_token()); }
};

class SilentProgress final : public Progress {
 public:
    void begin(std::string_view, int64_t, std::string_view) override {}
    void advance(int64_t) override {}
    void message(std::string_view) override {}
};

/// Reports no steps, but passes messages and stop requests on. Used for work within another phase.
class WithoutSteps final : public Progress {
 public:
    explicit WithoutSteps(Progress& outer) : outer_(outer) {}
    void begin(std::string_view, int64_t, std::string_view) override {}
    void advance(int64_t) override {}
    void message(std::string_view text) override { outer_.message(text); }
    [[nodiscard]] std::stop_token stop_token() const override { return outer_.stop_token(); }
    void throw_if_stopped() const override { outer_.throw_if_stopped(); }

 private:
    Progress& outer_;
};

/// Passes all calls on, but never pauses.
class WithoutPauses final : public Progress {
 public:
    explicit WithoutPauses(Progress& outer) : outer_(outer) {}
    void begin(std::string_view phase, int64_t steps, std::string_view unit) override {
        outer_.begin(phase, steps, unit);
    }
    void advance(int64_t done) override { outer_.advance(done); }
    void message(std::string_view text) override { outer_.message(text); }
    [[nodiscard]] std::stop_token stop_token() const override { return outer_.stop_token(); }

 private:
    Progress& outer_;
};

}  // namespace kvscope::engine
