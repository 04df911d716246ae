#pragma once

#include <imgui.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/gui/figure/figure_hit.h"
#include "app/gui/figure/figure_shapes.h"
#include "app/gui/figure/figure_source.h"
#include "app/gui/tokens/token_map.h"

namespace kvscope::gui {

/// How a figure is shown beyond what it says itself.
struct FigureLook {
    bool legend = true;
    bool color_bars = true;
    bool small = false;      ///< small multiples: titles and no axes, nothing to pan or zoom
    size_t columns = 0;      ///< of the panels, in their order; 0: as the figure says
    float least_height = 0;  ///< of a panel's data area, pixels; panels that find no room are scrolled to. 0: usual
    int framed = -1;         ///< panel in the accent's colour
    int hovered = -1;        ///< panel under the mouse here or in another view
    /// Of a shape of a panel: 1 as it is, above accented (above 2 with a rim), below faint. Empty: all as they are.
    std::function<float(size_t panel, size_t shape)> weight;
    /// Drawn over a panel's data.
    std::function<void(size_t panel, const PlotFrame& frame, ImDrawList* list)> overlay;
};

/// FigureLook::weight of a figure with a curve for each run: the run under the mouse in any view, else the selected
/// one. Both arguments outlive what is returned.
std::function<float(size_t panel, size_t shape)> weight_of_runs(const Session& session, const PreparedFigure& shown);

struct PanelLayout;

/// Draws the same description that is exported, with ImPlot's mouse: drag pans, the wheel zooms (Alt across, Shift up
/// and down alone), Ctrl-drag zooms into a box, double click shows everything. Panels that find no room are scrolled to
/// by the wheel beside their data, page keys and scroll bar. Maps are drawn by the GPU. Keeps what is zoomed and
/// uploaded; one per place.
class FigurePlot {
 public:
    /// Fills `size` (0 or less: to the right and lower end of the window, as for child windows).
    FigureHit draw(const Context& context, const char* id, ImVec2 size,
                   const std::shared_ptr<const PreparedFigure>& figure, const FigureLook& look = {});

    /// All panels back to what the figure says.
    void fit() { zoomed_.clear(); }

 private:
    struct Range {
        double min = 0;
        double max = 0;
        double drawn_min = 0;  ///< of the figure for which it was set
        double drawn_max = 0;
    };
    struct Drawing;  ///< what the parts of one call of draw() share

    FigureHit draw_panels(const Drawing& drawing);
    /// Where they find no room: by key, and to the framed one where that has changed.
    void scroll_panels(int framed, const PanelLayout& layout);
    void draw_title(const Drawing& drawing, size_t panel, const std::string& title, ImVec2 min, ImVec2 max);
    /// A panel whose axes the mouse zooms and pans. @param frame its axes become what is in view
    /// @returns whether the mouse is over it
    bool draw_zoomable(const Drawing& drawing, size_t index, PlotFrame& frame);
    FigureHit draw_panel(const Drawing& drawing, size_t panel, ImVec2 min, ImVec2 max);
    void draw_data(const Drawing& drawing, size_t panel, const PlotFrame& frame, ImDrawList* list);
    analysis::Axis shown_axis(const analysis::Axis& axis, size_t key) const;

    std::map<size_t, Range> zoomed_;
    int framed_ = -1;  ///< panel that was brought into view last
    MapStore maps_;
};

}  // namespace kvscope::gui
