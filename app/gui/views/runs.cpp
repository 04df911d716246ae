#include <fmt/format.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <cmath>

#include "analysis/runs/model_in_words.h"
#include "analysis/runs/run_style.h"
#include "analysis/tables/table_format.h"
#include "app/gui/drawing/run_marks.h"
#include "app/gui/session/renaming.h"
#include "app/gui/view/action_registry.h"
#include "app/gui/view/run_label.h"
#include "app/gui/view/text_field.h"
#include "app/gui/view/view.h"
#include "app/gui/view/widgets.h"
#include "app/gui/view_data/cell_text.h"
#include "app/gui/view_data/runs_alone.h"

namespace kvscope::gui {
namespace {

class RunsView : public View {
 public:
    void draw(Context& context) override {
        Session& session = context.session;
        if (session.documents().empty()) return draw_nothing(context, open_trace_or_demo() + " to list its runs.");
        const auto all = session.all_runs();
        const auto n_shown = std::ranges::count_if(all, [&](const RunKey& key) { return session.is_visible(key); });
        draw_what_is_shown(session, static_cast<size_t>(n_shown), all.size());
        int number = 0;
        for (const auto& document : session.documents()) draw_document(context, *document, number);
    }

    std::vector<std::pair<std::string, std::string>> help() const override {
        return {
            {"click", "select a run"},
            {"right click", "show only this run, budget or policy, together with the full cache; rename the run"},
            {"the marker",
             "show or hide the run in all views; with Ctrl, show only this run; keys for the first 27 runs: 1 … 9, "
             "Shift+1 … 9, Ctrl+1 … 9"},
            {"a prompt", "show the runs of that prompt; the selection, A and B move to the same runs"},
            {"A, B",
             "the two compared runs: O shows only these two, Space alternates between them, Esc restores the previous "
             "runs, D shows the difference"}};
    }

 private:
    /// The height is constant, so that the list below does not move.
    static void draw_what_is_shown(Session& session, size_t n_shown, size_t n_runs) {
        if (n_runs == 0) return;
        disabled_text(fmt::format("{} of {} shown", n_shown, n_runs));
        if (n_shown < n_runs) {
            ImGui::SameLine();
            if (ImGui::TextLink("all")) show_all_runs(session);
            ImGui::SetItemTooltip("key 0");
        }
        ImGui::BeginDisabled(!session.pair.is_complete());
        bool is_alone = session.pair.is_alone();
        if (ImGui::Checkbox("A and B alone", &is_alone)) session.pair.alone = is_alone;
        ImGui::EndDisabled();
        tooltip_of_disabled(
            session.pair.is_complete()
                ? "Shows only A and B in every view (key O); the markers do not change"
                : "Choose A and B in the list first. Then this box hides all other runs in every view (key O)");
    }

    void draw_document(Context& context, Document& document, int& number) {
        const trace::Reader& reader = *document.reader();
        ImGui::PushID(document.id());
        if (context.session.documents().size() > 1) {
            draw_trace_badge(context, document);
            ImGui::SameLine();
        }
        const float room = ImGui::GetContentRegionAvail().x - ImGui::GetTreeNodeToLabelSpacing();
        const std::string title = fmt::format("{}###document", text_that_fits(context.session.name_of(document), room));
        const bool open =
            ImGui::TreeNodeEx(title.c_str(), ImGuiTreeNodeFlags_DefaultOpen | ImGuiTreeNodeFlags_SpanAvailWidth);
        ImGui::SetItemTooltip("%s\n%s%s", document.path().c_str(), reader.generator().c_str(),
                              reader.complete() ? "" : "\nincomplete: a run is in progress or was stopped");
        if (open) {
            if (reader.has_model()) draw_model(context.session, reader.model());
            for (int prompt = 0; prompt < reader.n_prompts(); ++prompt) {
                if (reader.n_prompts() > 1) draw_prompt_choice(context.session, document, prompt);
                if (prompt == document.prompt) draw_runs(context, document, number);
            }
            for (const auto& task : reader.result_tasks()) ImGui::TextDisabled("scores of %s", task.c_str());
            if (reader.n_prompts() == 0 && reader.result_tasks().empty())
                ImGui::TextDisabled(reader.complete() ? "no prompt in this trace" : "no prompt in this trace yet");
            ImGui::TreePop();
        }
        ImGui::PopID();
    }

    static void draw_model(Session& session, const trace::ModelAttributes& model) {
        const std::string shown = displayed_model_name(session.model_names, model);
        const std::vector<std::string> names = recorded_model_names(model);
        ImGui::TextDisabled("%s", shown.c_str());
        std::string words = fmt::format("{}, {}", analysis::model_in_words(model), "right click: rename");
        if (names.size() > 1) words = fmt::format("name in the file's metadata: {}\n{}", names.back(), words);
        item_tooltip(words);
        if (!ImGui::BeginPopupContextItem("model menu")) return;
        ImGui::TextDisabled("name of the model in all traces");
        for (const std::string& name : names)
            if (ImGui::MenuItem(fmt::format("{}##{}", name, "own").c_str(), nullptr, name == shown))
                set_user_model_name(session.model_names, model, name);
        ImGui::SetNextItemWidth(20 * ImGui::GetFontSize());
        std::string typed = session.model_names.contains(model.fingerprint) ? shown : "";
        if (text_field("##model name", "your own name", &typed)) set_user_model_name(session.model_names, model, typed);
        if (ImGui::IsItemDeactivatedAfterEdit() && ImGui::IsKeyPressed(ImGuiKey_Enter)) ImGui::CloseCurrentPopup();
        ImGui::EndPopup();
    }

    static void draw_prompt_choice(Session& session, Document& document, int prompt) {
        const trace::Reader& reader = *document.reader();
        const auto& attributes = reader.prompt(prompt);
        int n_of_name = 0, place = 0;
        for (int other = 0; other < reader.n_prompts(); ++other) {
            n_of_name += reader.prompt(other).name == attributes.name;
            if (other == prompt) place = n_of_name;
        }
        std::string title = attributes.name;
        if (n_of_name > 1) {
            const std::string& text = attributes.question.empty() ? attributes.name : attributes.question;
            title = fmt::format("{}. {}", place, text.substr(0, text.find('\n')));
        }
        const std::string label =
            fmt::format("{} ({} tokens)###prompt{}", title, analysis::format_count(attributes.n_tokens), prompt);
        if (ImGui::RadioButton(label.c_str(), prompt == document.prompt)) session.show_prompt(document, prompt);
        const std::string question = attributes.question.empty() ? "no question" : attributes.question;
        ImGui::SetItemTooltip("%s\n%s", attributes.name.c_str(), question.c_str());
    }

    static void draw_runs(Context& context, Document& document, int& number) {
        for (const RunId run : document.shown_order(document.prompt))
            draw_run(context, {document.id(), document.prompt, run}, ++number);
    }

    static std::string bytes_share_text(Session& session, const RunKey& key) {
        const double share = share_of_full_bytes(session, key);
        if (std::isnan(share)) return "every token";
        return fmt::format("every token, in {:.1f} % of the full cache's bytes ({:.1f} % saved)", 100 * share,
                           100 - 100 * share);
    }

    static std::string share_text(Session& session, const RunKey& key) {
        const auto& run = session.attributes(key);
        const double kept = std::min(run.budget_fraction, 1.0);  // a budget may exceed the prompt
        if (run.budget_of == trace::schema::run::budget_of_bytes) return bytes_share_text(session, key);
        return fmt::format("{} entries per KV head and layer: {:.1f} % kept, {:.1f} % removed",
                           analysis::format_count(run.budget), 100 * kept, 100 - 100 * kept);
    }

    static void draw_menu(Context& context, const RunKey& key) {
        Session& session = context.session;
        if (!ImGui::BeginPopupContextItem("run menu")) return;
        for (const Alone which : {Alone::run, Alone::budget, Alone::policy})
            if (ImGui::MenuItem(show_runs_alone_label(session, key, which).c_str()))
                show_runs_alone(session, key, which);
        if (ImGui::MenuItem("Show all", "0")) show_all_runs(session);
        ImGui::Separator();
        if (ImGui::MenuItem("Rename…", nullptr, false, can_rename_run(session, key))) context.host.rename_run(key);
        ImGui::EndPopup();
    }

    static void draw_run(Context& context, const RunKey& key, int number) {
        Session& session = context.session;
        const auto& run = session.attributes(key);
        const RunLook look = session.look(key);
        ImGui::PushID(key.text().c_str());
        const bool visible = session.is_visible(key);
        const bool failed = run.status != "complete";
        const float side = ImGui::GetTextLineHeight();
        const ImVec2 at = ImGui::GetCursorScreenPos();
        if (ImGui::InvisibleButton("shown", {side, side})) {
            if (ImGui::GetIO().KeyCtrl && !failed)
                show_runs_alone(session, key, Alone::run);
            else
                session.set_visible(key, !visible);
        }
        ImGui::SetItemTooltip(
            "%s%s\nCtrl-click: show only this run", visible ? "hide" : "show",
            number <= n_run_keys ? fmt::format(" (key {})", shortcut_text(run_visibility_key(number))).c_str() : "");
        const float inset = std::round(0.17f * side);
        draw_run_marker(context.theme, look.style, {at.x + inset, at.y + inset}, side - 2 * inset,
                        ImGui::GetWindowDrawList(), visible);
        const float gap = 4 * context.scale;
        ImGui::SameLine(0, gap);
        ImGui::BeginDisabled(failed);
        const float buttons =
            ImGui::CalcTextSize("AB").x + 4 * ImGui::GetStyle().FramePadding.x + 2 * gap;  // as in letter()
        const std::string label = analysis::run_label(session.attributes(key)) + (failed ? " (failed)" : "");
        const float room = ImGui::GetContentRegionAvail().x - buttons;
        const std::string fitting = shorten_run_label(label, room);
        const std::string shown = fitting == label ? label : fitting + "##" + label;
        if (ImGui::Selectable(shown.c_str(), key == session.cursor().run, ImGuiSelectableFlags_AllowOverlap, {room, 0}))
            session.selection.select_run(key);
        ImGui::EndDisabled();
        draw_menu(context, key);
        if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) {
            Cursor over;
            over.run = key;
            session.set_hover(over);
            if (failed)
                ImGui::SetTooltip("failed: %s", run.message.c_str());
            else
                ImGui::SetTooltip("%s%s%s", fitting == label ? "" : (label + "\n").c_str(),
                                  look.recorded.empty() ? "" : (look.recorded + "\n").c_str(),
                                  share_text(session, key).c_str());
        }
        const auto letter = [&](const char* name, std::optional<RunKey>& slot) {
            ImGui::SameLine(0, gap);
            const bool is_set = slot == key;
            ImGui::BeginDisabled(failed);
            ImGui::PushStyleColor(ImGuiCol_Text, is_set ? context.theme.accent : context.theme.ink_quiet);
            if (ImGui::SmallButton(name)) session.pair.choose(slot, is_set ? std::nullopt : std::optional(key));
            ImGui::PopStyleColor();
            ImGui::EndDisabled();
        };
        letter("A", session.pair.a);
        letter("B", session.pair.b);
        ImGui::PopID();
    }
};

}  // namespace

ViewKind runs_view() {
    return {"runs",     "Runs",      "The open traces and their runs: which are visible, selected and compared",
            Dock::left, Topic::runs, make_view<RunsView>,
            R"(
-------.........
................
**.######...a.b.
................
77.####.....-.-.
................
44.#######..-.-.
................)"};
}

}  // namespace kvscope::gui
