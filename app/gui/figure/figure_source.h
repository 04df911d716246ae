#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/figure.h"
#include "analysis/several_traces.h"
#include "app/figures/figure_format.h"
#include "app/gui/drawing/pyramid.h"
#include "app/gui/session/unique_id.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// A figure with its maps' levels of detail: everything about it that is not done in a frame.
struct PreparedFigure {
    analysis::Figure figure;
    /// For each map (panel, shape) of the figure.
    std::map<std::pair<size_t, size_t>, std::shared_ptr<const Pyramid>> pyramids;
    /// (traces) of (runs): the runs of each trace's prompt as they stood when the figure was made.
    std::vector<std::vector<RunKey>> runs = {};
    /// The documents and prompts that it is of, which may be closed by now.
    std::vector<std::pair<int, int>> traces = {};
    std::vector<RunKey> sides = {};  ///< as sides_of() the request has them
    uint64_t number = unique_id();   ///< what is made of it is known by

    /// The run that a panel, curve or point is of; not valid where it is of none.
    RunKey run_of(const analysis::Subject& subject) const;
    RunKey run_of(size_t panel, size_t shape) const;
    /// The place in its trace; nothing where that is closed. A run that is there no more, or none, is not valid.
    std::optional<Cursor> cursor_of(const Session& session, const analysis::Subject& subject) const;
    /// Whether it is of that trace's prompt alone.
    bool is_of(const TraceRequest& request) const;
};

/// Of a difference what it is of: on each side a prompt, with its run where it is one. Empty where the request is of
/// none.
std::vector<RunKey> sides_of(const FigureRequest& request);

PreparedFigure prepare_figure(analysis::Figure figure);

/// What came of asking for a figure: the figure, or one line that says why there is none.
struct MadeFigure {
    std::shared_ptr<const PreparedFigure> figure;
    std::string nothing;
};

/// What makes a request's figure and its numbers, in whichever thread.
class FigureJob {
 public:
    /// How traces are called in titles: by their names, or, on the screen, by their badges where a name is long.
    enum class Names { in_full, in_titles };
    /// @throws analysis::NothingToShow where a trace is closed
    FigureJob(const Session& session, const FigureRequest& request, Names names = Names::in_full);
    /// Before anything is made. All throw what the figure's definition throws.
    void check() const;
    analysis::Figure figure() const;
    /// Each trace's own on one scale; of a difference that alone.
    std::vector<analysis::TraceFigure> figures() const;
    analysis::Table numbers() const;
    /// The three, for an export.
    figures::Exported exported() const;
    bool is_difference() const { return difference_; }
    /// As PreparedFigure::runs.
    const std::vector<std::vector<RunKey>>& runs() const { return runs_; }
    /// As PreparedFigure::traces.
    const std::vector<std::pair<int, int>>& traces() const { return traces_; }
    /// As PreparedFigure::sides.
    const std::vector<RunKey>& sides() const { return sides_; }

 private:
    std::string name_;
    bool difference_;
    std::vector<std::shared_ptr<const trace::Reader>> readers_;
    std::vector<analysis::TracePart> parts_;
    std::vector<std::vector<RunKey>> runs_;
    std::vector<std::pair<int, int>> traces_;
    std::vector<RunKey> sides_;
};

/// Made on a worker; made anew where the trace, a run or the options change.
TaskResult<MadeFigure> ask_figure(Session& session, const TaskSlot<MadeFigure>& slot, const FigureRequest& request);

/// The figures of the request's traces on one scale, or their difference alone.
TaskResult<std::vector<MadeFigure>> ask_figures(Session& session, const TaskSlot<std::vector<MadeFigure>>& slot,
                                                const FigureRequest& request);

/// Changes whenever the figure asked for does.
std::string stamp_of(const Session& session, const FigureRequest& request);

/// The figure of an answer; where there is none, draws in the rest of the window why, and returns nullptr.
std::shared_ptr<const PreparedFigure> figure_or_reason(const Context& context, const TaskResult<MadeFigure>& answer,
                                                       const char* waiting);

/// Which of the open traces a figure is of.
enum class Traces { focused, all, difference };

/// The prompt that is shown of the traces, with the runs that are: of the document in focus, of all that are open, or
/// what A and B stand for. Document −1 where there is no prompt to show, or not both of A and B.
FigureRequest shown_request(const Session& session, const std::string& figure, bool with_runs,
                            Traces traces = Traces::focused);

/// The number of layers and of query heads that a trace has; 0 without a model.
int n_layers_of(const Session& session, int document);
int n_heads_of(const Session& session, int document);

}  // namespace kvscope::gui
