#include "app/gui/reading_place.h"

#include <imgui.h>

#include <algorithm>

namespace kvscope::gui {

void ReadingPlace::keep(const std::shared_ptr<const PromptLines>& lines, const RunKey& of, float line_height,
                        float room, int64_t token) {
    if (!lines || lines->size() == 0) return;
    const bool is_same_prompt = of.document == of_.document && of.prompt == of_.prompt;
    const bool is_broken_anew = lines_ && lines_ != lines && is_same_prompt;
    lines_ = lines;
    of_ = of;
    const auto y_of = [&](int64_t each) { return line_height * static_cast<float>(lines->line_of(each)); };
    if (is_broken_anew) return ImGui::SetScrollY(std::max(y_of(token_) - y_, 0.0f));
    const float top = ImGui::GetScrollY();
    const auto first = std::min(static_cast<size_t>(top / line_height), lines->size() - 1);
    const bool is_in_view = token >= 0 && y_of(token) >= top && y_of(token) + line_height <= top + room;
    if (is_in_view)
        token_ = token;
    else if (const auto line = lines->line(first); !line.empty())
        token_ = line.front().token;
    y_ = y_of(token_) - top;
}

}  // namespace kvscope::gui
