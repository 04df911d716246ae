#include "app/gui/view/text_field.h"

#include <imgui_internal.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "app/gui/drawing/shaped_text.h"

namespace kvscope::gui {
namespace {

struct Row {
    std::string_view text;
    size_t begin = 0;  ///< first byte in the field's text
    ImVec2 at;         ///< upper left corner on the screen
    float squeeze = 1;
    bool is_shaped = false;

    float x_of(size_t byte) const {
        if (is_shaped) return at.x + squeeze * byte_edges(text)[byte];
        return at.x + ImGui::CalcTextSize(text.data(), text.data() + byte).x;
    }
};

struct Character {
    size_t begin = 0;  ///< byte range in the row
    size_t end = 0;
    float from = 0;  ///< left and right edge, or right and left edge in a right-to-left script
    float to = 0;
};

std::vector<Character> characters_of(const Row& row) {
    std::vector<Character> all;
    for (size_t begin = 0; begin < row.text.size();) {
        const size_t end = end_of_character(row.text, begin);
        size_t last = end - 1;  // first byte of the last code point
        while (last > begin && (static_cast<unsigned char>(row.text[last]) & 0xc0) == 0x80) --last;
        const float from = row.x_of(begin);
        float to = row.x_of(end);
        // The next character may be elsewhere if the direction of writing changes.
        if (row.is_shaped && end - last > 1)
            to = row.x_of(last) + (row.x_of(last + 1) - row.x_of(last)) * static_cast<float>(end - last);
        else if (row.is_shaped)
            to = std::clamp(to, from - ImGui::GetFontSize(), from + ImGui::GetFontSize());
        all.push_back({begin, end, from, to});
        begin = end;
    }
    return all;
}

size_t byte_at(const Row& row, float x) {
    size_t byte = 0;
    float nearest = INFINITY;
    for (const Character& one : characters_of(row)) {
        for (const auto& [edge, at] : {std::pair(one.from, one.begin), std::pair(one.to, one.end)}) {
            const auto [left, right] = std::minmax(one.from, one.to);
            const bool is_inside = x >= left && x < right;
            const float distance = std::abs(x - edge) + (is_inside ? 0 : 1);
            if (distance >= nearest) continue;
            nearest = distance;
            byte = at;
        }
    }
    return byte;
}

ImGuiInputTextState* edited_state(ImGuiID id) {
    return ImGui::GetActiveID() == id ? ImGui::GetInputTextState(id) : nullptr;
}

/// Caret and selection before Dear ImGui handles the pressed keys. Dear ImGui moves and deletes by code points in the
/// order of the text, while ShapedField uses characters in visual order.
class BeforeKeys {
 public:
    /// For Backspace and Delete, selects the whole character. Dear ImGui then deletes the selection, not a code point.
    BeforeKeys(ImGuiID id, const std::string& text, ImGuiInputTextFlags flags) {
        ImGuiInputTextState* state = edited_state(id);
        const ImGuiIO& io = ImGui::GetIO();
        if (!state || io.KeyAlt || io.KeySuper) return;
        is_by_word_ = io.KeyCtrl;
        caret_ = static_cast<size_t>(state->GetCursorPos());
        anchor_ = static_cast<size_t>(state->HasSelection() ? state->GetSelectionStart() : state->GetCursorPos());
        if (state->HasSelection()) selected_to_ = static_cast<size_t>(state->GetSelectionEnd());
        const bool is_left = ImGui::IsKeyPressed(ImGuiKey_LeftArrow);
        if (is_left || ImGui::IsKeyPressed(ImGuiKey_RightArrow)) direction_ = is_left ? -1 : 1;
        if (state->HasSelection() || is_by_word_ || (flags & ImGuiInputTextFlags_ReadOnly) || caret_ > text.size())
            return;
        const std::string_view all = text;
        if (ImGui::IsKeyPressed(ImGuiKey_Backspace) && caret_ > 0) {
            const size_t line = all.rfind('\n', caret_ - 1) + 1;  // 0 if there is no line break
            const size_t from = line == caret_
                                    ? caret_ - 1
                                    : line + find_backspace_start(all.substr(line, caret_ - line), caret_ - line);
            state->SetSelection(static_cast<int>(from), static_cast<int>(caret_));
        } else if (ImGui::IsKeyPressed(ImGuiKey_Delete) && !io.KeyShift && caret_ < all.size()) {
            state->SetSelection(static_cast<int>(end_of_character(all, caret_)), static_cast<int>(caret_));
        }
    }

    int direction() const { return direction_; }  ///< arrow key that is pressed: −1 left, 1 right, 0 none
    bool is_by_word() const { return is_by_word_; }
    size_t caret() const { return caret_; }
    size_t anchor() const { return anchor_; }
    std::optional<size_t> selected_to() const { return selected_to_; }

 private:
    int direction_ = 0;
    bool is_by_word_ = false;
    size_t caret_ = 0;
    size_t anchor_ = 0;  ///< end of the selection that stays fixed while Shift is held
    std::optional<size_t> selected_to_;
};

/// Draws a field with shaped text instead of Dear ImGui's text.
class ShapedField {
 public:
    ShapedField(ImGuiID id, const std::string& text, const BeforeKeys& before)
        : text_(text), state_(edited_state(id)), before_(before) {}

    void draw_line(const ImRect& field) {
        const ImVec2 padding = ImGui::GetStyle().FramePadding;
        Row row{text_, 0, {field.Min.x + padding.x, field.Min.y + padding.y}, 1, needs_shaping(text_)};
        rows_ = {row};
        if (state_) step_to_side();
        rows_.front().at.x -= scroll_to_caret(row, field.GetWidth() - 2 * padding.x);
        draw(ImGui::GetWindowDrawList(), field);
    }

    void draw_lines(ImGuiWindow& inside) {
        const ImGuiTextIndex& lines = ImGui::GetCurrentContext()->InputTextLineIndex;
        const ImVec2 padding = ImGui::GetStyle().FramePadding;
        const ImVec2 from{inside.Pos.x + padding.x, inside.Pos.y + padding.y - inside.Scroll.y};
        const float width = inside.InnerRect.GetWidth() - 2 * padding.x;
        const float height = ImGui::GetFontSize();
        for (int n = 0; n < lines.Offsets.Size; ++n) {
            const float y = from.y + height * static_cast<float>(n);
            const bool is_seen = y + height >= inside.InnerRect.Min.y && y <= inside.InnerRect.Max.y;
            const auto begin = static_cast<size_t>(lines.Offsets[n]);
            size_t end = static_cast<size_t>(n + 1 < lines.Offsets.Size ? lines.Offsets[n + 1] : lines.EndOffset);
            if (n + 1 < lines.Offsets.Size && end > begin && text_[end - 1] == '\n') --end;
            if (!is_seen || end > text_.size()) continue;
            Row row{std::string_view(text_).substr(begin, end - begin), begin, {from.x, y}, 1, false};
            row.is_shaped = needs_shaping(row.text);
            if (row.is_shaped) row.squeeze = std::min(width / std::max(text_width(row.text), 1.0f), 1.0f);
            rows_.push_back(row);
        }
        if (state_) step_to_side();
        draw(inside.DrawList, inside.InnerRect);
    }

 private:
    void step_to_side() {
        if (before_.direction() == 0) return;
        const size_t caret = before_.caret();
        const auto has = [&](const Row& row, size_t byte) {
            return byte >= row.begin && byte <= row.begin + row.text.size();
        };
        const auto row = std::ranges::find_if(rows_, [&](const Row& one) { return has(one, caret); });
        if (row == rows_.end()) return;
        const bool extends = ImGui::GetIO().KeyShift;
        size_t to = caret;
        if (before_.selected_to() && !extends &&
            !before_.is_by_word()) {  // moves to the end of the selection on that side
            const size_t other = *before_.selected_to() == caret ? before_.anchor() : *before_.selected_to();
            if (!has(*row, other)) return;
            const float way = row->x_of(other - row->begin) - row->x_of(caret - row->begin);
            if (way * static_cast<float>(before_.direction()) > 0) to = other;
        } else {
            const auto beside = before_.is_by_word() ? move_caret_by_word : move_caret_by_character;
            const size_t in_row = beside(row->text, caret - row->begin, before_.direction());
            if (in_row <= row->text.size())
                to = row->begin + in_row;
            else if (in_row != std::string_view::npos)
                to = end_of_character(text_, caret);
            else if (caret > 0)
                do --to;
                while (to > 0 && (static_cast<unsigned char>(text_[to]) & 0xc0) == 0x80);
        }
        state_->SetSelection(static_cast<int>(extends ? before_.anchor() : to), static_cast<int>(to));
    }

    float scroll_to_caret(const Row& row, float width) const {
        float& scroll = *ImGui::GetStateStorage()->GetFloatRef(ImGui::GetItemID());
        if (!state_) return scroll = 0;
        const float caret = row.x_of(std::min(static_cast<size_t>(state_->GetCursorPos()), row.text.size())) - row.at.x;
        if (caret < scroll) scroll = caret;
        if (caret > scroll + width) scroll = caret - width;
        return scroll = std::clamp(scroll, 0.0f, std::max(text_width(row.text) + 1 - width, 0.0f));
    }

    void draw(ImDrawList* list, const ImRect& clip) {
        if (state_) follow_mouse(clip);
        list->PushClipRect(clip.Min, clip.Max, true);
        for (const Row& row : rows_) {
            if (state_ && state_->HasSelection()) draw_selection(list, row);
            draw_text(list, row.at, ImGui::GetColorU32(ImGuiCol_Text), row.text,
                      row.squeeze < 1 ? row.squeeze * text_width(row.text) : 0);
        }
        if (state_) draw_caret(list);
        list->PopClipRect();
    }

    void draw_selection(ImDrawList* list, const Row& row) const {
        const auto [low, high] = std::minmax(state_->GetSelectionStart(), state_->GetSelectionEnd());
        for (const Character& one : characters_of(row)) {
            const auto at = static_cast<int>(row.begin + one.begin);
            if (at < low || at >= high) continue;
            const auto [left, right] = std::minmax(one.from, one.to);
            list->AddRectFilled({left, row.at.y}, {right, row.at.y + ImGui::GetFontSize()},
                                ImGui::GetColorU32(ImGuiCol_TextSelectedBg));
        }
    }

    void draw_caret(ImDrawList* list) const {
        const auto caret = static_cast<size_t>(state_->GetCursorPos());
        for (const Row& row : rows_) {
            if (caret < row.begin || caret > row.begin + row.text.size()) continue;
            const float x = std::round(row.x_of(caret - row.begin));
            list->AddLine({x, row.at.y}, {x, row.at.y + ImGui::GetFontSize()},
                          ImGui::GetColorU32(ImGuiCol_InputTextCursor));
            return;
        }
    }

    /// Corrects the caret and selection, which Dear ImGui placed by its own text layout.
    void follow_mouse(const ImRect& clip) {
        const ImGuiIO& io = ImGui::GetIO();
        const ImVec2 mouse = io.MousePos;
        if (!io.MouseDown[0] || rows_.empty() || !clip.Contains(io.MouseClickedPos[0])) return;
        const Row* row = &rows_.front();
        for (const Row& other : rows_)
            if (mouse.y >= other.at.y) row = &other;
        const auto at = static_cast<int>(row->begin + byte_at(*row, mouse.x));
        const bool is_clicked = ImGui::IsMouseClicked(ImGuiMouseButton_Left);
        if (io.MouseClickedLastCount[0] == 1 && (is_clicked || io.MouseDelta.x != 0 || io.MouseDelta.y != 0)) {
            state_->SetSelection(is_clicked && !io.KeyShift ? at : state_->GetSelectionStart(), at);
        } else if (io.MouseClickedLastCount[0] == 2 && is_clicked) {
            const auto is_blank = [&](int byte) { return text_[static_cast<size_t>(byte)] == ' '; };
            int begin = std::min(at, static_cast<int>(text_.size()));
            int end = begin;
            while (begin > static_cast<int>(row->begin) && !is_blank(begin - 1)) --begin;
            while (end < static_cast<int>(row->begin + row->text.size()) && !is_blank(end)) ++end;
            state_->SetSelection(begin, end);
        }
    }

    const std::string& text_;
    ImGuiInputTextState* state_;
    const BeforeKeys& before_;
    std::vector<Row> rows_;
};

/// Hides the text, selection and caret that Dear ImGui draws for a field, until the object is destroyed.
class WithoutText {
 public:
    WithoutText() {
        for (const ImGuiCol color : {ImGuiCol_Text, ImGuiCol_TextSelectedBg, ImGuiCol_InputTextCursor})
            ImGui::PushStyleColor(color, ImVec4(0, 0, 0, 0));
    }
    ~WithoutText() { ImGui::PopStyleColor(3); }
    WithoutText(const WithoutText&) = delete;
    WithoutText& operator=(const WithoutText&) = delete;
};

/// Drops Dear ImGui's copy of the text last edited. When a field's width changes, Dear ImGui would use the length of
/// the copy, although the text may be shorter now.
void drop_outdated_copy(ImGuiID id, const std::string& text) {
    ImGuiInputTextState* copy = ImGui::GetInputTextState(id);
    if (copy && ImGui::GetActiveID() != id && copy->TextLen != static_cast<int>(text.size())) copy->ID = 0;
}

}  // namespace

bool text_field(const char* label, const char* hint, std::string* text, ImGuiInputTextFlags flags,
                ImGuiInputTextCallback callback, void* data) {
    if (!needs_shaping(*text)) return ImGui::InputTextWithHint(label, hint, text, flags, callback, data);
    const BeforeKeys before(ImGui::GetID(label), *text, flags);
    const float width = ImGui::CalcItemWidth();
    const bool is_changed = [&] {
        const WithoutText hidden;
        return ImGui::InputTextWithHint(label, hint, text, flags, callback, data);
    }();
    const ImVec2 corner = ImGui::GetItemRectMin();
    ShapedField(ImGui::GetItemID(), *text, before).draw_line({corner, {corner.x + width, ImGui::GetItemRectMax().y}});
    const ImGuiStyle& style = ImGui::GetStyle();
    ImGui::RenderText({corner.x + width + style.ItemInnerSpacing.x, corner.y + style.FramePadding.y}, label);
    return is_changed;
}

bool wrapped_field(const char* label, std::string* text, ImVec2 size, ImGuiInputTextFlags flags) {
    const ImGuiID id = ImGui::GetID(label);
    drop_outdated_copy(id, *text);
    flags |= ImGuiInputTextFlags_WordWrap;
    // Escape leaves the field and keeps the text. Dear ImGui would discard everything typed.
    if (ImGui::GetActiveID() == id && ImGui::IsKeyPressed(ImGuiKey_Escape, false)) ImGui::ClearActiveID();
    if (!needs_shaping(*text)) return ImGui::InputTextMultiline(label, text, size, flags);
    const BeforeKeys before(id, *text, flags);
    const bool is_changed = [&] {
        const WithoutText hidden;
        return ImGui::InputTextMultiline(label, text, size, flags);
    }();
    for (ImGuiWindow* inside : ImGui::GetCurrentWindow()->DC.ChildWindows)
        if (inside->ChildId == id) ShapedField(id, *text, before).draw_lines(*inside);
    return is_changed;
}

}  // namespace kvscope::gui
