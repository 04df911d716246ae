#pragma once

#include <fmt/format.h>

#include "app/gui/engine/pausable_progress.h"

namespace kvscope::gui {

/// Progress of a benchmark task. Shows one step per sample instead of the phases of each sample.
class SampleProgress final : public engine::Progress {
 public:
    SampleProgress(PausableProgress& task, JobProgress& shown) : task_(task), shown_(shown) {}

    void show(size_t sample, size_t n_samples) {
        task_.begin(fmt::format("sample {} of {}", sample + 1, n_samples), static_cast<int64_t>(n_samples), "");
        task_.advance(static_cast<int64_t>(sample));
        shown_.set_seconds_left(seconds_left_);
    }
    /// @param seconds for all samples after the one in progress
    void set_seconds_left(double seconds) { seconds_left_ = seconds; }

    void begin(std::string_view, int64_t, std::string_view) override {}
    void advance(int64_t) override {}
    void message(std::string_view text) override { task_.message(text); }
    [[nodiscard]] std::stop_token stop_token() const override { return task_.stop_token(); }
    void throw_if_stopped() const override { task_.throw_if_stopped(); }

 private:
    PausableProgress& task_;
    JobProgress& shown_;
    double seconds_left_ = -1;
};

}  // namespace kvscope::gui
