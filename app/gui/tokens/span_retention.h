#pragma once

#include <cstddef>

#include "app/gui/view/view.h"
#include "app/gui/view_data/span_reports.h"

namespace kvscope::gui {

/// Shows whether and where the selected tokens or the marked text were kept, for the selected run or for each run.
class SpanAnswers {
 public:
    /// Returns the height that draw() needs in pixels, or 0 if nothing is selected or marked.
    [[nodiscard]] float height(Context& context, const Document& document, size_t n_runs) const;
    void draw(Context& context, const Document& document);

    bool is_open = false;  ///< whether each run has its own line

 private:
    TaskSlot<SpanReports> reports_;
};

}  // namespace kvscope::gui
