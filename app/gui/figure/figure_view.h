#pragma once

#include <memory>

#include "app/gui/figure/figure_plot.h"
#include "app/gui/figure/figure_source.h"
#include "app/gui/session/comparison.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// A view that is one figure of analysis/figures/. Asks for it, says why there is none, draws the menu of a right
/// click.
class FigureView : public View {
 public:
    void draw(Context& context) final;
    void fit() override { plot_.fit(); }
    void save(nlohmann::json& state) const override;
    void load(const nlohmann::json& state) override;

 protected:
    struct Words {
        const char* kind;     ///< ViewKind::name
        const char* empty;    ///< without a trace
        const char* waiting;  ///< for the figure
        const char* remedy;   ///< behind why there is none; may be empty
    };
    /// How several traces are shown: curves in one plot, or their differences by pairs of runs; maps, of runs or of
    /// prompts, side by side or A − B.
    enum class Kind { curves, maps_of_runs, maps_of_prompts };
    FigureView(const Words& words, Kind kind, AutomaticComparison automatic = AutomaticComparison::none)
        : words_(words), kind_(kind), automatic_(automatic) {}

    /// The figure of the traces that are chosen; document −1 where there is nothing to show.
    FigureRequest request_for(const Session& session, const char* figure_name, bool with_runs) const;
    /// Of curves: which runs are compared.
    Compared compared(const Session& session) const;
    /// Whether there is more to choose, which draw_choices() draws in a line above the figure.
    virtual bool has_choices() const { return false; }
    virtual void draw_choices(Context&, const FigureRequest&) {}
    virtual void draw_figure(Context& context, const FigureRequest& request,
                             const std::shared_ptr<const PreparedFigure>& shown) = 0;

    FigurePlot plot_;

 private:
    Words words_;
    Kind kind_;
    Traces traces_ = Traces::all;
    AutomaticComparison automatic_;
    Comparison comparison_;
    TaskSlot<MadeFigure> made_;
};

}  // namespace kvscope::gui
