#include "analysis/panel_titles.h"

#include <fmt/format.h>

namespace kvscope::analysis {
namespace {

enum class Brevity { whole, abbreviated, most };

std::string title_of(const Panel& panel, Brevity brevity) {
    const int layer = panel.subject.layer;
    if (brevity == Brevity::whole || layer < 0) return panel.title;
    if (panel.title == fmt::format("Layer {}", layer))
        return brevity == Brevity::most ? std::to_string(layer) : fmt::format("L{}", layer);
    const std::string behind = fmt::format(", layer {}", layer);
    if (!panel.title.ends_with(behind)) return panel.title;
    const size_t characters = brevity == Brevity::most ? 1 : panel.title.size() - behind.size();
    return fmt::format("{} L{}", panel.title.substr(0, characters), layer);
}

}  // namespace

std::vector<std::string> panel_titles(const Figure& figure,
                                      const std::function<bool(size_t panel, const std::string& text)>& fits) {
    std::vector<std::string> titles;
    for (const Brevity brevity : {Brevity::whole, Brevity::abbreviated, Brevity::most}) {
        titles.clear();
        bool all_fit = true;
        for (size_t i = 0; i < figure.panels.size(); ++i) {
            titles.push_back(title_of(figure.panels[i], brevity));
            all_fit = all_fit && fits(i, titles.back());
        }
        if (all_fit) break;
    }
    return titles;
}

}  // namespace kvscope::analysis
