#include "analysis/drawing/panel_titles.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvscope::analysis {
namespace {

enum class Brevity { whole, abbreviated, most };

std::string shortened(const std::string& title, int layer, Brevity brevity) {
    if (brevity == Brevity::whole || layer < 0) return title;
    if (title == fmt::format("Layer {}", layer))
        return brevity == Brevity::most ? std::to_string(layer) : fmt::format("L{}", layer);
    const std::string behind = fmt::format(", layer {}", layer);
    if (!title.ends_with(behind)) return title;
    const size_t characters = brevity == Brevity::most ? 1 : title.size() - behind.size();
    return fmt::format("{} L{}", title.substr(0, characters), layer);
}

std::string title_of(const Panel& panel, Brevity brevity, bool with_trace) {
    const std::string before = panel.trace_name.empty() ? "" : panel.trace_name + ": ";
    if (!panel.title.starts_with(before)) return with_trace || panel.title != panel.trace_name ? panel.title : "";
    const std::string title = shortened(panel.title.substr(before.size()), panel.subject.layer, brevity);
    return with_trace ? before + title : title;
}

}  // namespace

std::vector<std::string> panel_titles(const Figure& figure,
                                      const std::function<bool(size_t panel, const std::string& text)>& fits,
                                      bool with_headings) {
    const bool with_traces = !(with_headings && figure.trace_by_trace);
    std::vector<std::string> titles;
    for (const Brevity brevity : {Brevity::whole, Brevity::abbreviated, Brevity::most}) {
        titles.clear();
        bool all_fit = true;
        for (size_t i = 0; i < figure.panels.size(); ++i) {
            titles.push_back(title_of(figure.panels[i], brevity, with_traces));
            all_fit = all_fit && fits(i, titles.back());
        }
        if (all_fit) break;
    }
    return titles;
}

std::string trace_heading_of_row(const Figure& figure, size_t row) {
    if (!figure.trace_by_trace) return {};
    const auto name_of = [&](size_t of_row) {
        const auto found = std::find_if(figure.panels.begin(), figure.panels.end(),
                                        [of_row](const Panel& panel) { return panel.row == of_row; });
        return found == figure.panels.end() ? std::string() : found->trace_name;
    };
    const std::string name = name_of(row);
    return row > 0 && name_of(row - 1) == name ? std::string() : name;
}

}  // namespace kvscope::analysis
