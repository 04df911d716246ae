#pragma once

#include <string>

#include "analysis/tables/table.h"
#include "app/gui/session/engine_session.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Shows a row of the ranking `samples`: question, expected answer and answers. Unless the trace contains the run, a
/// button runs the sample again and records everything.
class SampleDetails {
 public:
    /// @param is_recorded whether the trace contains the run, and not only its results
    void show(const analysis::Table& samples, size_t row, bool is_recorded);
    [[nodiscard]] bool shows(const analysis::Table& samples, size_t row) const;
    /// Returns the height in pixels. @param room height of the whole view
    [[nodiscard]] float height(float room) const;
    /// @param document trace of the sample
    void draw(Context& context, const Document& document) const;

 private:
    void draw_run_button(Context& context, const Document& document) const;

    SampleRun run_;  ///< of the shown sample; its sample is empty if none is shown
    bool is_recorded_ = false;
    std::string title_, question_, expected_, answer_, full_answer_, scores_, cause_;
};

}  // namespace kvscope::gui
