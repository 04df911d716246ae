#pragma once

#include <cstdint>
#include <string_view>

namespace kvscope::engine {

/// Where long work reports to. Calls come from the engine's thread; the implementation decides how to show them.
class Progress {
 public:
    virtual ~Progress() = default;

    /// A phase ("prefill", "decode", …) with the number of its steps, and what they are ("layers").
    virtual void begin(std::string_view phase, int64_t steps, std::string_view unit) = 0;
    virtual void advance(int64_t done) = 0;
    virtual void message(std::string_view text) = 0;

    /// Asked often; true ends the work with `Cancelled` at the next safe place. An implementation may instead pause the
    /// work here, and return false when it is to continue.
    virtual bool cancelled() const = 0;
    /// The same without a pause, for work that holds something for which other work would wait.
    virtual bool cancelled_without_pause() const { return cancelled(); }
};

/// Shows nothing, never cancels.
class SilentProgress final : public Progress {
 public:
    void begin(std::string_view, int64_t, std::string_view) override {}
    void advance(int64_t) override {}
    void message(std::string_view) override {}
    bool cancelled() const override { return false; }
};

/// Shows nothing of its own, and cancels as another does: for work that is a step of the other's.
class WithoutSteps final : public Progress {
 public:
    explicit WithoutSteps(const Progress& outer) : outer_(outer) {}
    void begin(std::string_view, int64_t, std::string_view) override {}
    void advance(int64_t) override {}
    void message(std::string_view) override {}
    bool cancelled() const override { return outer_.cancelled(); }
    bool cancelled_without_pause() const override { return outer_.cancelled_without_pause(); }

 private:
    const Progress& outer_;
};

/// Shows the same, and never pauses.
class WithoutPauses final : public Progress {
 public:
    explicit WithoutPauses(Progress& outer) : outer_(outer) {}
    void begin(std::string_view phase, int64_t steps, std::string_view unit) override {
        outer_.begin(phase, steps, unit);
    }
    void advance(int64_t done) override { outer_.advance(done); }
    void message(std::string_view text) override { outer_.message(text); }
    bool cancelled() const override { return outer_.cancelled_without_pause(); }

 private:
    Progress& outer_;
};

}  // namespace kvscope::engine
