#include "app/gui/figure/figure_choices.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "app/gui/drawing/run_marks.h"
#include "app/gui/drawing/shaped_text.h"
#include "app/gui/view/run_label.h"
#include "app/gui/view/widgets.h"
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
    const auto option =
        std::ranges::find_if(definition.options, [](const auto& each) { return each.name == "source"; });
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
    item_tooltip(option->help);
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
            item_tooltip(meanings[i]);
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
    const auto* const found = std::ranges::find(stored_traces, state.value("traces", std::string()));
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

bool draw_comparison_choice(const char* view, const Context& context, AutomaticComparison automatic,
                            Comparison& comparison) {
    using Kind = Comparison::Kind;
    const Session& session = context.session;
    const auto& documents = session.documents();
    if (documents.size() < 2 && !has_pair_to_compare(session)) return false;
    const Compared now = find_compared_runs(session, comparison, automatic, true);
    ImGui::SetNextItemWidth((documents.size() > 1 ? 17 : 10) * ImGui::GetFontSize());
    const std::string shown = now.kind == Kind::none ? "no differences" : now.title;
    ImGui::SetNextItemAllowOverlap();  // for the badges
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (ImGui::BeginCombo(fmt::format("##compare {}", view).c_str(), shown.c_str())) {
        if (ImGui::Selectable("no differences", now.kind == Kind::none)) comparison = {Kind::none, {}, {}};
        if (has_pair_to_compare(session)) {
            if (ImGui::Selectable("A − B", now.kind == Kind::runs)) comparison = {Kind::runs, {}, {}};
            item_tooltip(
                fmt::format("A: {}\nB: {}", session.look(*session.pair.a).label, session.look(*session.pair.b).label));
        }
        for (const auto& less : documents) {
            for (const auto& trace : documents) {
                if (trace == less) continue;
                const bool is_chosen = now.trace == trace.get() && now.less == less.get();
                const std::string both = fmt::format("{} − {}", session.name_of(*trace), session.name_of(*less));
                if (ImGui::Selectable(both.c_str(), is_chosen))
                    comparison = {Kind::traces, session.name_of(*trace), session.name_of(*less)};
                ImGui::SetItemTooltip("For each run, subtracts the run with the same policy, parameters and budget.");
            }
        }
        ImGui::EndCombo();
    }
    item_tooltip(shown);
    const ImVec2 text{at.x + ImGui::GetStyle().FramePadding.x, at.y + ImGui::GetStyle().FramePadding.y};
    draw_badges_over_text(context, shown, text);
    return true;
}

void draw_reference_choice(const Session& session, AnswerReference& reference) {
    reference.resolve(session);
    const bool has_a = session.pair.a && session.exists(*session.pair.a);
    ImGui::SetNextItemWidth(9 * ImGui::GetFontSize());
    if (ImGui::BeginCombo("##answers against", fmt::format("against {}", reference.name()).c_str())) {
        if (ImGui::Selectable(full_policy.data(), reference.is_full())) reference.choose_full();
        ImGui::SetItemTooltip("Marks tokens that differ from the full run's answer to the same prompt.");
        if (ImGui::Selectable("A", reference.is_one_run(), has_a ? 0 : ImGuiSelectableFlags_Disabled))
            reference.choose_a();
        if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
            ImGui::SetTooltip("%s", has_a ? session.look(*session.pair.a).label.c_str() : "Choose A in Runs first.");
        for (const auto& document : session.documents()) {
            if (session.documents().size() < 2) break;
            const std::string name = session.name_of(*document);
            if (ImGui::Selectable(name.c_str(), reference.is_trace(name))) reference.choose_trace(name);
            ImGui::SetItemTooltip(
                "Compares each run with the run of this trace that has the same policy, parameters and budget.");
        }
        ImGui::EndCombo();
    }
    ImGui::SetItemTooltip("The reference run for comparing answers. Its divergence is subtracted in the plot below.");
    reference.resolve(session);
}

namespace {

float choice_width(const Session& session) {
    const float em = ImGui::GetFontSize();
    const auto [a, b] = session.compared();
    float widest = 0;
    for (const RunKey& run : {a, b})
        if (run.valid()) widest = std::max(widest, ImGui::CalcTextSize(session.look(run).label.c_str()).x);
    const float around = ImGui::GetFrameHeight() + 3 * ImGui::GetStyle().FramePadding.x;
    const float room = std::max(ImGui::GetContentRegionMax().x - 4 * em, 13 * em);
    return std::min(std::clamp(widest + around, 13 * em, 24 * em), room);
}

void choose_run(const Context& context, const char* letter, const char* view, const RunKey& shown,
                std::optional<RunKey>& slot) {
    Session& session = context.session;
    const auto chip = [&](const RunKey& key, float height) {
        draw_inline_run_marker(context.theme, session.look(key).style, height);
    };
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(letter);
    ImGui::SameLine();
    if (shown.valid()) chip(shown, ImGui::GetFrameHeight());
    const float width = choice_width(session);
    ImGui::SetNextItemWidth(width);
    const float room = width - ImGui::GetFrameHeight() - 2 * ImGui::GetStyle().FramePadding.x;
    const std::string preview =
        shown.valid() ? beginning_that_fits(label_that_fits(session.look(shown), room), room) : "choose a run";
    ImGui::SetNextItemAllowOverlap();  // for the badge
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (ImGui::BeginCombo(fmt::format("##{} {}", view, letter).c_str(), preview.c_str(), ImGuiComboFlags_HeightLarge)) {
        for (const RunKey& key : session.all_runs()) {
            if (session.attributes(key).status != "complete") continue;
            ImGui::PushID(key.text().c_str());
            chip(key, ImGui::GetTextLineHeight());
            if (ImGui::Selectable(session.look(key).label.c_str(), key == shown)) slot = key;
            ImGui::PopID();
        }
        ImGui::EndCombo();
    }
    if (shown.valid()) item_tooltip(session.look(shown).label);
    const ImVec2 text{at.x + ImGui::GetStyle().FramePadding.x, at.y + ImGui::GetStyle().FramePadding.y};
    draw_badges_over_text(context, preview, text);
}

}  // namespace

void draw_pair_choice(const Context& context, const char* view) {
    Session& session = context.session;
    const auto [a, b] = session.compared();
    choose_run(context, "A", view, a, session.pair.a);
    ImGui::SameLine();
    if (ImGui::Button(fmt::format("swap##{}", view).c_str()) && a.valid() && b.valid()) {
        session.pair.a = b;
        session.pair.b = a;
    }
    same_line_if_fits(choice_width(session) + 3 * ImGui::GetFontSize());
    choose_run(context, "B", view, b, session.pair.b);
}

}  // namespace kvscope::gui
