#pragma once

#include <map>
#include <set>
#include <string>

#include "analysis/drawing/figure_definition.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

struct ReportChoices {
    std::string source;
    std::string layers;  ///< such as "0, 3, 8-11"
    std::string heads;
    std::string columns;
    std::map<std::string, std::string> own;  ///< options of single figures, by name
    bool follows_app = true;                 ///< whether to use the runs shown in the app
    std::set<RunKey> runs;                   ///< used if follows_app is false

    [[nodiscard]] std::vector<RunId> runs_of(int document, int prompt) const;
    /// Sets all options except the runs. Ignores invalid texts.
    void set(analysis::FigureOptions& options) const;
};

void draw_report_choices(Context& context, const analysis::FigureDefinition& definition, ReportChoices& choices);

}  // namespace kvscope::gui
