#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "app/gui/figure/figure_plot.h"
#include "app/gui/view_data/live_what_if.h"
#include "app/gui/view_data/what_if_curves.h"

namespace kvscope::gui {

/// Plots a measure of the shown runs' kept entries over the budget or a parameter, and lists budgets at a threshold.
class CurvePlot {
 public:
    /// Call it after `what_if.update()` and before `what_if.follow_widgets()`. @param what_if must have a source
    void draw(Context& context, LiveWhatIf& what_if);

    void fit() { plot_.fit(); }
    void save(nlohmann::json& state) const;
    void load(const nlohmann::json& state);

 private:
    struct Move {
        RunKey run;
        double x = 0;
    };

    void choose_measure();
    void choose_over(const LiveWhatIf& what_if, const std::string& shown);
    void prepare(const LiveCurvesNow& now, const LiveWhatIf& what_if, const trace::Reader& reader,
                 const std::string& over);
    void draw_plot(Context& context, const LiveCurvesNow& now, LiveWhatIf& what_if, const std::string& over);
    void draw_tooltip(const Context& context, const LiveCurvesNow& now, const FigureHit& hit, const LiveWhatIf& what_if,
                      const std::string& over) const;
    void draw_crossings(Context& context, const LiveCurvesNow& now, LiveWhatIf& what_if);
    void draw_left_out(const Context& context, const LiveCurvesNow& now) const;
    void go_to(Context& context, LiveWhatIf& what_if, const Move& move);

    std::optional<bool> is_open_;  ///< the user's choice; if empty, open when the plot fits
    bool had_room_ = false;        ///< whether the plot fitted in the last frame
    CurveSettings settings_;
    LiveCurves curves_;
    FigurePlot plot_;
    std::shared_ptr<const PreparedFigure> figure_;
    std::string figure_stamp_;
    double full_bytes_ = 0;
    bool is_known_ = false;  ///< whether any point of the figure has a value
    std::optional<Move> move_;
};

}  // namespace kvscope::gui
