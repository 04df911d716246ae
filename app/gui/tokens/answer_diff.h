#pragma once

#include <imgui.h>

#include <functional>

#include "app/gui/view/view.h"
#include "app/gui/view_data/answer_comparison.h"

namespace kvscope::gui {

/// Draws an answer in wrapped lines with its differences from the reference: other words are colored and underlined,
/// and a stroke marks missing words. Calls `over` with the decode step under the mouse. Returns the lower edge.
[[nodiscard]] float draw_answer_with_differences(const Context& context, const AnswerOutput& output, ImVec2 at,
                                                 float width, float line, const std::function<void(int step)>& over);

}  // namespace kvscope::gui
