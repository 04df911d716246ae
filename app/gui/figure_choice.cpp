#include "app/gui/figure_choice.h"

#include <imgui.h>

#include <algorithm>
#include <map>

namespace kvscope::gui {

std::string source_title(const std::string& source) {
    static const std::map<std::string, std::string> titles = {
        {"kv-heads", "attention, KV heads"}, {"attention", "attention, query heads"},
        {"scores", "a run's own scores"},    {"adjacent", "neighbouring tokens"},
        {"cumulative", "cumulative energy"}, {"mean-by-layer", "mean by layer"}};
    const auto found = titles.find(source);
    return found == titles.end() ? source : found->second;
}

bool choose_source(const char* view, const analysis::FigureDefinition& definition, std::string& source) {
    const auto option = std::find_if(definition.options.begin(), definition.options.end(),
                                     [](const auto& each) { return each.name == "source"; });
    if (option == definition.options.end() || option->choices.empty()) return false;
    if (source.empty()) source = option->choices.front();
    bool changed = false;
    ImGui::SetNextItemWidth(13 * ImGui::GetFontSize());
    const std::string label = std::string("##source ") + view;
    if (ImGui::BeginCombo(label.c_str(), source_title(source).c_str())) {
        for (const std::string& choice : option->choices) {
            if (!ImGui::Selectable(source_title(choice).c_str(), choice == source)) continue;
            changed = choice != source;
            source = choice;
        }
        ImGui::EndCombo();
    }
    ImGui::SetItemTooltip("%s", option->help.c_str());
    return changed;
}

}  // namespace kvscope::gui
