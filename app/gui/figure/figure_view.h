#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app/gui/figure/figure_job.h"
#include "app/gui/figure/figure_plot.h"
#include "app/gui/view/view.h"
#include "app/gui/view_data/comparison.h"

namespace kvscope::gui {

/// A view of one figure: requests the figure, explains why there is none, and draws the context menu.
class FigureView : public View {
 public:
    void draw(Context& context) final;
    /// Returns the request for the figure that is named like the view.
    [[nodiscard]] std::optional<FigureRequest> figure(const Session& session) const override;
    void fit() override { plot_.fit(); }
    void save(nlohmann::json& state) const override;
    void load(const nlohmann::json& state) override;

 protected:
    struct Words {
        const char* kind;     ///< ViewKind::name
        std::string empty;    ///< text without a trace
        const char* waiting;  ///< text while a job makes the figure
        const char* remedy;   ///< advice after the reason why there is no figure; may be empty
    };
    /// What the figure contains. Curves of several traces share a plot, while their maps are side by side.
    enum class Kind { curves, maps_of_runs, maps_of_prompts };
    FigureView(Words words, Kind kind, AutomaticComparison automatic = AutomaticComparison::none)
        : words_(std::move(words)), kind_(kind), automatic_(automatic) {}

    /// Returns a request for the chosen traces, or nullopt if nothing can be shown.
    [[nodiscard]] std::optional<FigureRequest> request_for(const Session& session, const std::string& name) const;
    [[nodiscard]] Compared compared(const Session& session) const;
    [[nodiscard]] virtual bool has_choices() const { return false; }
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
