#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/what_if/curve_figure.h"
#include "analysis/what_if/curve_runs.h"
#include "app/gui/session/session.h"

namespace kvscope::gui {

class EngineSession;
class PrefillInMemory;

struct CurveSettings {
    analysis::CurveMeasure measure = analysis::CurveMeasure::coverage;
    std::string over = analysis::over_budget;
    double threshold = 0.9;  ///< share that a curve should reach
};

struct LiveCurvesNow {
    std::vector<analysis::DrawnCurve> curves;  ///< `subject.run` is an index into `runs`
    std::vector<RunKey> runs;
    size_t n_under_way = 0;
    std::vector<std::string> left_out;  ///< runs without a curve and the reason: "think @ 75 %: why"
    std::string stamp;                  ///< changes if another member changes
};

/// Curves for the shown runs of one prompt: a measure as a function of the budget or of a parameter. Workers compute
/// the curves from the trace's scores or from a prefill in memory. UI thread only; does not use ImGui.
class LiveCurves {
 public:
    /// Call once per frame. @param of a run of the prompt. Its curve is included even if the run is hidden.
    [[nodiscard]] LiveCurvesNow update(Session& session, const EngineSession* engine, const RunKey& of,
                                       const CurveSettings& settings);

 private:
    [[nodiscard]] const analysis::CurveChoice& choice_of(const Session& session, const Document& document,
                                                         const RunKey& of, const std::string& over);

    analysis::CurveChoice choice_;
    std::string choice_stamp_;
    TaskSlot<std::vector<analysis::CurvePoint>> curves_;
    TaskSlot<std::optional<int64_t>> crossings_;
};

}  // namespace kvscope::gui
