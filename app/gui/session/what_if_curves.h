#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/what_if/curve_figure.h"
#include "analysis/what_if/curve_runs.h"
#include "app/gui/session/session.h"

namespace kvscope::gui {

class EngineSession;
class PrefillInMemory;

/// What a person chose about the curves.
struct CurveSettings {
    analysis::CurveMeasure measure = analysis::CurveMeasure::coverage;
    std::string over = analysis::over_budget;
    double threshold = 0.9;  ///< share
};

/// The curves that are there, newest settings; those under way join them later.
struct LiveCurvesNow {
    std::vector<analysis::DrawnCurve> curves;  ///< `subject.run` counts `runs`
    std::vector<RunKey> runs;
    size_t n_under_way = 0;
    std::vector<std::string> left_out;  ///< "think @ 75 %: why"
    std::string stamp;                  ///< changes when any of it does
};

/// Curves of the shown runs of one prompt over the budget, or over a parameter, each made by a worker: from the
/// trace's scores where they do, else from a prefill in memory. Knows no ImGui. All calls from the window's thread.
class LiveCurves {
 public:
    /// Once a frame in which they are shown. @param of a run of the prompt, which has a curve also where it is hidden
    LiveCurvesNow update(Session& session, const EngineSession* engine, const RunKey& of,
                         const CurveSettings& settings);

 private:
    const analysis::CurveChoice& choice_of(const Session& session, const Document& document, const RunKey& of,
                                           const std::string& over);

    analysis::CurveChoice choice_;
    std::string choice_stamp_;
    TaskSlot<std::vector<analysis::CurvePoint>> curves_;
    TaskSlot<std::optional<int64_t>> crossings_;
};

}  // namespace kvscope::gui
