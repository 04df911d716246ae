#pragma once

#include <imgui.h>

#include <functional>
#include <memory>
#include <string>

#include "app/gui/figure/figure_hit.h"
#include "app/gui/figure/figure_job.h"
#include "app/gui/figure/figure_shapes.h"
#include "app/gui/tokens/token_map.h"

namespace kvscope::gui {

struct FigureLook {
    bool legend = true;
    bool color_bars = true;
    bool notes = true;       ///< whether titles are followed by Panel::note, which a caption may repeat
    bool small = false;      ///< whether panels have titles but no axes, panning or zooming
    bool scrubs = false;     ///< whether the caller uses drags, so that only the wheel zooms, and only along x
    bool selects = true;     ///< whether the place under the mouse is highlighted in all views, and selected by a click
    size_t columns = 0;      ///< number of panel columns; 0 for the figure's own
    float least_height = 0;  ///< minimum height of data areas in pixels; 0 for the default
    int framed = -1;         ///< panel with an accented frame, or −1
    int hovered = -1;        ///< panel hovered here or in another view, or −1
    /// Returns a shape's weight: below 1 is faint, 1 is normal, above 1 is accented, above 2 has a rim. May be empty.
    std::function<float(size_t panel, size_t shape)> weight;
    std::function<void(size_t panel, const PlotFrame& frame, ImDrawList* list)> overlay;
};

/// Accents the hovered run, or the selected run if no run is hovered. The arguments must outlive the result.
[[nodiscard]] std::function<float(size_t panel, size_t shape)> weight_of_runs(const Session& session,
                                                                              const PreparedFigure& shown);

struct PanelLayout;

/// Draws a figure on the screen with panning, zooming, scrolling and marks of the selected and hovered items. Each
/// place on the screen needs its own object.
class FigurePlot {
 public:
    /// @param size 0 or less is relative to the remaining space, as for ImGui child windows
    FigureHit draw(const Context& context, const char* id, ImVec2 size,
                   const std::shared_ptr<const PreparedFigure>& figure, const FigureLook& look = {});

    void fit() { zoomed_.clear(); }

 private:
    struct Range {
        double min = 0;
        double max = 0;
        double drawn_min = 0;  ///< axis limits of the figure for which the range was set
        double drawn_max = 0;
    };
    struct Drawing;  ///< arguments shared by the parts of one call of draw()

    [[nodiscard]] FigureHit draw_panels(const Drawing& drawing);
    void scroll_panels(int framed, const PanelLayout& layout);
    void draw_title(const Drawing& drawing, size_t panel, const std::string& title, ImVec2 min, ImVec2 max);
    /// Draws a panel with zooming. @param frame receives the visible axes @returns whether the panel is hovered
    [[nodiscard]] bool draw_zoomable(const Drawing& drawing, size_t index, PlotFrame& frame);
    [[nodiscard]] FigureHit draw_panel(const Drawing& drawing, size_t panel, ImVec2 min, ImVec2 max);
    void draw_data(const Drawing& drawing, size_t panel, const PlotFrame& frame, ImDrawList* list);
    [[nodiscard]] analysis::Axis shown_axis(const analysis::Axis& axis, size_t key) const;

    std::map<size_t, Range> zoomed_;
    int framed_ = -1;  ///< framed panel that was last scrolled into view
    MapStore maps_;
};

}  // namespace kvscope::gui
