#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <string_view>

#include "analysis/drawing/figure_definition.h"
#include "app/gui/session/parse_selection.h"
#include "app/gui/shell/menu_actions.h"
#include "app/gui/view_data/prompt_text.h"
#include "app/gui/view_data/runs_alone.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

std::string name_of_place(std::string_view place) {
    std::string name = "Go to ";
    for (const char c : place) name += c == ',' ? ", " : std::string(1, c == '=' ? ' ' : c);
    return name;
}

void go_to(Session& session, const std::string& place) { session.selection.go_to(parse_selection(session, place)); }

/// Offers to go to a place that the user typed. The action reports an error if no trace has the place.
void offer_place(const std::string& search, std::vector<Action>& offered, Session& session) {
    if (const auto place = convert_typed_place(search))
        offered.push_back({name_of_place(*place), "", 0, [&session, place] { go_to(session, *place); }});
}

void offer_texts(const std::string& search, std::vector<Action>& offered, Session& session) {
    constexpr size_t shortest_text = 3, most_places = 5;
    const Document* document = session.focus();
    if (search.size() < shortest_text || !document || document->prompt >= document->reader()->n_prompts()) return;
    const auto text = prompt_text(session, *document);
    if (!text) return;
    const auto spans = analysis::find_text(*text, search);
    for (size_t i = 0; i < std::min(spans.size(), most_places); ++i) {
        const auto [first, last] = spans[i];
        offered.push_back({fmt::format("Go to “{}”, token {} ({} of {})", search, first, i + 1, spans.size()), "", 0,
                           [&session, place = fmt::format("token={}-{}", first, last)] { go_to(session, place); }});
    }
}

void offer_runs_alone(const std::string& search, std::vector<Action>& offered, Session& session) {
    const std::vector<RunKey> runs = parse_typed_runs(session, search);
    if (runs.empty()) return;
    std::string labels;
    for (const RunKey& run : runs) labels += (labels.empty() ? "" : ", ") + session.look(run).label;
    offered.push_back({"Show only " + labels, "", 0, [&session, runs] { show_runs_alone(session, runs); }});
}

void toggle_run(Session& session, const RunKey& run) { session.set_visible(run, !session.is_visible(run)); }

void add_pair(Actions& actions, MenuActions& menu, Session& session) {
    const auto alternate = [&session] {
        const auto [a, b] = session.compared();
        session.pair.flicker = session.pair.flicker == a ? b : a;
    };
    const auto can_alternate = [&session] {
        const auto [a, b] = session.compared();
        return a.valid() && b.valid() && a != b;
    };
    menu.add("Alternate between A and B", ImGuiKey_Space, alternate, can_alternate);
    actions.add({"Show only A and B", "View", ImGuiKey_O,
                 [&session] {
                     session.pair.flicker.reset();
                     session.pair.alone = !session.pair.alone;
                 },
                 [&session] { return session.pair.is_complete(); }, [&session] { return session.pair.is_alone(); }});
}

void add_run_keys(Actions& actions, Session& session) {
    for (int number = 1; number <= n_run_keys; ++number) {
        const int first = number - (number - 1) % 9;
        actions.add({fmt::format("Show or hide run {}", number),
                     "",
                     run_visibility_key(number),
                     [&session, number] {
                         const auto runs = session.all_runs();
                         if (static_cast<size_t>(number) <= runs.size())
                             toggle_run(session, runs[static_cast<size_t>(number) - 1]);
                     },
                     has_trace(session),
                     {},
                     false,
                     fmt::format("{} … 9", shortcut_text(run_visibility_key(first))),
                     fmt::format("Show or hide runs {} to {}", first, first + 8)});
    }
}

void add_rankings(Actions& actions, Session& session, OpenViews& views) {
    for (const analysis::FigureDefinition& definition : analysis::ranking_definitions())
        actions.add({"Rank: " + definition.title,
                     "",
                     0,
                     [&views, &definition] {
                         views.show(*find_view_kind("rankings"), {{"ranking", definition.name}});
                     },
                     has_trace(session),
                     {},
                     false});
}

void offer_runs(std::vector<Action>& extra, Session& session) {
    const auto runs = session.all_runs();
    for (const RunKey& key : runs) {
        extra.push_back({"Go to run " + session.look(key).label, "", 0, [&session, key] {
                             if (session.exists(key)) session.selection.select_run(key);  // a job may have replaced it
                         }});
    }
    if (const RunKey selected = session.cursor().run; session.exists(selected))
        for (const Alone which : {Alone::run, Alone::budget, Alone::policy})
            extra.push_back({"Show " + show_runs_alone_label(session, selected, which), "", 0,
                             [&session, selected, which] { show_runs_alone(session, selected, which); }});
    int number = 0;
    for (const RunKey& key : runs) {
        const char* verb = session.is_visible(key) ? "Hide" : "Show";
        extra.push_back({fmt::format("{} run {}", verb, session.look(key).label), "", run_visibility_key(++number),
                         [&session, key] { toggle_run(session, key); }});
    }
}

}  // namespace

void add_view_actions(const ActionTargets& on) {
    MenuActions menu(on.actions, "View");
    Session& session = on.session;
    OpenViews& views = on.views;
    add_pair(on.actions, menu, session);
    menu.add("Difference A − B", ImGuiKey_D, [&views] { views.show(*find_view_kind("difference")); });
    menu.add("Zoom to fit", ImGuiKey_F, [&views] {
        if (const OpenView* open = views.focused()) open->view->fit();
    });
    on.actions.add({"Maximize the view",
                    "View",
                    ImGuiKey_M,
                    [&views] { views.toggle_maximised(); },
                    {},
                    [&views] { return views.is_maximised(); }});
    const auto has_view = [&views] { return views.focused() != nullptr; };
    menu.add(
        "Close view", ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_W, [&views] { views.close_focused(); }, has_view);
    menu.add(
        "Close other views", 0, [&views] { views.close_others(); }, has_view);
    add_run_keys(on.actions, session);
    menu.add(
        "Show all runs", ImGuiKey_0, [&session] { show_all_runs(session); }, has_trace(session));
    for (const ViewKind& kind : view_kinds())
        on.actions.add({"Show " + kind.title, "", 0, [&views, &kind] { views.show(kind); }});
    add_rankings(on.actions, session, views);
    menu.add(
        "Open a view…", ImGuiKey_V, [&picker = on.picker] { picker.open(); }, {}, true);
    const auto open_further = [&views](const ViewKind& kind) {
        views.dismiss_start();
        views.open_after_restoring(kind);
    };
    for (const ViewKind& kind : view_kinds())
        on.actions.add({"New view: " + kind.title, "", 0, [open_further, &kind] { open_further(kind); }});
}

namespace {

void offer_commands(std::vector<Action>& actions, const OpenView& of, OpenViews& views) {
    const std::string title = of.title();
    for (const std::string& command : of.view->commands())
        actions.push_back({fmt::format("{}: {}", title.substr(0, title.find("##")), command), "View", 0,
                           [&views, id = of.id(), command] { views.run_command(id, command); }});
}

}  // namespace

void add_command_palette_actions(const ActionTargets& on) {
    on.actions.add_for_search = [&session = on.session](const std::string& search, std::vector<Action>& before,
                                                        std::vector<Action>& behind) {
        offer_place(search, before, session);
        offer_runs_alone(search, before, session);
        offer_texts(search, behind, session);
    };
    on.actions.add_to_palette = [&session = on.session, &views = on.views, &notices = on.notices,
                                 &settings = on.settings, &opener = on.opener,
                                 &layouts = on.layouts](std::vector<Action>& extra) {
        for (const auto& name : layouts.names()) {
            extra.push_back(make_apply_layout_action(layouts, name));
            extra.push_back({fmt::format("Remove the layout {}…", name), "Layout", 0,
                             [&layouts, name] { layouts.ask_to_remove(name); }});
        }
        offer_runs(extra, session);
        for (const auto& open : views.all()) {
            open->view->add_to_palette(extra, notices.function());
            offer_commands(extra, *open, views);
        }
        for (const auto& path : settings.recent_traces)
            extra.push_back({"Open " + path, "Recent", 0, [&opener, path] { opener.open_trace(path); }});
    };
}

}  // namespace kvscope::gui
