#include "app/gui/inspector/layer_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/tables/number_text.h"
#include "app/gui/view_data/measure_definitions.h"

namespace kvscope::gui {
namespace {

using analysis::TokenDecision;
using analysis::TokenReport;

/// Returns a head's score / cut-off, or NaN if the score is missing or negative, or the cut-off is not positive.
double ratio(const TokenDecision& d) {
    return d.candidate && d.cut_off > 0 && d.score >= 0 ? d.score / d.cut_off : TokenDecision::nothing;
}

/// Draws one chart with a value per layer. @param value height of the bar in [0, 1], or NaN for no bar
template <class Value, class Text>
void sparkline(Context& context, const char* id, const std::string& title, size_t n, ImU32 color, float reference,
               Value value, Text text) {
    Session& session = context.session;
    ImGui::PushTextWrapPos();
    ImGui::TextDisabled("%s", title.c_str());
    ImGui::PopTextWrapPos();
    const float width = std::max(ImGui::GetContentRegionAvail().x, 20.0f);
    const float height = 2.6f * ImGui::GetFontSize();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::InvisibleButton(id, {width, height});
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->AddRectFilled(at, {at.x + width, at.y + height}, packed(context.theme.ground));
    const float each = width / static_cast<float>(n);
    const auto band = [&](int layer, ImU32 of) {
        if (layer < 0 || static_cast<size_t>(layer) >= n) return;
        const float x = at.x + each * static_cast<float>(layer);
        list->AddRectFilled({x, at.y}, {x + each, at.y + height}, of);
    };
    band(session.cursor().layer, packed(context.theme.accent, 0.3f));
    band(session.hover().layer, packed(context.theme.hover, 0.15f));
    for (size_t layer = 0; layer < n; ++layer) {
        const float share = value(layer);
        if (std::isnan(share)) continue;
        const float x = at.x + each * static_cast<float>(layer);
        const float top = at.y + height * (1 - std::clamp(share, 0.0f, 1.0f));
        list->AddRectFilled({x, std::min(top, at.y + height - 1)}, {x + std::max(each - 1, 1.0f), at.y + height},
                            color);
    }
    if (reference > 0) {
        const float y = at.y + height * (1 - reference);
        list->AddLine({at.x, y}, {at.x + width, y}, packed(context.theme.ink_quiet));
    }
    const bool is_dragged = ImGui::IsItemActive();
    if (!is_dragged && !ImGui::IsItemHovered()) return;
    const auto layer =
        static_cast<size_t>(std::clamp((ImGui::GetMousePos().x - at.x) / each, 0.0f, static_cast<float>(n - 1)));
    Cursor over = session.cursor();
    over.layer = static_cast<int>(layer);
    over.kv_head = over.query_head = -1;
    session.set_hover(over);
    if (is_dragged && session.cursor().layer != static_cast<int>(layer))
        session.selection.select_layer(static_cast<int>(layer));
    ImGui::SetTooltip("layer %zu: %s", layer, text(layer).c_str());
}

}  // namespace

void draw_layer_charts(Context& context, const TokenReport& report, ImU32 color, const std::string& measure) {
    const auto kept_heads = [&](size_t layer) {
        size_t n = 0;
        for (size_t r = 0; r < report.n_rows; ++r) n += report.at(layer, r).kept;
        return n;
    };
    const auto entries = [&](size_t layer) {
        double sum = 0;
        for (size_t r = 0; r < report.n_rows; ++r) sum += report.at(layer, r).entries();
        return sum;
    };
    sparkline(
        context, "##inspector kept", fmt::format("heads that keep it (of {}), by layer →", report.n_rows),
        report.n_layers, color, 0,
        [&](size_t layer) { return static_cast<float>(entries(layer) / static_cast<double>(report.n_rows)); },
        [&](size_t layer) {
            const size_t heads = kept_heads(layer);
            const bool is_shared = entries(layer) < static_cast<double>(heads);
            return fmt::format("kept by {} of {} heads{}\n{}", heads, report.n_rows,
                               is_shared ? fmt::format(", as {} entries", analysis::format_number(entries(layer))) : "",
                               measure_definition("retention"));
        });
    if (!report.has_scores) {
        ImGui::PushStyleColor(ImGuiCol_Text, context.theme.ink_quiet);
        ImGui::TextWrapped("the trace has no scores of this run");
        ImGui::PopStyleColor();
        return;
    }
    const auto best = [&](size_t layer) {
        double most = TokenDecision::nothing;
        for (size_t r = 0; r < report.n_rows; ++r) {
            const double here = ratio(report.at(layer, r));
            if (!(most >= here)) most = here;
        }
        return most;
    };
    double low = 1;
    double high = 1;
    for (size_t layer = 0; layer < report.n_layers; ++layer) {
        const double here = best(layer);
        if (!(here > 0)) continue;
        low = std::min(low, here);
        high = std::max(high, here);
    }
    if (low == high) return;  // the token was forced in everywhere
    // The axis is logarithmic, because scores differ by orders of magnitude, and covers at most 0.001 to 1,000.
    const double bottom = std::log(std::max(low, 1e-3)) - 0.05;
    const double top = std::log(std::min(high, 1e3)) + 0.05;
    const auto share = [&](double quotient) {
        return quotient > 0 ? static_cast<float>((std::log(quotient) - bottom) / (top - bottom)) : 0.0f;
    };
    sparkline(
        context, "##inspector scores", "score / cut-off of the best head (log)", report.n_layers,
        packed(context.theme.accent, 0.8f), share(1.0),
        [&](size_t layer) {
            const double here = best(layer);
            return std::isnan(here) ? std::numeric_limits<float>::quiet_NaN() : share(here);
        },
        [&](size_t layer) {
            const double here = best(layer);
            return std::isnan(here)
                       ? std::string("not ranked")
                       : fmt::format("best head: {} times the cut-off\n{}", analysis::format_number(here), measure);
        });
}

}  // namespace kvscope::gui
