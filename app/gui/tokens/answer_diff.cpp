#include "app/gui/tokens/answer_diff.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "app/gui/drawing/shaped_text.h"
#include "app/gui/tokens/prompt_lines.h"

namespace kvscope::gui {
namespace {

/// A word, or a part of a word that is wider than a line.
struct WordBox {
    size_t begin = 0;  ///< byte range in the answer
    size_t end = 0;
    std::string_view text;
    float x = 0;
    float y = 0;
    float width = 0;
};

/// Breaks an answer into lines. Adjacent words of a right-to-left script are placed from right to left.
std::vector<WordBox> place_words(const AnswerOutput& output, ImVec2 at, float width, float line) {
    const float space = ImGui::CalcTextSize(" ").x;
    std::vector<WordBox> boxes;
    float x = at.x;
    float y = at.y;
    const auto begin_line = [&](float n_lines) {
        x = at.x;
        y += line * n_lines;
    };
    for (const Word& word : output.words) {
        if (word.line_breaks > 0 && word.begin > 0) begin_line(std::min(static_cast<float>(word.line_breaks), 2.0f));
        std::string_view text = std::string_view(output.text).substr(word.begin, word.end - word.begin);
        float w = text_width(text);
        if (x > at.x && x + w > at.x + width) begin_line(1);
        for (; w > width; w = text_width(text)) {
            const std::string_view part = text.substr(0, bytes_that_fit(text, width));
            if (part.size() == text.size()) break;
            const auto begin = static_cast<size_t>(part.data() - output.text.data());
            boxes.push_back({begin, begin + part.size(), part, x, y, text_width(part)});
            text.remove_prefix(part.size());
            begin_line(1);
        }
        boxes.push_back({static_cast<size_t>(text.data() - output.text.data()), word.end, text, x, y, w});
        const bool is_glued = &word != &output.words.back() && (&word + 1)->glued;
        x += w + (is_glued ? 0 : space);
    }
    for (size_t i = 0; i < boxes.size(); ++i) {
        size_t j = i;
        while (j < boxes.size() && boxes[j].y == boxes[i].y && is_right_to_left(boxes[j].text)) ++j;
        float next = boxes[i].x;
        for (size_t k = j; k-- > i;) {
            boxes[k].x = next;
            next += boxes[k].width + space;
        }
        if (j > i) i = j - 1;
    }
    return boxes;
}

/// Returns the left and right edge of a decode step within a word in pixels, or (0, 0) if the word lacks the step.
std::pair<float, float> reach_in(const WordBox& box, const StepPlace& place) {
    if (place.begin >= box.end || place.end <= box.begin) return {0, 0};
    const size_t first = place.begin > box.begin ? place.begin - box.begin : 0;
    const size_t last = std::min(place.end - box.begin, box.text.size());
    if (first == 0 && last == box.text.size()) return {0, box.width};
    if (needs_shaping(box.text)) return reach_of_bytes(byte_edges(box.text), first, last);
    const auto width_before = [&](size_t n_bytes) {
        while (n_bytes < box.text.size() && (static_cast<unsigned char>(box.text[n_bytes]) & 0xc0) == 0x80) ++n_bytes;
        return text_width(box.text.substr(0, n_bytes));
    };
    return {width_before(first), width_before(last)};
}

void draw_word(const Context& context, const WordBox& box, float line,
               const std::vector<std::pair<float, float>>& marked) {
    ImDrawList* list = ImGui::GetWindowDrawList();
    const ImVec2 at{box.x, box.y + (line - ImGui::GetFontSize()) / 2 - 1};
    const auto part = [&](float left, float right, const ImVec4& color) {
        if (right <= left) return;
        list->PushClipRect({box.x + left, box.y}, {box.x + right, box.y + line}, true);
        draw_text(list, at, packed(color), box.text);
        list->PopClipRect();
    };
    const float beyond = 4;  // letters may extend beyond their width
    float from = -beyond;
    for (const auto& [left, right] : marked) {
        const float begin = left <= 0 ? -beyond : left;
        const float end = right >= box.width ? box.width + beyond : right;
        part(from, begin, context.theme.ink);
        part(begin, end, context.theme.differs);
        from = end;
        list->AddLine({box.x + left, box.y + line - 2}, {box.x + right, box.y + line - 2},
                      packed(context.theme.differs, 0.7f));
    }
    part(from, box.width + beyond, context.theme.ink);
}

/// Draws a stroke where the reference has other text: before a byte of the word, or after the last word.
void draw_gap(const Context& context, const WordBox& box, size_t byte, bool is_last, float line) {
    const bool is_behind = is_last && byte >= box.end;
    if (!is_behind && (byte + 1 < box.begin || byte >= box.end)) return;
    float x = box.x - 2;
    if (is_behind) {
        x = box.x + box.width + 1;
    } else if (byte > box.begin) {
        const auto [left, right] = reach_in(box, {byte, box.end});
        x = box.x + (is_right_to_left(box.text) ? right : left);
    }
    ImGui::GetWindowDrawList()->AddLine({x, box.y + 0.1f * line}, {x, box.y + line - 2},
                                        packed(context.theme.differs, 0.9f), 1.5f);
}

/// Marks white space that the reference lacks: underlines a space, and draws an arrow for a line break.
void draw_marked_blanks(const Context& context, const AnswerOutput& output, const WordBox& before, const WordBox* after,
                        float line) {
    const size_t end = after ? after->begin : output.text.size();
    const bool is_marked = std::ranges::any_of(output.marks, [&](const StepPlace& mark) {
        return mark.begin >= before.end && mark.end <= end && mark.end > mark.begin;
    });
    if (!is_marked) return;
    ImDrawList* list = ImGui::GetWindowDrawList();
    const float right = before.x + before.width;
    const float bottom = before.y + line - 2;
    if (after && after->y == before.y && after->x > right)
        list->AddLine({right, bottom}, {after->x, bottom}, packed(context.theme.differs, 0.7f));
    else
        draw_text(list, {right + 2, before.y + (line - ImGui::GetFontSize()) / 2 - 1}, packed(context.theme.differs),
                  "↵");
}

}  // namespace

float draw_answer_with_differences(const Context& context, const AnswerOutput& output, ImVec2 at, float width,
                                   float line, const std::function<void(int step)>& over) {
    const Session& session = context.session;
    ImDrawList* list = ImGui::GetWindowDrawList();
    const ImVec2 mouse = ImGui::GetMousePos();
    const bool hovered = ImGui::IsWindowHovered();
    const std::vector<WordBox> boxes = place_words(output, at, width, line);
    for (size_t i = 0; i < boxes.size(); ++i) {
        const WordBox& box = boxes[i];
        const auto light = [&](int step, const ImVec4& color, float alpha) {
            if (step < 0 || static_cast<size_t>(step) >= output.steps.size()) return;
            const auto [left, right] = reach_in(box, output.steps[static_cast<size_t>(step)]);
            if (right <= left) return;
            list->AddRectFilled({box.x + left - 1, box.y}, {box.x + right + 1, box.y + line - 1}, packed(color, alpha),
                                2);
        };
        light(session.cursor().step, context.theme.accent, 0.45f);
        light(session.hover().step, context.theme.hover, 0.2f);
        std::vector<std::pair<float, float>> marked;
        for (const StepPlace& mark : output.marks) {
            const auto reach = reach_in(box, mark);
            if (reach.second > reach.first) marked.push_back(reach);
        }
        std::ranges::sort(marked);
        draw_word(context, box, line, marked);
        for (const size_t gap : output.gaps) draw_gap(context, box, gap, i + 1 == boxes.size(), line);
        draw_marked_blanks(context, output, box, i + 1 < boxes.size() ? &boxes[i + 1] : nullptr, line);
        const bool is_over = hovered && mouse.x >= box.x - 1 && mouse.x < box.x + box.width + 3 && mouse.y >= box.y &&
                             mouse.y < box.y + line;
        if (!is_over) continue;
        for (size_t step = 0; step < output.steps.size(); ++step) {
            const auto [left, right] = reach_in(box, output.steps[step]);
            const bool is_last = output.steps[step].end >= box.end;
            if (right <= left || mouse.x < box.x + left - 1 || (mouse.x >= box.x + right && !is_last)) continue;
            over(static_cast<int>(step));
            break;
        }
    }
    return (boxes.empty() ? at.y : boxes.back().y) + line;
}

}  // namespace kvscope::gui
