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

/// A figure with the levels of detail of its maps, ready to draw.
struct PreparedFigure {
    analysis::Figure figure;
    /// Key: indices of panel and shape.
    std::map<std::pair<size_t, size_t>, std::shared_ptr<const Pyramid>> pyramids;
    /// (traces, runs) runs of each trace's prompt when the figure was made.
    std::vector<std::vector<RunKey>> runs = {};
    /// Document and prompt ids of the figure. The documents may have been closed since.
    std::vector<std::pair<int, int>> traces = {};
    std::vector<RunKey> sides = {};  ///< result of sides_of() for the request
    uint64_t number = unique_id();   ///< identifies the figure in caches

    RunKey run_of(const analysis::Subject& subject) const;
    RunKey run_of(size_t panel, size_t shape) const;
    /// Returns the subject's position in its trace, with an invalid run if it has none; nullopt if the trace is closed.
    std::optional<Cursor> cursor_of(const Session& session, const analysis::Subject& subject) const;
    bool is_of(const TraceRequest& request) const;
};

/// Returns A and B of a difference: the prompts, with runs if each side is one run. Empty for other requests.
std::vector<RunKey> sides_of(const FigureRequest& request);

PreparedFigure prepare_figure(analysis::Figure figure);

struct MadeFigure {
    std::shared_ptr<const PreparedFigure> figure;
    std::string nothing;
};

/// Makes a request's figure and its numbers, on any thread.
class FigureJob {
 public:
    /// Names of traces in titles: full names, or badges for long names on the screen.
    enum class Names { in_full, in_titles };
    FigureJob(const Session& session, const FigureRequest& request, Names names = Names::in_full);
    /// Checks the request before anything is made. This and the following functions throw what the definition throws.
    void check() const;
    analysis::Figure figure() const;
    /// Returns one figure per trace on one scale; for a difference, only the difference.
    std::vector<analysis::TraceFigure> figures() const;
    analysis::Table numbers() const;
    figures::Exported exported() const;
    bool is_difference() const { return difference_; }
    const std::vector<std::vector<RunKey>>& runs() const { return runs_; }
    const std::vector<std::pair<int, int>>& traces() const { return traces_; }
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

/// Returns the figure, made in a job, again if the trace, its runs or the options change.
TaskResult<MadeFigure> ask_figure(Session& session, const TaskSlot<MadeFigure>& slot, const FigureRequest& request);

/// Returns one figure per trace on one scale, or only the difference.
TaskResult<std::vector<MadeFigure>> ask_figures(Session& session, const TaskSlot<std::vector<MadeFigure>>& slot,
                                                const FigureRequest& request);

/// Returns a text that changes whenever the requested figure would change.
std::string stamp_of(const Session& session, const FigureRequest& request);

/// Returns the figure of an answer. If there is none, draws the reason and returns nullptr.
std::shared_ptr<const PreparedFigure> figure_or_reason(const Context& context, const TaskResult<MadeFigure>& answer,
                                                       const char* waiting);

enum class Traces { focused, all, difference };

/// Returns a request for the shown prompt and runs; its document is −1 if there is no prompt, or no A or B.
FigureRequest shown_request(const Session& session, const std::string& figure, bool with_runs,
                            Traces traces = Traces::focused);

int n_layers_of(const Session& session, int document);
int n_heads_of(const Session& session, int document);

}  // namespace kvscope::gui
