#pragma once

#include <map>
#include <set>
#include <string>

#include "analysis/figure_definition.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// What a person chose about one figure of the report, as typed.
struct ReportChoices {
    std::string source;
    std::string layers;  ///< "0, 3, 8-11"
    std::string heads;
    std::string columns;
    std::map<std::string, std::string> own;  ///< of the options that the figure declares for itself, by name
    bool follows_window = true;              ///< the runs that are shown in the window
    std::set<RunKey> runs;                   ///< else these

    std::vector<RunId> runs_of(int document, int prompt) const;
    /// All but the runs. What cannot be read is left out.
    void set(analysis::FigureOptions& options) const;
};

/// The fields of what the figure heeds.
void draw_report_choices(Context& context, const analysis::FigureDefinition& definition, ReportChoices& choices);

}  // namespace kvscope::gui
