#pragma once

#include "app/gui/view/view.h"
#include "app/gui/view_data/answer_reference.h"
#include "app/gui/view_data/comparison.h"

namespace kvscope::gui {

/// Draws the combo "##compare <view>" if a pair or a second trace exists. @returns whether it was drawn
[[nodiscard]] bool draw_comparison_choice(const char* view, const Context& context, AutomaticComparison automatic,
                                          Comparison& comparison);

/// Draws the combo "##answers against" for the reference run of answers, and finds the chosen run in the session.
void draw_reference_choice(const Session& session, AnswerReference& reference);

}  // namespace kvscope::gui
