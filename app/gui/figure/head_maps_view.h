#pragma once

#include <string>
#include <vector>

#include "app/gui/figure/figure_view.h"

namespace kvscope::gui {

/// A view of maps over layers and heads, one or more per run.
class HeadMapsView : public FigureView {
 public:
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> help() const override;

 protected:
    /// @param maps_a_run number of consecutive panels per run
    HeadMapsView(const Words& words, std::string hint, size_t maps_a_run = 1)
        : FigureView(words, Kind::maps_of_runs), hint_(std::move(hint)), maps_a_run_(maps_a_run) {}

    [[nodiscard]] virtual std::vector<std::string> describe(const Session& session, const RunKey& run,
                                                            const FigureHit& hit, bool is_difference) const = 0;
    [[nodiscard]] virtual const char* measure() const = 0;

 private:
    void draw_figure(Context& context, const FigureRequest& request,
                     const std::shared_ptr<const PreparedFigure>& shown) final;

    std::string hint_;  ///< help text for moving the mouse
    size_t maps_a_run_;
};

}  // namespace kvscope::gui
