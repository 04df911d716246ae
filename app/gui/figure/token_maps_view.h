#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/figure/figure_job.h"
#include "app/gui/tokens/token_map.h"

namespace kvscope::gui {

/// Heat map of one run. Columns are tokens; rows are layers or heads.
struct RunTokenMap {
    std::shared_ptr<const Pyramid> pyramid;  ///< nullptr until the map is made, and after an error
    analysis::ColorScale scale;
    std::string note;   ///< short text after the run's label
    std::string error;  ///< why there is no map
};

/// A view with one map per run. A figure of analysis/figures/ computes each map. All maps have the same token axis and
/// color scales.
class TokenMapsView : public View {
 public:
    void draw(Context& context) override;
    [[nodiscard]] std::optional<FigureRequest> figure(const Session& session) const override;
    void fit() override { fit_ = true; }

 protected:
    explicit TokenMapsView(std::string figure_name) : figure_name_(std::move(figure_name)) {}

    [[nodiscard]] virtual std::vector<RunKey> shown_runs(const Session& session) const = 0;
    [[nodiscard]] virtual std::string why_no_runs(const Session& session) const = 0;
    virtual void draw_header(const Context& context) = 0;
    [[nodiscard]] virtual RunTokenMap map_of(Session& session, const RunKey& run) const {
        return layers_of(session, run);
    }
    virtual void draw_tooltip(Context& context, const RunKey& run, int row, int64_t token) const = 0;
    /// Reacts to a double click.
    virtual void enter(Session& session, const RunKey& run, int row, int64_t token) = 0;

    /// Returns the run's map with layers as rows.
    [[nodiscard]] RunTokenMap layers_of(Session& session, const RunKey& run) const;

    int layer_ = -1;  ///< layer whose heads are the rows, or −1 if the rows are layers

 private:
    DrawnTokenMap draw_run(Context& context, const RunKey& run, const RunTokenMap& of, const MapColors& colors,
                           float height);
    void draw_axis(Context& context, const RunKey& run, const DrawnTokenMap& place, float overview);
    void scroll_to_selected(const RunKey& selected, const std::vector<RunKey>& runs, float each);
    [[nodiscard]] const HeatMap& drawn_map(const RunKey& run, const RunTokenMap& of, int layer);

    std::string figure_name_;
    bool fit_ = false;
    RunKey seen_;  ///< selected run that was last scrolled to
    MapStore maps_;
};

}  // namespace kvscope::gui
