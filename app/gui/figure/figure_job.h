#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "analysis/drawing/figure.h"
#include "analysis/figures_of_several_traces.h"
#include "app/figures/figure_format.h"
#include "app/gui/drawing/heat_map.h"
#include "app/gui/view/view.h"
#include "common/unique_id.h"

namespace kvscope::gui {

/// A figure, ready to draw, with the levels of detail of its maps.
struct PreparedFigure {
    analysis::Figure figure;
    /// Levels of detail of the maps, by the indices of panel and shape.
    std::map<std::pair<size_t, size_t>, std::shared_ptr<const Pyramid>> pyramids;
    /// Runs of each trace's prompt when the figure was made, with shape (traces, runs).
    std::vector<std::vector<RunKey>> runs = {};
    /// Ids of documents and prompts. Documents may have been closed since.
    std::vector<std::pair<int, int>> traces = {};
    std::vector<RunKey> sides = {};  ///< result of sides_of_difference() for the request
    uint64_t number = unique_id();   ///< identifies the figure in caches

    [[nodiscard]] RunKey run_of(const analysis::Subject& subject) const;
    [[nodiscard]] RunKey run_of(size_t panel, size_t shape) const;
    /// Returns the subject's position, or nullopt if the trace was closed. The run is invalid if the subject has none.
    [[nodiscard]] std::optional<Cursor> cursor_of(const Session& session, const analysis::Subject& subject) const;
    [[nodiscard]] bool is_of(const TraceRequest& request) const;
};

/// Returns A and B of a difference, which are prompts or single runs. Returns an empty list for other requests.
[[nodiscard]] std::vector<RunKey> sides_of_difference(const FigureRequest& request);

[[nodiscard]] PreparedFigure prepare_figure(analysis::Figure figure);

struct MadeFigure {
    std::shared_ptr<const PreparedFigure> figure;
    std::string nothing;
};

/// Makes a request's figure and numbers on any thread. Throws like the figure's definition.
class FigureJob {
 public:
    /// Whether titles contain the full names of traces, or badges for long names.
    enum class Names { in_full, in_titles };
    FigureJob(const Session& session, const FigureRequest& request, Names names = Names::in_full);
    /// Returns a job that throws Stopped after a stop request.
    [[nodiscard]] FigureJob with_stop(const std::stop_token& stop) const;
    void check() const;
    [[nodiscard]] analysis::Figure figure() const;
    /// Returns one figure per trace, with a common scale. For a difference, returns only the figure of the difference.
    [[nodiscard]] std::vector<analysis::TraceFigure> figures() const;
    [[nodiscard]] analysis::Table numbers() const;
    [[nodiscard]] figures::Exported exported() const;
    [[nodiscard]] bool is_difference() const { return difference_; }
    [[nodiscard]] const std::vector<std::vector<RunKey>>& runs() const { return runs_; }
    [[nodiscard]] const std::vector<std::pair<int, int>>& traces() const { return traces_; }
    [[nodiscard]] const std::vector<RunKey>& sides() const { return sides_; }

 private:
    std::string name_;
    bool difference_;
    std::vector<std::shared_ptr<const trace::Reader>> readers_;
    std::vector<analysis::TracePart> parts_;
    std::vector<std::vector<RunKey>> runs_;
    std::vector<std::pair<int, int>> traces_;
    std::vector<RunKey> sides_;
};

/// Returns the figure. A job makes the figure again if the trace, its runs or the options change.
TaskResult<MadeFigure> request_figure(Session& session, const TaskSlot<MadeFigure>& slot, const FigureRequest& request);

/// Returns one figure per trace, with a common scale. For a difference, returns only the figure of the difference.
[[nodiscard]] TaskResult<std::vector<MadeFigure>> request_figures_by_trace(
    Session& session, const TaskSlot<std::vector<MadeFigure>>& slot, const FigureRequest& request);

/// Returns a text that changes whenever the figure changes.
[[nodiscard]] std::string figure_change_stamp(const Session& session, const FigureRequest& request);

/// Returns the figure, or draws why there is none and returns nullptr.
[[nodiscard]] std::shared_ptr<const PreparedFigure> figure_or_draw_reason(const Context& context,
                                                                          const TaskResult<MadeFigure>& answer,
                                                                          const char* waiting);

enum class Traces { focused, all, difference };

/// Returns a request for the shown prompt and runs. The request's document is −1 if the prompt, A or B is missing.
[[nodiscard]] FigureRequest figure_request_for_shown_runs(const Session& session, const std::string& figure,
                                                          bool with_runs, Traces traces = Traces::focused);

/// Returns a request for these runs, grouped by trace. The request's document is −1 if there are none.
[[nodiscard]] FigureRequest figure_request_for_runs(const std::string& figure, const std::vector<RunKey>& runs);

[[nodiscard]] int n_layers_of_document(const Session& session, int document);
[[nodiscard]] int n_heads_of_document(const Session& session, int document);

}  // namespace kvscope::gui
