#pragma once

#include <filesystem>

#include "tests/trace/sample_trace.h"

namespace kvscope::gui::testing {

/// A small trace in a folder of its own.
struct SampleTrace {
    trace::sample::TemporaryFolder folder;
    std::filesystem::path path = folder / "sample.h5";
    SampleTrace() { trace::sample::write(path); }
};

}  // namespace kvscope::gui::testing
