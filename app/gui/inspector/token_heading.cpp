#include "app/gui/inspector/token_heading.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <span>

#include "analysis/tables/table_format.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/tokens/joined_tokens.h"
#include "app/gui/tokens/token_tooltip.h"

namespace kvscope::gui {
namespace {

void draw_words(const Context& context, const PromptText& prompt, size_t first, size_t token, size_t last) {
    const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
    for (size_t i = first; i <= last; ++i) {
        if (i > first) {
            ImGui::SameLine(0, 0);
            if (ImGui::GetCursorPosX() + text_width(prompt.shown[i]) > right) ImGui::NewLine();
        }
        ImGui::PushStyleColor(ImGuiCol_Text, i == token ? context.theme.accent : context.theme.ink_quiet);
        text_item(prompt.shown[i]);
        ImGui::PopStyleColor();
    }
}

void draw_joined_words(const Context& context, const PromptText& prompt, size_t first, size_t token, size_t last) {
    const float room = ImGui::GetContentRegionAvail().x;
    JoinedTokens joined;
    std::span<const float> edges;
    float advance = 0;
    while (true) {
        joined = join_tokens(prompt, static_cast<uint32_t>(first), static_cast<uint32_t>(last));
        edges = byte_edges(joined.text);
        advance = *std::max_element(edges.begin(), edges.end());
        if (advance <= room || first == last) break;
        if (last > token) --last;
        if (first < token) ++first;
    }
    const size_t begin = token > first ? joined.ends[token - first - 1] : 0;
    const auto [low, high] = reach_of_bytes(edges, begin, joined.ends[token - first]);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImDrawList* list = ImGui::GetWindowDrawList();
    const ImU32 quiet = packed(context.theme.ink_quiet);
    draw_text_between(list, at, quiet, joined.text, 0, low, 1);
    draw_text_between(list, at, packed(context.theme.accent), joined.text, low, high, 1);
    draw_text_between(list, at, quiet, joined.text, high, advance, 1);
    ImGui::Dummy({advance, ImGui::GetTextLineHeight()});
}
}  // namespace

void draw_token_heading(const Context& context, const PromptText& prompt, const InspectedToken& asked) {
    const Cursor selected = context.session.cursor();
    const bool of_several = !asked.is_hover && selected.last_token > selected.first_token;
    const auto t = static_cast<size_t>(asked.token);
    ImGui::PushFont(context.fonts.mono, 1.35f * ImGui::GetStyle().FontSizeBase);
    text_item(prompt.shown[t]);
    ImGui::SameLine();
    draw_shared_character(prompt, t);
    ImGui::NewLine();
    ImGui::PopFont();
    ImGui::PushTextWrapPos();
    ImGui::TextDisabled("token %s%s · id %d%s", analysis::format_count(asked.token).c_str(),
                        of_several ? fmt::format(", first of {}–{}", analysis::format_count(selected.first_token),
                                                 analysis::format_count(selected.last_token))
                                         .c_str()
                                   : "",
                        prompt.ids[t], asked.is_hover ? " · under the mouse" : "");
    ImGui::PopTextWrapPos();
    const size_t first = t < 6 ? 0 : t - 6;
    const size_t last = std::min(t + 7, prompt.shown.size()) - 1;
    bool is_joined = false;
    for (size_t i = first; i <= last; ++i)
        is_joined = is_joined || has_letters_drawn_together(prompt, static_cast<uint32_t>(i));
    ImGui::PushFont(context.fonts.mono, 0);
    if (is_joined)
        draw_joined_words(context, prompt, first, t, last);
    else
        draw_words(context, prompt, first, t, last);
    ImGui::PopFont();
}

}  // namespace kvscope::gui
