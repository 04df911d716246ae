#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/gui/session/answer_output.h"
#include "app/gui/tokens/token_map.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// A run whose divergence is drawn at each decode step.
struct StepSeries {
    RunKey run;
    RunLook look;
    std::shared_ptr<const AnswerOutput> output;
    std::vector<float> values;  ///< KL to the full cache, nats, or that less a reference's
};

/// Whether bars of so many runs side by side at each step would be too thin to be seen, and a map's rows would not.
/// @param width, height in pixels
bool wants_step_map(size_t n_runs, double n_steps, float width, float height);

/// Divergence by decode step: bars side by side, or where those would be thinner than two pixels and there is
/// room for it a map of runs × steps.
/// Click and drag go through the steps, the wheel zooms into them.
class StepPlot {
 public:
    /// @param less whose divergence is subtracted: "A's"; empty: nobody's
    void draw(Context& context, std::span<const StepSeries> series, float height, const std::string& less);

    void fit() { first_step_ = last_step_ = 0; }

 private:
    struct Frame;  ///< what the parts of one call of draw() share

    void draw_bars(const Frame& frame);
    void draw_map(const Frame& frame);
    static analysis::Figure color_bar_of(const Frame& frame);
    void set_up_map_axes(const Frame& frame, float width, float plot_height) const;
    /// On the screen, of a map between two corners; of the row behind the last, its lower edge.
    static float row_top(const Frame& frame, size_t row, ImVec2 from, ImVec2 to);
    static std::string label_of_row(const Frame& frame, size_t row, float width, float plot_height);
    static void outline_hovered_and_selected(const Frame& frame, ImVec2 from, ImVec2 to);
    /// What the runs look like, beside their rows.
    static void draw_chips(const Frame& frame, ImVec2 from, ImVec2 to);
    void scrub(const Frame& frame);
    void zoom_steps(double n_steps);
    const HeatMap& map_of(std::span<const StepSeries> series, size_t n_steps);

    double first_step_ = 0;  ///< of those in view, before the one that is `last_step_`; alike: all
    double last_step_ = 0;
    bool is_map_ = false;
    MapStore maps_;
    std::shared_ptr<const Pyramid> pyramid_;
    std::vector<std::vector<float>> mapped_;  ///< what the pyramid was made from
};

}  // namespace kvscope::gui
