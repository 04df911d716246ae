#include "app/gui/tokens/reading_place.h"

#include <imgui.h>

#include <algorithm>
#include <utility>

namespace kvscope::gui {

void ReadingPlace::keep(const std::shared_ptr<const PromptLines>& lines, const RunKey& of, float line_height,
                        float room, int64_t token) {
    if (!lines || lines->size() == 0) return;
    const bool is_same_prompt = of.document == of_.document && of.prompt == of_.prompt;
    const auto before = std::exchange(lines_, lines);
    of_ = of;
    if (!before || before == lines || before->size() == 0 || !is_same_prompt) return;
    const auto y_in = [&](const PromptLines& some, int64_t each) {
        return line_height * static_cast<float>(some.line_of(each));
    };
    const float top = ImGui::GetScrollY();
    const bool is_in_view =
        token >= 0 && y_in(*before, token) >= top && y_in(*before, token) + line_height <= top + room;
    if (!is_in_view) {
        const auto first = before->line(std::min(static_cast<size_t>(top / line_height), before->size() - 1));
        if (first.empty()) return;
        token = first.front().token;
    }
    ImGui::SetScrollY(std::max(y_in(*lines, token) - (y_in(*before, token) - top), 0.0f));
}

}  // namespace kvscope::gui
