#pragma once

#include <cstddef>

#include "app/gui/session/span_reports.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// "Was it kept, and where?" of the selected tokens, else of the marked text: a line for the selected run, or one for
/// each run.
class SpanAnswers {
 public:
    /// Of draw(), in pixels; 0 where nothing is asked.
    float height(Context& context, const Document& document, size_t n_runs) const;
    void draw(Context& context, const Document& document);

    bool is_open = false;  ///< a line for each run

 private:
    TaskSlot<SpanReports> reports_;
};

}  // namespace kvscope::gui
