#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "app/gui/shell/app.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui::testing {

/// A small trace in its own folder.
struct SampleTrace {
    trace::sample::TemporaryFolder folder;
    std::filesystem::path path = folder / "sample.h5";
    /// @param n_tokens length of the prompt
    explicit SampleTrace(int64_t n_tokens = trace::sample::Options().n_tokens) {
        trace::sample::Options sizes;
        sizes.n_tokens = n_tokens;
        trace::sample::write(path, sizes);
    }
};

/// Opens the trace in the layout Explore.
[[nodiscard]] inline AppOptions explore(const std::filesystem::path& trace) {
    AppOptions options;
    options.traces = {trace};
    options.layout = "explore";
    return options;
}
[[nodiscard]] inline AppOptions explore(const SampleTrace& sample) { return explore(sample.path); }

/// Opens the trace in a single view.
[[nodiscard]] inline AppOptions alone(const SampleTrace& sample, const std::string& view) {
    AppOptions options = explore(sample);
    options.view = view;
    return options;
}

}  // namespace kvscope::gui::testing
