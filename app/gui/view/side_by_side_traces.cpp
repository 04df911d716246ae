#include "app/gui/view/side_by_side_traces.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "app/gui/view/run_label.h"
#include "app/gui/view/widgets.h"

namespace kvscope::gui {

std::vector<CellTitle> titles_of_side_by_side_traces(const Session& session, const FigureRequest& request) {
    if (request.difference) {
        const auto name = [&](const std::optional<RunKey>& run) {
            return run && session.exists(*run) ? label_in_title(session, *run) : std::string("–");
        };
        return {{fmt::format("A − B: {} − {}", name(session.pair.a), name(session.pair.b))}};
    }
    if (request.n_traces() == 1) return {CellTitle{}};
    std::vector<CellTitle> titles;
    for (size_t i = 0; i < request.n_traces(); ++i) {
        const Document* document = session.document(request.trace(i).document);
        titles.push_back(document ? CellTitle{"", document} : CellTitle{"closed"});
    }
    return titles;
}

void draw_panel_per_trace(const Context& context, const char* id, ImVec2 size, const std::vector<CellTitle>& titles,
                          const std::function<void(size_t)>& draw) {
    const ImVec2 room = ImGui::GetContentRegionAvail();
    if (size.x <= 0) size.x = room.x;
    if (size.y <= 0) size.y = room.y;
    const auto n = static_cast<float>(std::max<size_t>(titles.size(), 1));
    const float gap = 1.2f * ImGui::GetFontSize();
    const bool below = size.y > 1.2f * size.x;
    const float share = ((below ? size.y : size.x) - (n - 1) * gap) / n;
    const ImVec2 each = below ? ImVec2{size.x, share} : ImVec2{share, size.y};
    constexpr ImGuiWindowFlags flags = ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse;
    ImGui::BeginChild(id, size, 0, flags);
    for (size_t i = 0; i < titles.size(); ++i) {
        if (i > 0 && !below) ImGui::SameLine(0, gap);
        ImGui::BeginChild(fmt::format("trace {}", i).c_str(), {std::max(each.x, 1.0f), std::max(each.y, 1.0f)}, 0,
                          flags);
        if (titles[i].trace) {
            draw_trace_title(context, *titles[i].trace, titles[i].text);
        } else if (!titles[i].text.empty()) {
            ImGui::PushFont(context.fonts.bold, 0);
            const std::string text = text_that_fits(titles[i].text, ImGui::GetContentRegionAvail().x);
            ImGui::TextUnformatted(text.c_str());
            item_tooltip(titles[i].text);
            draw_badges_over_text(context, text, ImGui::GetItemRectMin());
            ImGui::PopFont();
        }
        draw(i);
        ImGui::EndChild();
    }
    ImGui::EndChild();
}

}  // namespace kvscope::gui
