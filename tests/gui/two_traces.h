#pragma once

#include <catch2/catch.hpp>
#include <filesystem>

#include "app/gui/figure/figure_job.h"
#include "app/gui/shell/app.h"
#include "tests/gui/driven_window.h"
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

/// Figure of the only view.
[[nodiscard]] inline analysis::Figure shown_by(DrivenApp& driven) {
    const auto request = driven.app().views().at(0)->view->figure(driven.session());
    REQUIRE(request);
    return FigureJob(driven.session(), *request).figure();
}

[[nodiscard]] inline RunKey run_called(const Session& session, const std::string& label) {
    for (const RunKey& key : session.all_runs())
        if (session.look(key).label == label) return key;
    FAIL("no run is called " << label);
    return {};
}

[[nodiscard]] inline const analysis::HeatMap& map_of(const analysis::Figure& figure, size_t panel) {
    return std::get<analysis::HeatMap>(figure.panels.at(panel).shapes.front());
}

}  // namespace kvscope::gui::testing
