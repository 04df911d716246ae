#pragma once

#include <filesystem>

#include "app/gui/shell/app.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::gui::testing {

/// Two traces of one model. The second has a longer prompt.
struct TwoTraces {
    trace::sample::TemporaryFolder folder;
    std::filesystem::path first = folder / "one.h5";
    std::filesystem::path second = folder / "two.h5";

    TwoTraces() {
        trace::sample::write(first);
        trace::sample::Options longer;
        longer.n_tokens = 60;
        trace::sample::write(second, longer);
    }

    [[nodiscard]] AppOptions alone_in_the_window(const char* view, bool both = true) const {
        AppOptions options;
        options.traces = {first};
        if (both) options.traces.push_back(second);
        options.view = view;
        options.layout = "explore";
        options.remember = false;
        return options;
    }
};

}  // namespace kvscope::gui::testing
