#include "app/gui/tokens/reading_place.h"

#include <imgui.h>

#include <algorithm>
#include <utility>

namespace kvscope::gui {
namespace {

constexpr int frames_to_come_back = 8;  // frames in which the restored view changes its size

}  // namespace

bool ReadingPlace::is_coming_back(const PromptLines& lines, float line_height, float room, int64_t token) {
    const auto y_of = [&](int64_t each) { return line_height * static_cast<float>(lines.line_of(each)); };
    if (frames_back_ > 0) {
        --frames_back_;
        const bool is_of_token = token >= 0 && token_at_ >= 0;
        const float y =
            is_of_token ? y_of(token) - std::min(token_at_, std::max(room - line_height, 0.0f)) : y_of(first_);
        ImGui::SetScrollY(std::max(y, 0.0f));
        return true;
    }
    const float top = ImGui::GetScrollY();
    const auto first = lines.line(std::min(static_cast<size_t>(top / line_height), lines.size() - 1));
    if (!first.empty()) first_ = first.front().token;
    const float at = token >= 0 ? y_of(token) - top : -1;
    token_at_ = at >= 0 && at + line_height <= room ? at : -1;
    return false;
}

void ReadingPlace::keep(const std::shared_ptr<const PromptLines>& lines, const RunKey& of, float line_height,
                        float room, int64_t token) {
    if (!lines || lines->size() == 0) return;
    const bool is_same_prompt = of.document == of_.document && of.prompt == of_.prompt;
    const bool was_away = std::exchange(frame_, ImGui::GetFrameCount()) != ImGui::GetFrameCount() - 1;
    if (was_away) frames_back_ = is_same_prompt && first_ >= 0 ? frames_to_come_back : 0;
    if (is_coming_back(*lines, line_height, room, token)) {
        lines_ = lines;
        of_ = of;
        return;
    }
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
