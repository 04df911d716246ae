#include "app/gui/app.h"

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_internal.h>
#include <implot.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analysis/token_report.h"
#include "app/gui/crash_log.h"
#include "app/gui/engine_session.h"
#include "app/gui/export_dialog.h"
#include "app/gui/file_dialog.h"
#include "app/gui/layouts.h"
#include "app/gui/prompt_text.h"
#include "app/gui/selection_text.h"
#include "app/gui/session_state.h"
#include "app/gui/workspace.h"
#include "app/program/version.h"

namespace kvscope::gui {
namespace {

constexpr size_t most_undo = 100;
constexpr double notice_seconds = 6;

nlohmann::json json_of(const Cursor& cursor) {
    return {cursor.run.document, cursor.run.prompt,  cursor.run.run,    cursor.layer, cursor.kv_head,
            cursor.query_head,   cursor.first_token, cursor.last_token, cursor.step};
}

Cursor cursor_of(const nlohmann::json& json) {
    return {
        {json.at(0), json.at(1), json.at(2)}, json.at(3), json.at(4), json.at(5), json.at(6), json.at(7), json.at(8)};
}

}  // namespace

std::string OpenView::id() const { return fmt::format("{}-{}", kind->name, number); }

std::string OpenView::title() const {
    return number == 1 ? fmt::format("{}###{}", kind->title, id())
                       : fmt::format("{} {}###{}", kind->title, number, id());
}

App::App(Window& window, AppOptions options)
    : window_(window),
      options_(std::move(options)),
      settings_(options_.remember ? load_settings(settings_file()) : Settings{}),
      tasks_([] { Window::wake(); }),
      session_(tasks_),
      files_(std::make_unique<FileDialog>()) {
#ifdef KVSCOPE_WITH_ENGINE
    engine_ = make_engine_session(
        session_, [this](const std::string& text, bool is_error) { notice(text, is_error); }, [] { Window::wake(); });
#endif
    apply_style();
    add_actions();
    session_.mark = options_.mark;
    if (!options_.view.empty()) {
        apply_layout("explore");  // whose place the one view takes
    } else if (!options_.layout.empty()) {
        apply_layout(options_.layout);
    } else if (!settings_.layout.is_null()) {
        restore_layout(settings_.layout);
    }
    if (views_.empty() && wanted_layout_.empty()) apply_layout("explore");
    open_files(options_.traces);
    if (!options_.select.empty()) session_.selection.set(parse_selection(session_, options_.select));
    if (options_.run_demo && engine_) engine_->run_demo();
    remember_undo();
}

App::~App() = default;

void App::apply_style() {
    const float scale = settings_.ui_scale > 0 ? settings_.ui_scale : window_.content_scale();
    theme_ = apply_theme(settings_.light ? Brightness::light : Brightness::dark, scale);
}

void App::set_light(bool light) {
    settings_.light = light;
    apply_style();
}

void App::set_scale(float scale) {
    settings_.ui_scale = scale <= 0 ? 0 : std::clamp(scale, 0.5f, 4.0f);
    apply_style();
}

void App::notice(const std::string& text, bool is_error) {
    is_error ? spdlog::error("{}", text) : spdlog::info("{}", text);
    notices_.push_back(text);
    shown_notices_.push_back({text, is_error, ImGui::GetTime() + (is_error ? 2 : 1) * notice_seconds});
    window_.draw_again();
}

void App::open_trace(const std::filesystem::path& path) {
    try {
        Document& document = session_.open(path);
        load_annotations(document);
        settings_.remember_trace(path);
        spdlog::info("{} opened: {} prompts", document.path().string(), document.reader()->n_prompts());
        window_.set_title(fmt::format("{} – kvscope", document.name()));
    } catch (const std::exception& error) {
        notice(error.what(), true);
    }
}

void App::open_files(const std::vector<std::filesystem::path>& paths) {
    for (const auto& path : paths) {
        std::error_code error;
        if (path.extension() == ".kvscope") {
            open_workspace(path);
            continue;
        }
        const bool is_model = path.extension() == ".gguf" || std::filesystem::exists(path / "config.json", error);
        if (!is_model) {
            open_trace(path);
        } else {
            open_model(path);
        }
    }
}

void App::open_model(const std::filesystem::path& path) {
    if (!engine_) {
        notice(path.string() + " is a model, and this build has no engine to run it; open a trace instead", true);
        return;
    }
    engine_->load_model(path);
    settings_.remember_model(path);
}

void App::save_workspace(const std::filesystem::path& path) {
    std::vector<std::pair<std::filesystem::path, std::string>> files;
    std::vector<std::filesystem::path> names;
    std::set<std::string> taken;
    for (const auto& document : session_.documents()) {
        std::string name = document->name();
        while (!taken.insert(name).second) name = "another-" + name;
        names.emplace_back(name);
        if (std::filesystem::is_directory(document->path()))
            throw WorkspaceError(document->name() + " is not complete yet: a workspace carries finished traces");
        files.emplace_back(document->path(), name);
        const auto notes = annotations_path(document->path());
        if (std::filesystem::exists(notes)) files.emplace_back(notes, annotations_path(name).string());
    }
    write_workspace(path, {{"session", session_state(session_, names)}, {"layout", layout_state()}}, files);
}

void App::open_workspace(const std::filesystem::path& path) {
    try {
        const auto folder = state_folder() / "workspaces" / path.stem();
        const auto state = read_workspace(path, folder);
        for (const auto& problem : restore_session(session_, state.value("session", nlohmann::json::object()), folder))
            notice(problem, true);
        for (const auto& document : session_.documents()) load_annotations(*document);
        restore_layout(state.value("layout", nlohmann::json()));
        notice(fmt::format("{}: its traces are in {}", path.filename().string(), folder.string()));
    } catch (const std::exception& error) {
        notice(error.what(), true);
    }
}

const std::vector<std::string>& App::layout_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const Layout& layout : layouts()) all.push_back(layout.name);
        return all;
    }();
    return names;
}

void App::apply_layout(const std::string& name) { wanted_layout_ = name; }

OpenView& App::open_view(const ViewKind& kind) {
    int number = 1;
    const auto is_taken = [&](int n) {
        return std::any_of(views_.begin(), views_.end(),
                           [&](const auto& view) { return view->kind == &kind && view->number == n; });
    };
    while (is_taken(number)) ++number;
    auto& opened = *views_.emplace_back(std::make_unique<OpenView>());
    opened.kind = &kind;
    opened.number = number;
    opened.view = kind.create();
    opened.focus = true;
    // A further view of a kind opens as a tab beside the first.
    for (const auto& other : views_) {
        if (other.get() == &opened || (number > 1 && other->kind != &kind) || other->kind->dock != kind.dock) continue;
        if (const ImGuiWindow* beside = ImGui::FindWindowByName(other->title().c_str()); beside && beside->DockId) {
            ImGui::DockBuilderDockWindow(opened.title().c_str(), beside->DockId);
            break;
        }
    }
    return opened;
}

OpenView* App::focused_view() const {
    for (const auto& view : views_) {
        if (view->id() == focused_) return view.get();
    }
    return nullptr;
}

nlohmann::json App::layout_state() const {
    nlohmann::json views = nlohmann::json::array();
    for (const auto& open : views_) {
        nlohmann::json state = nlohmann::json::object();
        open->view->save(state);
        views.push_back({{"kind", open->kind->name}, {"number", open->number}, {"state", state}});
    }
    return {{"views", views}, {"windows", ImGui::SaveIniSettingsToMemory()}};
}

void App::restore_layout(const nlohmann::json& state) {
    if (!state.is_object() || !state.contains("views") || !state["views"].is_array()) return;
    views_.clear();
    for (const auto& saved : state["views"]) {
        if (!saved.is_object()) continue;
        const ViewKind* kind = find_view_kind(saved.value("kind", std::string()));
        if (!kind) continue;
        auto& opened = *views_.emplace_back(std::make_unique<OpenView>());
        opened.kind = kind;
        opened.number = saved.value("number", 1);
        opened.view = kind->create();
        try {
            opened.view->load(saved.value("state", nlohmann::json::object()));
        } catch (const nlohmann::json::exception&) {
            // What cannot be understood stays at its default.
        }
    }
    const std::string windows = state.value("windows", std::string());
    ImGui::LoadIniSettingsFromMemory(windows.data(), windows.size());
    wanted_layout_.clear();
}

void App::build_layout(unsigned dock_space) {
    const Layout* layout = find_layout(wanted_layout_);
    wanted_layout_.clear();
    const Layout alone{"", "", {}, {{options_.view, "all"}}};
    if (!options_.view.empty()) layout = &alone;
    if (!layout) return;
    views_.clear();
    ImGui::DockBuilderRemoveNode(dock_space);
    ImGui::DockBuilderAddNode(dock_space, ImGuiDockNodeFlags_DockSpace);
    ImGui::DockBuilderSetNodeSize(dock_space, ImGui::GetMainViewport()->WorkSize);
    std::map<std::string, ImGuiID> places{{"all", dock_space}};
    for (const Cut& cut : layout->cuts) {
        ImGuiID rest = 0;
        places[cut.to] = ImGui::DockBuilderSplitNode(places.at(cut.from), cut.side, cut.share, nullptr, &rest);
        places[cut.from] = rest;
    }
    std::set<std::string> filled;
    for (const Placed& placed : layout->views) {
        const ViewKind* kind = find_view_kind(placed.kind);
        if (!kind) continue;  // a build without the engine lacks some
        auto& opened = *views_.emplace_back(std::make_unique<OpenView>());
        opened.kind = kind;
        opened.view = kind->create();
        opened.focus = filled.insert(placed.place).second;
        ImGui::DockBuilderDockWindow(opened.title().c_str(), places.at(placed.place));
    }
    ImGui::DockBuilderFinish(dock_space);
    for (const auto& open : views_) {
        const bool is_in_middle = std::any_of(layout->views.begin(), layout->views.end(), [&](const Placed& placed) {
            return placed.place == "all" && placed.kind == open->kind->name;
        });
        if (!is_in_middle) continue;
        focus_in_the_end_ = open->title();
        break;
    }
}

// ---- undo ----------------------------------------------------------------------------------------------------------

void App::remember_undo() {
    nlohmann::json now = {{"cursor", json_of(session_.cursor())}, {"views", nlohmann::json::array()}};
    for (const auto& open : views_) now["views"].push_back(open->id());
    if (!undo_.empty() && undo_.back()["cursor"] == now["cursor"] && undo_.back()["views"] == now["views"]) return;
    now["layout"] = layout_state();
    undo_.push_back(std::move(now));
    if (undo_.size() > most_undo) undo_.erase(undo_.begin());
    redo_.clear();
}

void App::go_to_state(const nlohmann::json& state) {
    nlohmann::json views = nlohmann::json::array();
    for (const auto& open : views_) views.push_back(open->id());
    if (views != state["views"]) restore_layout(state["layout"]);
    const Cursor cursor = cursor_of(state["cursor"]);
    if (!cursor.run.valid() || session_.exists(cursor.run)) session_.selection.set(cursor);
}

void App::undo() {
    if (undo_.size() < 2) return;
    redo_.push_back(undo_.back());
    undo_.pop_back();
    go_to_state(undo_.back());
}

void App::redo() {
    if (redo_.empty()) return;
    undo_.push_back(redo_.back());
    redo_.pop_back();
    go_to_state(undo_.back());
}

// ---- drawing -------------------------------------------------------------------------------------------------------

bool App::frame() {
    if (engine_) engine_->update();
    actions_.handle_keys(window_.take_chords());
    draw_menu_bar();
    draw_status_bar();
    const ImGuiID dock_space =
        ImGui::DockSpaceOverViewport(ImGui::GetID("dock space"), nullptr, ImGuiDockNodeFlags_PassthruCentralNode);
    if (!wanted_layout_.empty()) build_layout(dock_space);
    if (session_.documents().empty() && !(engine_ && engine_->status().busy()) && !start_dismissed_)
        draw_start();
    else
        draw_views();
    actions_.draw_palette();
    files_->draw();
    draw_help();
    draw_about();
    draw_notices();
    save_changed_annotations();
    if (!ImGui::IsAnyMouseDown()) remember_undo();
    session_.end_frame();
    if (tasks_.n_pending() > 0) window_.draw_again();
    return !quit_;
}

/// Beside the trace, at once: a window may end in other ways than by being closed.
void App::save_changed_annotations() {
    for (const auto& document : session_.documents()) {
        if (!std::exchange(document->annotations_changed, false)) continue;
        try {
            save_annotations(*document);
        } catch (const std::exception& error) {
            notice(error.what(), true);
        }
    }
}

bool App::may_close() {
    if (engine_ && engine_->status().busy()) engine_->cancel();  // finished runs are on disk
    save_changed_annotations();
    if (options_.remember) {
        if (options_.view.empty()) settings_.layout = layout_state();
        settings_.width = static_cast<int>(ImGui::GetMainViewport()->Size.x);
        settings_.height = static_cast<int>(ImGui::GetMainViewport()->Size.y);
        if (!save_settings(settings_, settings_file()))
            spdlog::warn("{} cannot be written: the layout is not remembered", settings_file().string());
    }
    return true;
}

void App::draw_menu_bar() {
    if (!ImGui::BeginMainMenuBar()) return;
    for (const char* menu : {"File", "Edit", "Run", "View", "Layout", "Help"}) {
        if (!ImGui::BeginMenu(menu)) continue;
        actions_.draw_menu(menu);
        if (std::string_view(menu) == "File" && !settings_.recent_traces.empty() && ImGui::BeginMenu("Recent traces")) {
            const auto recent = settings_.recent_traces;
            for (const auto& path : recent) {
                if (ImGui::MenuItem(path.c_str())) open_trace(path);
            }
            ImGui::EndMenu();
        }
        ImGui::EndMenu();
    }
    const char* hint = "Ctrl+K  commands";
    ImGui::SetCursorPosX(ImGui::GetWindowWidth() - ImGui::CalcTextSize(hint).x - 3 * ImGui::GetStyle().ItemSpacing.x);
    ImGui::PushStyleColor(ImGuiCol_Text, theme_.ink_quiet);
    if (ImGui::MenuItem(hint)) actions_.open_palette();
    ImGui::PopStyleColor();
    ImGui::EndMainMenuBar();
}

void App::draw_status_bar() {
    const ImGuiWindowFlags flags =
        ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_MenuBar;
    ImGui::PushStyleColor(ImGuiCol_MenuBarBg, theme_.ground);
    if (ImGui::BeginViewportSideBar("##status", nullptr, ImGuiDir_Down, ImGui::GetFrameHeight(), flags) &&
        ImGui::BeginMenuBar()) {
        if (engine_) {
            const EngineStatus status = engine_->status();
            if (status.busy()) {
                const std::string left =
                    status.seconds_left >= 0 ? fmt::format("  {:.0f} s left", status.seconds_left) : "";
                ImGui::ProgressBar(static_cast<float>(status.share), {12 * ImGui::GetFontSize(), 0},
                                   fmt::format("{}{}", status.phase, left).c_str());
                ImGui::TextUnformatted(status.what.c_str());
                if (ImGui::SmallButton("Cancel")) engine_->cancel();
            } else if (status.model.empty()) {
                ImGui::TextDisabled("no model loaded");
            } else if (const Document* focus = session_.focus();
                       !focus || !focus->reader()->has_model() || focus->reader()->model().name != status.model) {
                ImGui::TextDisabled("%s", status.model.c_str());  // the trace's own is named beside its shape
            }
        }
        if (const Document* focus = session_.focus()) {
            const auto& reader = *focus->reader();
            if (reader.has_model() && reader.n_prompts() > focus->prompt) {
                const auto& model = reader.model();
                ImGui::TextDisabled(
                    "%s", fmt::format("{} · {} · {} layers · {} KV heads · {} tokens{}", model.name, model.dtype,
                                      model.n_layers, model.n_kv_heads, reader.prompt(focus->prompt).visible_tokens(),
                                      reader.complete() ? "" : " · incomplete trace")
                              .c_str());
            }
        }
        draw_mark_answer();
        if (tasks_.n_pending() > 0) ImGui::TextDisabled("computing");
        const std::string rate = fmt::format("{:.0f} fps", ImGui::GetIO().Framerate);
        ImGui::SetCursorPosX(ImGui::GetWindowWidth() - ImGui::CalcTextSize(rate.c_str()).x - 16);
        ImGui::TextDisabled("%s", rate.c_str());
        ImGui::EndMenuBar();
    }
    ImGui::End();
    ImGui::PopStyleColor();
}

/// Was the marked text kept, and where? One line for the selected run; a click goes to the next place of the text.
void App::draw_mark_answer() {
    const Document* document = session_.focus();
    if (session_.mark.empty() || !document || document->prompt >= document->reader()->n_prompts()) return;
    const auto places = marked_spans(session_, *document);
    if (places.empty()) {
        ImGui::TextDisabled("“%s” is not in this prompt", session_.mark.c_str());
        return;
    }
    const Cursor& selected = session_.cursor();
    const auto here = std::find(places.begin(), places.end(), std::pair(selected.first_token, selected.last_token));
    const size_t at = here == places.end() ? 0 : static_cast<size_t>(here - places.begin());
    const auto [first, last] = places[at];
    std::string line = fmt::format("“{}”", session_.mark);
    if (places.size() > 1) line += fmt::format(" {} of {}", at + 1, places.size());
    if (session_.exists(selected.run)) {
        using Reports = std::vector<analysis::SpanReport>;
        const auto answer = tasks_.ask<Reports>(
            "mark answer", fmt::format("{} {} {} {}", session_.stamp(selected.run), selected.run.prompt, first, last),
            [reader = document->reader(), index = document->prompt, from = first, to = last] {
                return analysis::span_report(*reader, index, from, to);
            });
        for (const auto& report : answer.value ? *answer.value : Reports{}) {
            if (report.run == selected.run.run) line += " · " + report.sentence;
        }
    }
    ImGui::PushStyleColor(ImGuiCol_Text, theme_.mark);
    const bool goes_on = ImGui::MenuItem((line + "###marked text").c_str());
    ImGui::PopStyleColor();
    ImGui::SetItemTooltip("the marked text: was it kept, and where? Click to select its places in turn");
    if (!goes_on) return;
    const auto& next = places[here == places.end() ? 0 : (at + 1) % places.size()];
    Cursor cursor = selected;
    std::tie(cursor.first_token, cursor.last_token) = next;
    session_.selection.set(cursor);
}

void App::draw_views() {
    Desk desk{*files_,
              [this](const std::string& text, bool is_error) { notice(text, is_error); },
              [this](const std::string& name, const nlohmann::json& state) {
                  if (const ViewKind* kind = find_view_kind(name)) open_view(*kind).view->load(state);
              },
              [this](const View& view) { copy_as_seen(view); },
              [this](const std::filesystem::path& path) { open_model(path); },
              settings_.recent_models};
    Context context{session_, theme_, window_.fonts, actions_, desk, engine_.get(), ImGui::GetStyle().FontScaleMain};
    for (size_t i = 0; i < views_.size(); ++i) {
        OpenView& open = *views_[i];
        if (open.focus) ImGui::SetNextWindowFocus();
        open.focus = false;
        const float em = ImGui::GetFontSize();
        ImGui::SetNextWindowSize({40 * em, 24 * em}, ImGuiCond_FirstUseEver);
        // The frame is cleared in the views' own colour; filling it once more takes a software renderer 10 ms.
        const ImGuiWindowFlags ground = open.is_docked ? ImGuiWindowFlags_NoBackground : 0;
        if (ImGui::Begin(open.title().c_str(), &open.open, ImGuiWindowFlags_NoCollapse | ground)) {
            // A click into a plot does not move the focus by itself.
            const bool is_clicked =
                ImGui::IsMouseClicked(ImGuiMouseButton_Left) || ImGui::IsMouseClicked(ImGuiMouseButton_Right);
            if (is_clicked &&
                ImGui::IsWindowHovered(ImGuiHoveredFlags_RootAndChildWindows |
                                       ImGuiHoveredFlags_AllowWhenBlockedByActiveItem) &&
                !ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows))
                ImGui::SetWindowFocus();
            if (ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows)) focused_ = open.id();
            try {
                open.view->draw(context);
            } catch (const analysis::NothingToShow& nothing) {
                draw_nothing(context, nothing.what());
            } catch (const std::exception& error) {
                draw_error(context, error.what());
            }
        }
        open.is_docked = ImGui::IsWindowDocked();
        if (picture_of_ == open.view.get()) take_picture();
        ImGui::End();
    }
    std::erase_if(views_, [](const auto& open) { return !open->open; });
    if (!focus_in_the_end_.empty()) ImGui::SetWindowFocus(focus_in_the_end_.c_str());
    focus_in_the_end_.clear();
}

void App::draw_start() {
    struct Card {
        const char* title;
        const char* text;
        std::function<void()> run;
    };
    std::vector<Card> cards;
    if (engine_) {
        cards.push_back({"Run the demo",
                         "Every policy on a prompt of about 2,000 tokens, on the model that came with kvscope.",
                         [this] { engine_->run_demo(); }});
    }
    cards.push_back({"Open a trace",
                     "What kvscope run, the window or a script of yours has recorded. Files can be dropped, too.",
                     [this] { ask_for_trace(); }});
    if (engine_) {
        cards.push_back({"Choose a model",
                         "A GGUF file or a Hugging Face directory; then write a prompt and tick policies.",
                         [this] { ask_for_model(); }});
    }
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    const float em = ImGui::GetFontSize();
    const ImVec2 size{17 * em, 12 * em};
    const float gap = 1.5f * em;
    const float n = static_cast<float>(cards.size());
    ImGui::SetNextWindowPos(viewport->GetCenter(), ImGuiCond_Always, {0.5f, 0.5f});
    ImGui::SetNextWindowSize({n * (size.x + gap) + 2 * em, size.y + 10 * em});
    ImGui::Begin("Start", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoDocking |
                     ImGuiWindowFlags_NoBackground);
    ImGui::PushFont(window_.fonts.bold, 1.7f * ImGui::GetStyle().FontSizeBase);
    ImGui::TextUnformatted("kvscope");
    ImGui::PopFont();
    ImGui::TextDisabled("What KV-cache compression does inside a language model");
    ImGui::Dummy({0, em});
    for (size_t i = 0; i < cards.size(); ++i) {
        if (i > 0) ImGui::SameLine(0, gap);
        ImGui::PushID(static_cast<int>(i));
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const bool chosen = ImGui::Button(fmt::format("##{}", cards[i].title).c_str(), size);
        ImDrawList* list = ImGui::GetWindowDrawList();
        list->AddText(window_.fonts.bold, 1.2f * em, {at.x + em, at.y + em}, packed(theme_.ink), cards[i].title);
        list->AddText(window_.fonts.text, em, {at.x + em, at.y + 3.2f * em}, packed(theme_.ink_quiet), cards[i].text,
                      nullptr, size.x - 2 * em);
        ImGui::PopID();
        if (chosen) cards[i].run();
    }
    if (!settings_.recent_traces.empty()) {
        ImGui::Dummy({0, 0.5f * em});
        ImGui::TextDisabled("Recent");
        const auto recent = settings_.recent_traces;
        for (size_t i = 0; i < std::min<size_t>(recent.size(), 3); ++i) {
            if (ImGui::TextLink(recent[i].c_str())) open_trace(recent[i]);
        }
    }
    ImGui::End();
}

void App::draw_notices() {
    const double now = ImGui::GetTime();
    std::erase_if(shown_notices_, [&](const Notice& notice) { return notice.until < now; });
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    const float em = ImGui::GetFontSize();
    float bottom = viewport->WorkPos.y + viewport->WorkSize.y - em;
    for (size_t i = 0; i < shown_notices_.size(); ++i) {
        Notice& shown = shown_notices_[shown_notices_.size() - 1 - i];
        ImGui::SetNextWindowPos({viewport->WorkPos.x + viewport->WorkSize.x - em, bottom}, ImGuiCond_Always, {1, 1});
        ImGui::SetNextWindowSizeConstraints({12 * em, 0}, {36 * em, FLT_MAX});
        ImGui::PushStyleColor(ImGuiCol_Border, shown.is_error ? theme_.error : theme_.accent);
        ImGui::PushStyleColor(ImGuiCol_WindowBg, ImGui::GetStyleColorVec4(ImGuiCol_PopupBg));
        ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
        ImGui::Begin(fmt::format("##notice {}", i).c_str(), nullptr,
                     ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoDocking |
                         ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoFocusOnAppearing |
                         ImGuiWindowFlags_NoNav);
        ImGui::PushTextWrapPos(34 * em);
        ImGui::TextUnformatted(shown.text.c_str());
        ImGui::PopTextWrapPos();
        if (ImGui::IsWindowHovered() && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) shown.until = 0;
        bottom -= ImGui::GetWindowHeight() + 4;
        ImGui::End();
        ImGui::PopStyleVar();
        ImGui::PopStyleColor(2);
    }
    if (!shown_notices_.empty()) window_.draw_again();
}

void App::draw_help() {
    if (help_wanted_) ImGui::OpenPopup("Mouse and keys");
    help_wanted_ = false;
    ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
    if (!ImGui::BeginPopup("Mouse and keys")) return;
    const auto table = [&](const char* name, const std::vector<std::pair<std::string, std::string>>& lines) {
        ImGui::SeparatorText(name);
        if (!ImGui::BeginTable(name, 2)) return;
        for (const auto& [does, what] : lines) {
            ImGui::TableNextColumn();
            ImGui::TextUnformatted(does.c_str());
            ImGui::TableNextColumn();
            ImGui::TextDisabled("%s", what.c_str());
        }
        ImGui::EndTable();
    };
    if (const OpenView* view = focused_view()) {
        ImGui::TextDisabled("%s", view->kind->summary.c_str());
        if (const auto lines = view->view->help(); !lines.empty()) table(view->kind->title.c_str(), lines);
    }
    std::vector<std::pair<std::string, std::string>> keys;
    for (const Action& action : actions_.all()) {
        if (const std::string key = key_text(action); !key.empty()) keys.emplace_back(key, action.name);
    }
    table("Everywhere", keys);
    ImGui::EndPopup();
}

void App::draw_about() {
    if (about_wanted_) ImGui::OpenPopup("About kvscope");
    about_wanted_ = false;
    ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
    if (!ImGui::BeginPopup("About kvscope")) return;
    ImGui::PushFont(window_.fonts.bold, 0);
    ImGui::Text("kvscope %s", program::version());
    ImGui::PopFont();
    ImGui::TextUnformatted("Shows what KV-cache compression does inside a language model.");
    ImGui::TextDisabled("Dear ImGui %s, ImPlot %s, %s", IMGUI_VERSION, IMPLOT_VERSION, window_.renderer().c_str());
    ImGui::TextDisabled("Apache License 2.0");
    ImGui::EndPopup();
}

}  // namespace kvscope::gui
