#include "app/gui/view/run_label.h"

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "app/gui/view/widgets.h"
#include "common/json.h"

namespace kvscope::gui {

namespace {

void set_visible(Session& session, const Document& document, bool is_visible) {
    for (const RunKey& key : session.all_runs())
        if (key.document == document.id()) session.set_visible(key, is_visible);
}

void draw_menu(const Context& context, const Document& document) {
    if (!ImGui::BeginPopup("trace menu")) return;
    Session& session = context.session;
    ImGui::TextDisabled("%s", session.name_of(document).c_str());
    const auto all = session.all_runs();
    const bool is_shown = std::ranges::any_of(
        all, [&](const RunKey& key) { return key.document == document.id() && session.is_visible(key); });
    if (ImGui::MenuItem(is_shown ? "Hide" : "Show")) set_visible(session, document, !is_shown);
    ImGui::SetItemTooltip("hides or shows all runs of the trace in every view");
    if (ImGui::MenuItem("Show only this"))
        for (const auto& other : session.documents()) set_visible(session, *other, other->id() == document.id());
    if (ImGui::MenuItem("Show the file"))
        context.host.open_view("trace", {{"path", "/"}, {shown_document, document.id()}});
    item_tooltip(document.path());
    ImGui::Separator();
    if (ImGui::MenuItem("Close")) context.host.close_trace(document.id());
    ImGui::EndPopup();
}

/// Restores ImGui's cursor when destroyed, so that items drawn before do not move the cursor.
class KeptCursor {
 public:
    explicit KeptCursor(ImGuiWindow& window) : window_(window), before_(take(window.DC)) {}
    ~KeptCursor() {
        ImGuiWindowTempData& now = window_.DC;
        now.CursorPos = before_.at;
        now.CursorPosPrevLine = before_.at_line_before;
        now.CursorMaxPos = before_.farthest;
        now.CurrLineSize = before_.line;
        now.PrevLineSize = before_.line_before;
        now.CurrLineTextBaseOffset = before_.offset;
        now.PrevLineTextBaseOffset = before_.offset_before;
        now.IsSameLine = before_.is_same_line;
        now.IsSetPos = before_.is_set;
    }
    KeptCursor(const KeptCursor&) = delete;
    KeptCursor& operator=(const KeptCursor&) = delete;

 private:
    struct State {
        ImVec2 at, at_line_before, farthest, line, line_before;
        float offset, offset_before;
        bool is_same_line, is_set;
    };
    static State take(const ImGuiWindowTempData& now) {
        return {now.CursorPos,    now.CursorPosPrevLine,      now.CursorMaxPos,           now.CurrLineSize,
                now.PrevLineSize, now.CurrLineTextBaseOffset, now.PrevLineTextBaseOffset, now.IsSameLine,
                now.IsSetPos};
    }

    ImGuiWindow& window_;
    State before_;
};

void badge_button(const Context& context, const Document& document, const ImRect& place, float font_size) {
    ImGuiWindow& window = *ImGui::GetCurrentWindow();
    const KeptCursor kept(window);
    window.DC.CursorPos = place.Min;
    ImGui::PushID(document.id());
    const std::string badge = trace_badge_of(document);
    constexpr ImGuiButtonFlags either = ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonRight;
    if (ImGui::InvisibleButton((badge + "##badge").c_str(), place.GetSize(), either)) ImGui::OpenPopup("trace menu");
    const ImGuiCol color = ImGui::IsItemActive()    ? ImGuiCol_ButtonActive
                           : ImGui::IsItemHovered() ? ImGuiCol_ButtonHovered
                                                    : ImGuiCol_Button;
    ImGui::SetItemTooltip("%s\nClick: close, hide, show only this, show the file", document.path().c_str());
    window.DrawList->AddRectFilled(place.Min, place.Max, packed(context.theme.panel));
    window.DrawList->AddRectFilled(place.Min, place.Max, ImGui::GetColorU32(color), 0.5f * place.GetHeight());
    ImFont* font = ImGui::GetFont();
    const ImVec2 size = font->CalcTextSizeA(font_size, FLT_MAX, 0, badge.c_str());
    const ImVec2 middle = place.GetCenter();
    window.DrawList->AddText(font, font_size, {std::round(middle.x - size.x / 2), std::round(middle.y - size.y / 2)},
                             packed(context.theme.accent), badge.c_str());
    draw_menu(context, document);
    ImGui::PopID();
}

/// Whether this part of a text is a badge and not part of a name.
bool is_word(const std::string& text, size_t begin, size_t length) {
    const size_t end = begin + length;
    return (begin == 0 || text[begin - 1] == ' ') &&
           (end == text.size() || text[end] == ' ' || text[end] == ':' || text[end] == ',');
}

}  // namespace

void draw_trace_badge(const Context& context, const Document& document) {
    ImGuiWindow* window = ImGui::GetCurrentWindow();
    if (window->SkipItems) return;
    const ImVec2 text = ImGui::CalcTextSize(trace_badge_of(document).c_str());
    const ImVec2 size{text.x + 2 * ImGui::GetStyle().FramePadding.x, text.y};
    ImVec2 at = window->DC.CursorPos;
    at.y += window->DC.CurrLineTextBaseOffset;  // same baseline as text
    ImGui::ItemSize(size, 0);
    badge_button(context, document, {at, {at.x + size.x, at.y + size.y}}, ImGui::GetFontSize());
}

void draw_badges_over_text(const Context& context, const std::string& text, ImVec2 at, float font_size) {
    if (text.find('[') == std::string::npos || ImGui::GetCurrentWindow()->SkipItems) return;
    if (font_size <= 0) font_size = ImGui::GetFontSize();
    ImGuiContext& g = *ImGui::GetCurrentContext();
    const ImGuiLastItemData last_item = g.LastItemData;
    const auto width = [&](size_t begin, size_t end) {
        return ImGui::GetFont()->CalcTextSizeA(font_size, FLT_MAX, 0, text.data() + begin, text.data() + end).x;
    };
    ImGui::PushID(text.c_str());
    for (const auto& document : context.session.documents()) {
        const std::string badge = badge_in_brackets(*document);
        for (size_t begin = text.find(badge); begin != std::string::npos; begin = text.find(badge, begin + 1)) {
            if (!is_word(text, begin, badge.size())) continue;
            const ImVec2 min{at.x + width(0, begin), at.y};
            ImGui::PushID(static_cast<int>(begin));
            badge_button(context, *document, {min, {min.x + width(begin, begin + badge.size()), min.y + font_size}},
                         font_size);
            ImGui::PopID();
        }
    }
    ImGui::PopID();
    g.LastItemData = last_item;
}

void draw_trace_title(const Context& context, const Document& document, const std::string& after) {
    draw_trace_badge(context, document);
    ImGui::SameLine();
    ImGui::PushFont(context.fonts.bold, 0);
    const float room = ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(after.c_str()).x;
    ImGui::TextUnformatted((text_that_fits(context.session.name_of(document), room) + after).c_str());
    ImGui::PopFont();
    ImGui::SetItemTooltip("%s%s", document.path().c_str(), after.c_str());
}

void draw_run_title(const Context& context, const RunKey& run, float width) {
    Session& session = context.session;
    const RunLook look = session.look(run);
    const bool is_selected = run == session.cursor().run;
    if (is_selected) ImGui::PushFont(context.fonts.bold, 0);
    const std::string label = label_that_fits(look, width);
    ImGui::TextUnformatted(label.c_str());
    if (ImGui::IsItemClicked()) session.selection.select_run(run);
    if (label != look.label || !look.recorded.empty()) item_tooltip(full_label_for_tooltip(look));
    draw_badges_over_text(context, label, ImGui::GetItemRectMin());
    if (is_selected) ImGui::PopFont();
}

namespace {

bool fits(const std::string& text, float width) { return ImGui::CalcTextSize(text.c_str()).x <= width; }

std::vector<size_t> character_starts(const std::string& text) {
    std::vector<size_t> starts;
    for (size_t i = 0; i < text.size(); ++i)
        if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) starts.push_back(i);
    starts.push_back(text.size());
    return starts;
}

/// Shortens the middle of a text until `fits` returns true. Returns an empty text if two characters do not fit.
template <class Fits>
std::string without_middle(const std::string& text, const Fits& fits) {
    const std::vector<size_t> starts = character_starts(text);
    for (size_t kept = starts.size() - 1; kept >= 2; --kept) {
        const size_t head = (kept + 1) / 2;
        const std::string tail = text.substr(starts[starts.size() - 1 - (kept - head)]);
        std::string shortened = kept + 1 == starts.size() ? text : text.substr(0, starts[head]) + "…" + tail;
        if (fits(shortened)) return shortened;
    }
    return "";
}

}  // namespace

std::string shorten_run_label(const std::string& label, float width) {
    if (fits(label, width)) return label;
    const size_t budget = std::min(label.rfind(" @ "), label.size());
    const std::string end = label.substr(budget);
    const std::string shortened =
        without_middle(label.substr(0, budget), [&](const std::string& policy) { return fits(policy + end, width); });
    return shortened.empty() ? label : shortened + end;
}

std::string label_that_fits(const RunLook& look, float width) {
    if (look.trace.empty()) return shorten_run_label(look.label, width);
    const std::string badge = look.badge + " ";
    if (fits(badge + look.label, width)) return badge + look.label;
    const std::filesystem::path name(look.trace);
    const std::string without_extension = (name.parent_path() / name.stem()).string() + ": " + look.run;
    if (fits(badge + without_extension, width)) return badge + without_extension;
    if (fits(badge + look.run, width)) return badge + look.run;
    if (fits(look.run, width)) return look.run;
    const std::string shortened = badge + shorten_run_label(look.run, width - ImGui::CalcTextSize(badge.c_str()).x);
    return fits(shortened, width) ? shortened : shorten_run_label(look.run, width);
}

std::string text_that_fits(const std::string& text, float width) {
    if (fits(text, width)) return text;
    const std::string shortened =
        without_middle(text, [&](const std::string& shorter) { return fits(shorter, width); });
    return shortened.empty() ? text : shortened;
}

std::string full_label_for_tooltip(const RunLook& look) {
    return look.recorded.empty() ? look.label : look.label + "\nin the trace: " + look.recorded;
}

}  // namespace kvscope::gui
