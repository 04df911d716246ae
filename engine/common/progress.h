#pragma once

#include <cstdint>
#include <string_view>

namespace kvscope::engine {

/// Receives the progress of long work. All calls come from the engine's thread.
class Progress {
 public:
    virtual ~Progress() = default;

    /// Starts a phase ("prefill", "decode", …) with a number of steps. `unit` names the steps ("layers").
    virtual void begin(std::string_view phase, int64_t steps, std::string_view unit) = 0;
    virtual void advance(int64_t done) = 0;
    virtual void message(std::string_view text) = 0;

    /// Called often. Returns true to stop the work, which then throws Cancelled. May block to pause the work.
    [[nodiscard]] virtual bool cancelled() const = 0;
    /// Like cancelled(), but never pauses. Used while the work holds a resource that other work may need.
    [[nodiscard]] virtual bool cancelled_without_pause() const { return cancelled(); }
};

class SilentProgress final : public Progress {
 public:
    void begin(std::string_view, int64_t, std::string_view) override {}
    void advance(int64_t) override {}
    void message(std::string_view) override {}
    [[nodiscard]] bool cancelled() const override { return false; }
};

/// Cancels when `outer` cancels, but reports no steps. Used for work within another phase.
class WithoutSteps final : public Progress {
 public:
    explicit WithoutSteps(const Progress& outer) : outer_(outer) {}
    void begin(std::string_view, int64_t, std::string_view) override {}
    void advance(int64_t) override {}
    void message(std::string_view) override {}
    [[nodiscard]] bool cancelled() const override { return outer_.cancelled(); }
    [[nodiscard]] bool cancelled_without_pause() const override { return outer_.cancelled_without_pause(); }

 private:
    const Progress& outer_;
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
    [[nodiscard]] bool cancelled() const override { return outer_.cancelled_without_pause(); }

 private:
    Progress& outer_;
};

}  // namespace kvscope::engine
