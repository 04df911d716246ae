#include "app/gui/layout/layouts.h"

namespace kvscope::gui {

const std::vector<Layout>& layouts() {
    static const std::vector<Layout> all = {
        {"explore",
         "Explore",
         {{"all", ImGuiDir_Left, 0.15f, "left", 17},
          {"all", ImGuiDir_Right, 0.22f, "right", 17},
          {"left", ImGuiDir_Down, 0.64f, "left below"},
          {"all", ImGuiDir_Down, 0.66f, "middle"},
          {"middle", ImGuiDir_Down, 0.46f, "below", 14}},
         {{"runs", "left"},
          {"run", "left"},
          {"what_if", "left below"},
          {"retention", "all"},
          {"difference", "all"},
          {"prompt", "middle"},
          {"head_divergence", "below"},
          {"query_similarity", "below"},
          {"coverage", "below"},
          {"budgets", "below"},
          {"cost", "below"},
          {"answers", "below"},
          {"spectrum", "below"},
          {"log", "below"},
          {"inspector", "right"},
          {"trace", "right"}}},
        {"compare",
         "Compare",
         {{"all", ImGuiDir_Left, 0.15f, "left", 17},
          {"all", ImGuiDir_Down, 0.34f, "below"},
          {"all", ImGuiDir_Down, 0.38f, "middle", 9},
          {"below", ImGuiDir_Right, 0.5f, "below right", 20}},
         {{"runs", "left"},
          {"retention", "all"},
          {"difference", "middle"},
          {"cost", "below"},
          {"scatter", "below"},
          {"answers", "below right"},
          {"prompt", "below right"}},
         true},
        {"report", "Report", {}, {{"report", "all"}}},
    };
    return all;
}

const Layout* find_layout(const std::string& name) {
    for (const Layout& layout : layouts())
        if (layout.name == name) return &layout;
    return nullptr;
}

}  // namespace kvscope::gui
