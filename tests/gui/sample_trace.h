#pragma once

#include <filesystem>
#include <string>

#include "app/gui/shell/app.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui::testing {

/// A small trace in a folder of its own.
struct SampleTrace {
    trace::sample::TemporaryFolder folder;
    std::filesystem::path path = folder / "sample.h5";
    SampleTrace() { trace::sample::write(path); }
};

/// The trace in the layout Explore.
inline AppOptions explore(const SampleTrace& sample) {
    AppOptions options;
    options.traces = {sample.path};
    options.layout = "explore";
    return options;
}

/// The trace in one view that fills the window.
inline AppOptions alone(const SampleTrace& sample, const std::string& view) {
    AppOptions options = explore(sample);
    options.view = view;
    return options;
}

}  // namespace kvscope::gui::testing
