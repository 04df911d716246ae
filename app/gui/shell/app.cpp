#include "app/gui/shell/app.h"

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_internal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <utility>

#include "app/gui/session/annotations.h"
#include "app/gui/session/engine_session.h"
#include "app/gui/session/run_form.h"
#include "app/gui/session/saved_what_ifs.h"
#include "app/gui/session/selection_text.h"
#include "app/gui/session/session_state.h"
#include "app/gui/session/settings.h"
#include "app/gui/session/stored_json.h"
#include "app/gui/session/workspace.h"
#include "app/gui/shell/crash_log.h"
#include "app/gui/shell/drawing_stacks.h"
#include "app/gui/shell/layouts.h"
#include "app/gui/shell/no_views.h"
#include "app/gui/shell/start_cards.h"
#include "app/gui/shell/status_bar.h"
#include "app/gui/view/file_dialog.h"
#include "app/gui/view/last_click.h"

namespace kvscope::gui {
namespace {

constexpr int frames_after_input = 4;  // until what it does is seen in the window's state
constexpr int frames_until_dropped = 2;
constexpr double seconds_to_save = 3;

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
        session_, [this](const std::string& text, bool is_error) { notice(text, is_error); }, [] { Window::wake(); },
        [this] {
            return std::vector<std::filesystem::path>(settings_.recent_models.begin(), settings_.recent_models.end());
        },
        options_.n_threads);
#endif
    apply_style();
    add_actions();
    if (!settings_.problem.empty()) notice(settings_.problem, true);
    session_.mark = options_.mark;
    session_.wanted_template = options_.use_template;
    if (!options_.view.empty()) {
        apply_layout(view_alone);
    } else if (!options_.layout.empty()) {
        apply_layout(options_.layout);
    } else if (!settings_.layout.is_null()) {
        restore_layout(settings_.layout);
    }
    if (views_.empty() && wanted_layout_.empty()) apply_layout("explore");
    open_files(options_.traces);
    if (!options_.select.empty()) session_.selection.set(parse_selection(session_, options_.select));
    if (options_.run_demo && engine_) engine_->run_demo();
    actions_.on_failure = [this](const std::string& name, const std::string& message) {
        notice(name + ": " + message, true);
    };
    actions_.before_start = [this](const std::string& name) {
        note_last_action(name);
        refresh_undo();
    };
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
    notices_.add(text, is_error);
    window_.draw_again();
}

void App::open_trace(const std::filesystem::path& path) {
    try {
        const size_t n_open = session_.documents().size();
        Document& document = session_.open(path);
        if (session_.documents().size() > n_open) remember_view(document);
        settings_.remember_trace(path);
        const int n = document.reader()->n_prompts();
        spdlog::info("{} opened: {} {}", document.path().string(), n, n == 1 ? "prompt" : "prompts");
        window_.set_title(fmt::format("{} – kvscope", document.name()));
        const trace::Reader& reader = *document.file();
        scores_wanted_ = reader.n_prompts() == 0 && !reader.result_tasks().empty() && options_.view.empty();
    } catch (const std::exception& error) {
        notice(error.what(), true);
    }
}

void App::show_scores() {
    if (!std::exchange(scores_wanted_, false)) return;
    show_view(*find_view_kind("task_scores"));
}

void App::open_files(const std::vector<std::filesystem::path>& paths) {
    for (const auto& path : paths) {
        std::error_code error;
        if (path.extension() == ".kvscope") {
            open_workspace(path);
            continue;
        }
        if (is_text_file(path) && take_text(path)) continue;
        const bool is_model = path.extension() == ".gguf" || std::filesystem::exists(path / "config.json", error);
        if (!is_model) {
            open_trace(path);
        } else {
            open_model(path);
        }
    }
}

bool App::take_text(const std::filesystem::path& path) {
    const ViewKind* kind = engine_ ? find_view_kind("run") : nullptr;
    if (!kind) return false;
    if (!wanted_layout_.empty()) {
        wanted_text_ = path;
        return true;
    }
    show_view(*kind);
    OpenView* open = nullptr;
    for (const auto& view : views_) {
        if (view->kind == kind && (!open || view.get() == focused_view())) open = view.get();
    }
    return open && open->view->take_file(path);
}

void App::open_model(const std::filesystem::path& path) {
    if (!engine_) {
        notice(path.string() + " is a model, and this build has no engine to run it; open a trace instead", true);
        return;
    }
    engine_->load_model(path);
    wanted_model_ = path;
}

void App::save_workspace(const std::filesystem::path& path) {
    save_changed_annotations();
    std::vector<std::pair<std::filesystem::path, std::string>> files;
    std::vector<std::filesystem::path> names;
    std::set<std::string> taken;
    for (const auto& document : session_.documents()) {
        std::string name = document->name();
        while (!taken.insert(name).second) name = "another-" + name;
        names.emplace_back(name);
        if (!document->file()->complete())
            throw WorkspaceError(document->name() + " is not complete yet: a workspace carries finished traces");
        files.emplace_back(document->path(), name);
        if (document->annotations_changed)
            throw WorkspaceError("the notes on " + document->name() + " could not be saved, and would not be in it");
        // Named as beside the trace, which has another name in there.
        const size_t n = document->path().filename().string().size();
        for (const auto& notes : annotation_files(document->path()))
            files.emplace_back(notes, name + notes.filename().string().substr(n));
    }
    nlohmann::json state = unknown_in(workspace_, {"session", "layout"});
    state["session"] =
        with_unknown(session_state(session_, names), workspace_.value("session", nlohmann::json::object()));
    state["layout"] = layout_state();
    write_workspace(path, state, files);
    workspace_ = std::move(state);
}

void App::open_workspace(const std::filesystem::path& path) {
    try {
        const auto folder = state_folder() / "workspaces" / workspace_folder_name(path);
        const auto state = read_workspace(path, folder);
        for (const auto& problem : restore_session(session_, state.value("session", nlohmann::json::object()), folder))
            notice(problem, true);
        for (const auto& document : session_.documents()) {
            remembered_[document->id()].in_file = load_view(document->path());
            remembered_[document->id()].last = view_state(session_, *document);
        }
        workspace_ = state;
        restore_layout(state.value("layout", nlohmann::json()));
        notice(fmt::format("{}: its traces are in {}", path.filename().string(), folder.string()));
    } catch (const std::exception& error) {
        notice(error.what(), true);
    }
}

void App::attempt(const char* part, const std::function<void()>& draw) {
    const DrawingStacks before;
    try {
        return draw();
    } catch (const std::exception& error) {
        before.restore();
        const std::string failure = fmt::format("{}: {}", part, error.what());
        if (told_failures_.insert(failure).second) notice(failure, true);
    }
}

void App::end_frame() {
    tasks_.deliver();
    // A task that ends wakes the window.
    if (const auto next = session_.end_frame()) window_.draw_within(next->count());
}

void App::unseen_frame() {
    try {
        if (engine_) engine_->update();
        end_frame();
    } catch (const std::exception& error) {
        spdlog::error("{}", error.what());
    }
}

bool App::frame() {
    attempt("the engine's results", [this] {
        if (engine_) engine_->update();
        restore_what_ifs(session_, [this](const std::string& text) { notice(text, false); });
    });
    if (!wanted_model_.empty() && engine_->status().model_path == wanted_model_)
        settings_.remember_model(std::exchange(wanted_model_, {}));
    frames_to_settle_ = std::max(frames_to_settle_ - 1, 0);
    if (!ImGui::GetIO().WantTextInput) frames_of_input_ = std::max(frames_of_input_ - 1, 0);
    if (has_input()) {
        frames_of_input_ = frames_after_input;
        save_at_ = ImGui::GetTime() + seconds_to_save;
    }
    if (const std::string click = describe_click(); !click.empty()) {
        note_last_action(click);
        refresh_undo();
    }
    attempt("a key", [this] { actions_.handle_keys(window_.take_chords()); });
    for (const auto& document : session_.documents()) {  // those that the engine has opened
        if (!remembered_.contains(document->id())) remember_view(*document);
    }
    attempt("the menus", [this] { draw_menu_bar(); });
    attempt("the status bar", [this] { draw_status_bar(session_, engine_.get(), theme_); });
    dock_space_ =
        ImGui::DockSpaceOverViewport(ImGui::GetID("dock space"), nullptr, ImGuiDockNodeFlags_PassthruCentralNode);
    if (!wanted_layout_.empty())
        build_layout(dock_space_);
    else
        show_scores();
    if (!wanted_text_.empty()) take_text(std::exchange(wanted_text_, {}));
    if (session_.documents().empty() && !(engine_ && engine_->status().busy()) && !start_dismissed_)
        draw_start();
    else if (views_.empty())
        draw_no_views(actions_, theme_);
    else
        draw_views();
    attempt("the command palette", [this] { actions_.draw_palette(); });
    attempt("the file dialog", [this] { files_->draw(); });
    help_.draw_keys(focused_view(), actions_);
    help_.draw_about(window_);
    if (const double seconds = notices_.draw(theme_); seconds >= 0) window_.draw_within(seconds);
    save_changed_annotations();
    // What is typed is one step, and what is dragged; a view that is dropped is in its place some frames later.
    const bool is_dragging = ImGui::IsAnyMouseDown();
    if (is_dragging || ImGui::IsMouseReleased(ImGuiMouseButton_Left))
        frames_to_drop_ = frames_until_dropped;
    else
        frames_to_drop_ = std::max(frames_to_drop_ - 1, 0);
    if (frames_to_drop_ > 0 && !is_dragging) window_.draw_again();
    if (frames_to_drop_ == 0 && !ImGui::GetIO().WantTextInput) remember_undo();
    if (save_at_ >= 0 && ImGui::GetTime() >= save_at_) save_changes();
    if (save_at_ >= 0) window_.draw_within(save_at_ - ImGui::GetTime());
    end_frame();
    return !quit_;
}

/// Beside the trace, at once: a window may end in other ways than by being closed. What cannot be saved is tried again,
/// and told once.
void App::save_changed_annotations() {
    std::string failed;
    for (const auto& document : session_.documents()) {
        if (document->annotations_changed && !annotations_wait_) {
            try {
                save_annotations(*document, remembered_[document->id()].in_file);
                document->annotations_changed = false;
            } catch (const std::exception& error) {
                failed = error.what();
                if (failed != annotations_failure_) notice(failed, true);
                annotations_failure_ = failed;
            }
        }
        for (const auto& text : std::exchange(document->annotations_notices, {})) notice(text, true);
    }
    annotations_wait_ = annotations_wait_ || !failed.empty();
    if (has_unsaved_annotations()) return;
    annotations_failure_.clear();
    annotations_wait_ = warned_of_loss_ = false;
}

void App::remember_view(Document& document) {
    RememberedView& view = remembered_[document.id()];
    view.in_file = load_view(document.path());
    if (!options_.remember) return;
    view.by_default = view_state(session_, document);
    restore_view(session_, document, view.in_file);
    view.last = view_state(session_, document);
}

void App::save_changed_views() {
    if (!options_.remember) return;
    for (const auto& document : session_.documents()) {
        if (!document->file()->complete()) continue;
        RememberedView& view = remembered_[document->id()];
        nlohmann::json now = view_state(session_, *document);
        if (now == view.last) continue;
        view.in_file = now == view.by_default ? nlohmann::json() : now;
        view.last = std::move(now);
        try {
            save_annotations(*document, view.in_file);
        } catch (const std::exception& error) {
            spdlog::warn("{}", error.what());
        }
    }
}

void App::save_changes() {
    save_at_ = -1;
    annotations_wait_ = false;
    save_changed_annotations();
    save_changed_views();
    if (!options_.remember) return;
    if (options_.view.empty() && wanted_layout_.empty()) settings_.layout = layout_state();
    settings_.width = static_cast<int>(ImGui::GetMainViewport()->Size.x);
    settings_.height = static_cast<int>(ImGui::GetMainViewport()->Size.y);
    if (settings_ == saved_settings_) return;
    try {
        for (const auto& text : save_settings(settings_, settings_file())) notice(text);
        settings_.problem.clear();
        saved_settings_ = settings_;
    } catch (const std::exception& error) {
        const std::string failure = fmt::format("the layout is not remembered: {}", error.what());
        if (std::exchange(settings_failure_, failure) != failure) spdlog::warn("{}", failure);
    }
}

bool App::has_input() {
    const ImGuiIO& io = ImGui::GetIO();
    if (io.InputQueueCharacters.Size > 0 || io.MouseWheel != 0 || io.MouseWheelH != 0) return true;
    for (int button = 0; button < ImGuiMouseButton_COUNT; ++button) {
        if (ImGui::IsMouseClicked(button) || ImGui::IsMouseReleased(button)) return true;
    }
    for (int key = ImGuiKey_Keyboard_BEGIN; key < ImGuiKey_Keyboard_END; ++key) {
        if (ImGui::IsKeyPressed(static_cast<ImGuiKey>(key))) return true;
    }
    return false;
}

bool App::may_close() {
    if (engine_ && engine_->status().busy()) engine_->cancel();  // finished runs are on disk
    return may_leave();
}

bool App::may_leave() {
    save_changes();
    if (!has_unsaved_annotations() || std::exchange(warned_of_loss_, true)) return true;
    notice(annotations_failure_ + ". Make that possible, or close again to leave without them", true);
    return false;
}

bool App::has_unsaved_annotations() const {
    return std::any_of(session_.documents().begin(), session_.documents().end(),
                       [](const auto& document) { return document->annotations_changed; });
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

void App::draw_views() {
    ViewHost host{*files_,
                  [this](const std::string& text, bool is_error) { notice(text, is_error); },
                  [this](const std::string& name, const nlohmann::json& state) {
                      if (const ViewKind* kind = find_view_kind(name)) set_view(open_view(*kind), state);
                  },
                  [this](const View& view) { copy_as_seen(view); },
                  [this](const std::filesystem::path& path) { open_model(path); },
                  settings_.recent_models};
    Context context{session_, theme_, window_.fonts, actions_, host, engine_.get(), ImGui::GetStyle().FontScaleMain};
    for (size_t i = 0; i < views_.size(); ++i) {
        OpenView& open = *views_[i];
        const bool wants_focus = std::exchange(open.focus, false);
        if (wants_focus) ImGui::SetNextWindowFocus();
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
            draw_view(open, context);
        }
        open.is_docked = ImGui::IsWindowDocked();
        // In its first frame a docked window has no tab yet that could come to the front.
        const ImGuiDockNode* node = ImGui::GetCurrentWindow()->DockNode;
        if (wants_focus && open.is_docked && (!node || !node->TabBar)) open.focus = true;
        if (picture_of_ == open.id()) take_picture();
        ImGui::End();
    }
    std::erase_if(views_, [](const auto& open) { return !open->open; });
    if (!focus_in_the_end_.empty()) ImGui::SetWindowFocus(focus_in_the_end_.c_str());
    const bool is_settled = std::none_of(views_.begin(), views_.end(), [](const auto& open) { return open->focus; });
    if (is_settled)
        focus_in_the_end_.clear();
    else
        window_.draw_again();
}

void App::draw_view(OpenView& open, Context& context) {
    if (open.failure && open.failure->shown != what_is_shown()) open.failure.reset();
    if (open.failure) return draw_failure(open);
    const DrawingStacks before;
    try {
        open.view->draw(context);
    } catch (const analysis::NothingToShow& nothing) {
        before.restore();
        draw_nothing(context, nothing.what());
    } catch (const std::exception& error) {
        before.restore();
        note_failure(open, error.what());
    } catch (...) {
        before.restore();
        note_failure(open, "for an unknown reason");
    }
}

void App::note_failure(OpenView& open, const std::string& message) {
    open.failure = {message, what_is_shown()};
    view_failures_.push_back(fmt::format("the view {} cannot be drawn: {}", open.kind->title, message));
    spdlog::error("{}", view_failures_.back());
    window_.draw_again();  // the message is in the next frame
}

void App::draw_failure(OpenView& open) {
    ImGui::PushStyleColor(ImGuiCol_Text, theme_.error);
    ImGui::TextWrapped("This view cannot be drawn: %s", open.failure->message.c_str());
    ImGui::PopStyleColor();
    if (ImGui::Button("Try again")) open.failure.reset();
    ImGui::SetItemTooltip("draws the view anew; so does selecting another run");
}

/// The selected run and how it is: what a view that failed may have stumbled over.
std::string App::what_is_shown() const {
    const RunKey run = session_.cursor().run;
    return fmt::format("{} {} {} {}", session_.documents().size(), run.prompt, run.run.number, session_.stamp(run));
}

void App::draw_start() {
    std::vector<StartCard> cards;
    if (engine_) {
        cards.push_back({"Run the demo",
                         "A dozen policies on a prompt of about 2,000 tokens, on the model that came with kvscope.",
                         "Run it", [this] { engine_->run_demo(); }});
    }
    cards.push_back({"Open a trace",
                     "What kvscope run, the window or a script of yours has recorded. Files can be dropped, too.",
                     "Browse… (Ctrl+O)", [this] { ask_for_trace(); }});
    if (engine_) {
        cards.push_back({"Choose a model",
                         "A GGUF file or a Hugging Face directory; then write a prompt and tick policies.", "Browse…",
                         [this] { ask_for_model(); }});
    }
    draw_start_cards(
        cards, settings_.recent_traces, [this](const std::string& path) { open_trace(path); }, theme_, window_.fonts);
}

}  // namespace kvscope::gui
