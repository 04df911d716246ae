#include "app/gui/figure/figure_option_choice.h"

#include <imgui.h>

#include <algorithm>
#include <array>
#include <map>

#include "app/gui/view_data/comparison.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

constexpr std::array<std::string_view, 3> stored_traces = {"focused", "all", "difference"};  // in the order of Traces

}  // namespace

std::string source_option_label(const std::string& source) {
    static const std::map<std::string, std::string> titles = {
        {"kv-heads", "attention, KV heads"},
        {"attention", "attention, query heads"},
        {"scores", "the run's scores"},
        {"adjacent", "neighboring tokens"},
        {"contribution", "modes' contribution"},
        {"layer-similarity", "layers' similarity"},
        {"head-similarity", "heads' similarity"},
        {"alignment", "gradient alignment"},
        {"attention-by-similarity", "attention, query heads by similarity"},
        {"kv-heads-by-similarity", "attention, KV heads by similarity"},
        {"scores-by-similarity", "the run's scores by similarity"},
        {"cumulative", "cumulative energy"},
        {"mean-by-layer", "mean by layer"}};
    const auto found = titles.find(source);
    return found == titles.end() ? source : found->second;
}

bool draw_source_choice(const char* view, const analysis::FigureDefinition& definition, std::string& source) {
    const auto option = std::find_if(definition.options.begin(), definition.options.end(),
                                     [](const auto& each) { return each.name == "source"; });
    if (option == definition.options.end() || option->choices.empty()) return false;
    if (source.empty()) source = option->choices.front();
    bool changed = false;
    ImGui::SetNextItemWidth(13 * ImGui::GetFontSize());
    const std::string label = std::string("##source ") + view;
    if (ImGui::BeginCombo(label.c_str(), source_option_label(source).c_str())) {
        for (const std::string& choice : option->choices) {
            if (!ImGui::Selectable(source_option_label(choice).c_str(), choice == source)) continue;
            changed = choice != source;
            source = choice;
        }
        ImGui::EndCombo();
    }
    ImGui::SetItemTooltip("%s", option->help.c_str());
    return changed;
}

bool draw_traces_choice(const char* view, const Session& session, Traces& traces) {
    constexpr std::array<const char*, 3> names = {"the selected trace", "all open traces", "A − B"};
    constexpr std::array<const char*, 3> meanings = {
        "the trace of the selected run", "all traces side by side on one scale",
        "results of run A minus results of run B; set A and B in Runs, also in different traces"};
    const bool has_several = session.documents().size() > 1;
    if (!has_several && !has_pair_to_compare(session) && traces != Traces::difference) return false;
    const auto can_be = [&](Traces each) {
        if (each == Traces::all) return has_several;
        return each == Traces::focused || each == traces || has_pair_to_compare(session);
    };
    const auto chosen = static_cast<size_t>(can_be(traces) ? traces : Traces::focused);
    ImGui::SetNextItemWidth(10 * ImGui::GetFontSize());
    if (ImGui::BeginCombo((std::string("##traces ") + view).c_str(), names[chosen])) {
        for (size_t i = 0; i < names.size(); ++i) {
            if (!can_be(static_cast<Traces>(i))) continue;
            if (ImGui::Selectable(names[i], i == chosen)) traces = static_cast<Traces>(i);
            ImGui::SetItemTooltip("%s", meanings[i]);
        }
        ImGui::EndCombo();
    }
    ImGui::SetItemTooltip("Traces to show");
    return true;
}

void save_traces_choice(nlohmann::json& state, Traces traces) {
    state["traces"] = stored_traces.at(static_cast<size_t>(traces));
}

void load_traces_choice(const nlohmann::json& state, Traces& traces) {
    const auto* const found =
        std::find(stored_traces.begin(), stored_traces.end(), state.value("traces", std::string()));
    if (found != stored_traces.end()) traces = static_cast<Traces>(found - stored_traces.begin());
}

std::string why_no_difference(const Session& session, bool of_runs) {
    if (!session.pair.a || !session.pair.b || !session.exists(*session.pair.a) || !session.exists(*session.pair.b))
        return "Choose run A and run B in Runs to show A − B. The runs may be in different traces.";
    const bool one_prompt =
        session.pair.a->document == session.pair.b->document && session.pair.a->prompt == session.pair.b->prompt;
    if (one_prompt && !of_runs)
        return "A and B have the same prompt, so the figure is the same for both: choose runs in different traces.";
    return "";
}

}  // namespace kvscope::gui
