#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "app/gui/shell/app.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui::testing {

/// A small trace in a folder of its own.
struct SampleTrace {
    trace::sample::TemporaryFolder folder;
    std::filesystem::path path = folder / "sample.h5";
    /// @param n_tokens of the prompt
    explicit SampleTrace(int64_t n_tokens = trace::sample::Options().n_tokens) {
        trace::sample::Options sizes;
        sizes.n_tokens = n_tokens;
        trace::sample::write(path, sizes);
    }
};

/// The trace in the layout Explore.
inline AppOptions explore(const std::filesystem::path& trace) {
    AppOptions options;
    options.traces = {trace};
    options.layout = "explore";
    return options;
}
inline AppOptions explore(const SampleTrace& sample) { return explore(sample.path); }

/// The trace in one view that fills the window.
inline AppOptions alone(const SampleTrace& sample, const std::string& view) {
    AppOptions options = explore(sample);
    options.view = view;
    return options;
}

}  // namespace kvscope::gui::testing
