#pragma once

#include <imgui.h>

#include <functional>

#include "app/gui/session/answer_output.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Draws an answer in wrapped lines. Words that differ from the reference are colored and underlined; a stroke marks
/// words that only the reference has. Calls `over` with the decode step under the mouse. Returns the lower edge,
/// pixels.
float draw_answer_words(const Context& context, const AnswerOutput& output, ImVec2 at, float width, float line,
                        const std::function<void(int step)>& over);

}  // namespace kvscope::gui
