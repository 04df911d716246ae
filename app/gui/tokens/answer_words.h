#pragma once

#include <imgui.h>

#include <functional>

#include "app/gui/session/answer_output.h"
#include "app/gui/view/view.h"

namespace kvscope::gui {

/// Draws an answer word by word in lines, with what its reference has not in another colour and underlined, and the
/// selected and hovered decode step lit, and a stroke where the reference has more; scripts that need it are set as
/// whole words.
/// @param line height of a line @param over called with the decode step under the mouse, where there is one
/// @returns where it ends
float draw_answer_words(const Context& context, const AnswerOutput& output, ImVec2 at, float width, float line,
                        const std::function<void(int step)>& over);

}  // namespace kvscope::gui
