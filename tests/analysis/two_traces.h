#pragma once

#include <vector>

#include "analysis/figures_of_several_traces.h"
#include "analysis/runs/run_style.h"
#include "tests/analysis/sample_figures.h"

namespace kvscope::analysis::test {

/// Two traces of one model, the second with a longer prompt.
struct TwoTraces {
    SampleTrace first;
    SampleTrace second = [] {
        trace::sample::Options longer;
        longer.n_tokens = 60;
        return SampleTrace(longer);
    }();

    [[nodiscard]] std::vector<TracePart> parts(const FigureOptions& options = {}) const {
        const auto styles = run_styles_of_traces({first.reader().runs(0), second.reader().runs(0)});
        return {{&first.reader(), options, "one.h5", styles[0]}, {&second.reader(), options, "two.h5", styles[1]}};
    }
};

}  // namespace kvscope::analysis::test
