#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/gui/tokens/token_map.h"
#include "app/gui/view/view.h"
#include "app/gui/view_data/answer_comparison.h"

namespace kvscope::gui {

struct StepSeries {
    RunKey run;
    RunLook look;
    std::shared_ptr<const AnswerOutput> output;
    std::vector<float> values;  ///< KL to the full run in nats, possibly minus the KL of a reference
};

/// Returns true if bars would be too thin to see and a map's rows would be high enough. Sizes are in pixels.
[[nodiscard]] bool wants_step_map(size_t n_runs, double n_steps, float width, float height);

/// Plots the divergence per decode step as bars, or as a map (runs, steps) if bars would be too thin.
class StepPlot {
 public:
    void draw(Context& context, std::span<const StepSeries> series, float height, const std::string& less);

    void fit() { first_step_ = last_step_ = 0; }

 private:
    struct Frame;  ///< arguments shared by the parts of one call of draw()

    void draw_bars(const Frame& frame);
    void draw_map(const Frame& frame);
    [[nodiscard]] static analysis::Figure color_bar_of(const Frame& frame);
    void set_up_map_axes(const Frame& frame, float width, float plot_height) const;
    /// Returns the top edge of a row. For the row number after the last row, returns the bottom edge of the map.
    [[nodiscard]] static float row_top(const Frame& frame, size_t row, ImVec2 from, ImVec2 to);
    [[nodiscard]] static std::string label_of_row(const Frame& frame, size_t row, float width, float plot_height);
    static void outline_hovered_and_selected(const Frame& frame, ImVec2 from, ImVec2 to);
    static void draw_chips(const Frame& frame, ImVec2 from, ImVec2 to);
    void scrub(const Frame& frame);
    void zoom_steps(double n_steps);
    [[nodiscard]] const HeatMap& map_of(std::span<const StepSeries> series, size_t n_steps);

    double first_step_ = 0;  ///< visible steps [first, last); all if both are equal
    double last_step_ = 0;
    bool is_map_ = false;
    MapStore maps_;
    std::shared_ptr<const Pyramid> pyramid_;
    std::vector<std::vector<float>> mapped_;  ///< values from which the pyramid was made
};

}  // namespace kvscope::gui
