#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
        std::string empty;    ///< text while no trace is open
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
