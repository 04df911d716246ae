#include "app/gui/shell/app.h"

#include <imgui.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <utility>

#include "app/gui/drawing/missing_fonts.h"
#include "app/gui/drawing/theme.h"
#include "app/gui/layout/layouts.h"
#include "app/gui/session/parse_selection.h"
#include "app/gui/session/saved_what_ifs.h"
#include "app/gui/shell/menu_actions.h"
#include "app/gui/shell/menu_file_dialogs.h"
#include "app/gui/shell/status_bar.h"
#include "app/gui/view/describe_click.h"
#include "app/gui/window/crash_log.h"

namespace kvscope::gui {

namespace {

bool has_input() {
    const ImGuiIO& io = ImGui::GetIO();
    if (io.InputQueueCharacters.Size > 0 || io.MouseWheel != 0 || io.MouseWheelH != 0) return true;
    for (int button = 0; button < ImGuiMouseButton_COUNT; ++button)
        if (ImGui::IsMouseClicked(button) || ImGui::IsMouseReleased(button)) return true;
    for (int key = ImGuiKey_Keyboard_BEGIN; key < ImGuiKey_Keyboard_END; ++key)
        if (ImGui::IsKeyPressed(static_cast<ImGuiKey>(key))) return true;
    return false;
}

struct Suggestion {
    std::string link;
    std::string where;  ///< menu path or key
    std::function<void()> take;
};

void start_of_menu(Actions& actions, const std::string& menu, const std::string& name) {
    const auto& all = actions.all();
    const auto found =
        std::ranges::find_if(all, [&](const Action& each) { return each.menu == menu && each.name == name; });
    if (found != all.end()) actions.start(*found);
}

void draw_hint_for_no_views(Actions& actions, const Theme& theme) {
    constexpr const char* title = "All views are closed.";
    const std::array<Suggestion, 4> suggestions{{
        {"Default layout", "Layout > Explore", [&] { start_of_menu(actions, "Layout", "Explore"); }},
        {"A single view", "View > Open a view…", [&] { start_of_menu(actions, "View", "Open a view…"); }},
        {"Last closed view", "Ctrl+Z", [&] { start_of_menu(actions, "Edit", "Undo"); }},
        {"Commands", "Ctrl+K", [&] { actions.open_palette(); }},
    }};
    const float em = ImGui::GetFontSize();
    ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Always, {0.5f, 0.5f});
    ImGui::Begin("No views", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoDocking |
                     ImGuiWindowFlags_NoBackground | ImGuiWindowFlags_AlwaysAutoResize);
    ImGui::PushStyleColor(ImGuiCol_Text, theme.ink_quiet);
    ImGui::TextUnformatted(title);
    ImGui::Dummy({0, 0.3f * em});
    for (const Suggestion& suggestion : suggestions) {
        if (ImGui::TextLink(suggestion.link.c_str())) suggestion.take();
        ImGui::SameLine(11 * em);
        ImGui::TextUnformatted(suggestion.where.c_str());
    }
    ImGui::PopStyleColor();
    ImGui::End();
}

}  // namespace

App::App(Window& window, AppOptions options)
    : window_(window),
      options_(std::move(options)),
      settings_(options_.remember),
      notices_(window),
      guard_(notices_),
      tasks_([] { Window::wake(); }),
      session_(tasks_),
      appearance_(window, settings_.values()),
      engine_(make_engine(options_)),
      views_(window, session_, notices_, options_.view),
      picture_(window, tasks_, notices_),
      undo_(session_, views_),
      sidecars_(session_, notices_, options_.remember),
      workspace_(session_, sidecars_, views_, notices_),
      autosave_(window, settings_, sidecars_, views_, notices_, options_.view.empty()),
      opener_({session_, engine_.get(), views_, sidecars_, workspace_, settings_, notices_}, options_.view.empty()),
      saved_layouts_(settings_.values(), views_, dialog_, notices_),
      recent_(settings_.values(), &tasks_) {
    add_actions();
    if (!settings().problem.empty()) notice(settings().problem, true);
    session_.wanted_template = options_.use_template;
    session_.wanted_special = options_.parse_special;
    session_.model_names = shared_names_ = settings().model_names;
    session_.csv_safe = settings().csv_safe;
    choose_first_layout();
    opener_.open(options_.traces, true);
    // The layout from the command line takes precedence over the layout of a workspace.
    apply_asked_layout();
    if (!options_.mark.empty()) session_.mark = options_.mark;
    if (!options_.select.empty()) session_.selection.set(parse_selection(session_, options_.select));
    if (options_.run_demo && engine_) engine_->run_demo();
}

App::~App() = default;

std::unique_ptr<EngineSession> App::make_engine([[maybe_unused]] const AppOptions& options) {
#ifdef KVSCOPE_WITH_ENGINE
    const auto known_models = [this] {
        const auto& recent = settings().recent_models;
        return std::vector<std::filesystem::path>(recent.begin(), recent.end());
    };
    return make_engine_session(
        session_, notices_.function(), [] { Window::wake(); }, known_models, options.n_threads, options.before_step);
#else
    return nullptr;
#endif
}

void App::choose_first_layout() {
    if (!options_.view.empty()) {
        views_.dismiss_start();
    } else if (!settings().layout.is_null()) {
        restore_layout(settings().layout);  // also if a layout is named, to keep text typed in views
    }
    apply_asked_layout();
    if (views().empty() && !views_.awaits_layout()) apply_layout("explore");
}

void App::apply_asked_layout() {
    if (!options_.saved_layout.is_null()) return restore_layout(options_.saved_layout, true);
    const std::string asked = options_.view.empty() ? options_.layout : view_alone;
    if (asked.empty()) return;
    apply_layout(asked);
    if (const Layout* layout = find_layout(asked)) session_.pair.alone = layout->of_pair;
}

void App::add_actions() {
    const ActionTargets on{
        actions_, session_, engine_.get(), settings_.values(), appearance_, views_,
        picker_,  picture_, undo_,         autosave_,          workspace_,  opener_,
        dialog_,  help_,    rename_,       saved_layouts_,     notices_,    [this] { quit_ = may_close(); }};
    add_file_actions(on);
    add_edit_actions(on);
    add_view_actions(on);
    add_layout_actions(on);
    add_help_actions(on);
    add_run_actions(on);
    add_command_palette_actions(on);
    actions_.on_failure = [this](const std::string& name, const std::string& message) {
        notice(name + ": " + message, true);
    };
    actions_.before_start = [this](const std::string& name) {
        note_last_action(name);
        undo_.complete_step();
    };
}

const std::vector<std::string>& App::layout_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const Layout& layout : layouts()) all.push_back(layout.name);
        return all;
    }();
    return names;
}

bool App::frame() {
    take_results();
    views_.begin_frame();
    take_input();
    for (const auto& path : sidecars_.take_in_new())  // traces that the engine opened
        settings_.values().remember_trace(path);
    if (!session_.documents().empty() && !std::exchange(had_traces_, true)) end_form_alone();
    if (session_.documents().empty()) had_traces_ = false;
    guard_.attempt("the menus",
                   [this] { draw_menu_bar(actions_, opener_, saved_layouts_, recent_, appearance_.theme()); });
    guard_.attempt("the status bar", [this] { draw_status_bar(session_, engine_.get(), appearance_.theme()); });
    const bool was_layout_built = views_.draw_dock_space();
    opener_.show_what_waits(was_layout_built);
    draw_middle();
    guard_.attempt("the command palette", [this] { actions_.draw_palette(); });
    guard_.attempt("the picker of views",
                   [this] { picker_.draw(actions_, views_, appearance_.theme(), window_.fonts); });
    guard_.attempt("the layout dialogs", [this] { saved_layouts_.draw(); });
    bool is_quit_drawn = false;
    guard_.attempt("the file dialog", [&] { is_quit_drawn = dialog_.draw([this] { draw_quit_question(); }); });
    guard_.attempt("the rename dialog", [this] { rename_.draw(session_); });
    help_.draw_keys(focused_view(), actions_);
    help_.draw_about(window_);
    if (!is_quit_drawn) draw_quit_question();
    for (const auto& text : take_missing_font_messages()) notice(text);
    notices_.draw(appearance_.theme());
    sidecars_.save_annotations();
    if (undo_.end_frame()) window_.draw_again();
    share_settings();
    autosave_.end_frame();
    end_frame();
    const Document* focus = session_.focus();
    window_.set_title(focus ? session_.name_of(*focus) + " – kvscope" : "kvscope");
    return !quit_;
}

void App::unseen_frame() {
    try {
        if (engine_) engine_->update();
        end_frame();
    } catch (const std::exception& error) {
        spdlog::error("{}", error.what());
    }
}

void App::share_settings() {
    settings_.values().csv_safe = session_.csv_safe;
    ModelNames& stored = settings_.values().model_names;
    for (const auto& [model, name] : session_.model_names) {
        const auto before = shared_names_.find(model);
        if (before == shared_names_.end() || before->second != name) stored[model] = name;
    }
    for (const auto& [model, name] : shared_names_)
        if (!session_.model_names.contains(model)) stored.erase(model);
    if (session_.model_names != stored) session_.model_names = stored;
    if (shared_names_ != stored) shared_names_ = stored;
}

void App::take_results() {
    guard_.attempt("the engine's results", [this] {
        if (engine_) engine_->update();
        restore_what_ifs(session_, [this](const std::string& text) { notice(text, false); });
    });
    opener_.remember_loaded_model();
    show_first_answers();
    show_wanted_view();
}

void App::show_first_answers() {
    if (!engine_ || !engine_->status().busy()) are_answers_shown_ = false;
    if (!engine_ || are_answers_shown_) return;
    const auto& answers = engine_->partial_answers();
    are_answers_shown_ = std::ranges::any_of(
        answers, [](const PartialAnswer& answer) { return answer.key.valid() && !answer.question.empty(); });
    if (!are_answers_shown_) return;
    end_form_alone();
    views_.bring_to_front(*find_view_kind("answers"));
}

void App::show_wanted_view() {
    const ViewKind* kind = find_view_kind(session_.wanted_view);
    if (!kind || ImGui::GetIO().WantTextInput) return;  // a new view would take the keyboard from a text field
    session_.wanted_view.clear();
    end_form_alone();
    const bool is_open = std::ranges::any_of(views(), [&](const auto& open) { return open->kind == kind; });
    is_open ? views_.bring_to_front(*kind) : views_.show(*kind);
}

void App::end_form_alone() {
    if (const ViewKind* form = find_view_kind("run")) views_.end_alone(*form);
}

void App::take_input() {
    const bool is_input = has_input();
    undo_.begin_frame(is_input);
    if (is_input) autosave_.note_input();
    if (const std::string click = describe_click(); !click.empty()) {
        note_last_action(click);
        undo_.complete_step();
    }
    guard_.attempt("the key press", [this] {
        if (quit_question_.is_shown() && is_shortcut_pressed(quit_key)) quit_ = may_close();
        actions_.handle_keys(is_start_shown() || views_.have_keyboard());
    });
}

void App::end_frame() {
    for (const auto& error : tasks_.deliver()) notice(error, true);
    if (const auto next = session_.end_frame()) window_.draw_within(next->count());
}

bool App::may_close(bool is_ordered) {
    const EngineStatus status = engine_ ? engine_->status() : EngineStatus{};
    const size_t n_waiting = engine_ ? engine_->waiting().size() : 0;
    const bool is_lost = status.state == EngineStatus::State::running || n_waiting > 0;
    if (is_lost && !is_ordered && !quit_question_.is_shown()) {
        quit_question_.ask(status.what);
        window_.draw_again();
        return false;
    }
    if (!autosave_.may_leave()) return false;
    if (engine_) {
        for (const WaitingJob& job : engine_->waiting()) {
            spdlog::info("discarded queued job: {}", job.what);  // the user is not asked when the system closes the app
            engine_->drop(job.number);
        }
    }
    if (status.busy()) engine_->cancel();  // finished runs are on disk
    return true;
}

void App::draw_quit_question() {
    const bool is_under_way = engine_ && engine_->status().busy();
    std::vector<std::string> waiting;
    if (engine_)
        for (const WaitingJob& job : engine_->waiting()) waiting.push_back(job.what);
    if (quit_question_.draw(is_under_way, waiting) != QuitQuestion::Answer::quit) return;
    quit_ = may_close(true);
}

bool App::is_start_shown() const {
    return session_.documents().empty() && !(engine_ && engine_->status().busy()) && !views_.is_start_dismissed();
}

void App::draw_middle() {
    if (is_start_shown())
        draw_start();
    else if (views().empty())
        draw_hint_for_no_views(actions_, appearance_.theme());
    else
        draw_views();
}

void App::draw_views() {
    ViewHost host{dialog_,
                  notices_.function(),
                  [this](const std::string& kind, const nlohmann::json& state) { views_.open(kind, state); },
                  [this](const View& view) {
                      if (const OpenView* open = views_.find(view)) picture_.ask_for(*open);
                  },
                  [this](const std::filesystem::path& path) { opener_.open_model(path); },
                  settings().recent_models,
                  [this](int document) { trace_to_close_ = document; },
                  [this](const std::string& kind) { view_to_show_ = find_view_kind(kind); },
                  [this](const RunKey& run) { rename_.ask(session_, run); },
                  [this] { views_.toggle_maximised(); },
                  views_.is_maximised()};
    Context context{
        session_, appearance_.theme(), window_.fonts, actions_, host, engine_.get(), ImGui::GetStyle().FontScaleMain};
    views_.draw(context, picture_);
    if (view_to_show_ && views_.is_settled()) views_.show(*std::exchange(view_to_show_, nullptr));
    if (view_to_show_) window_.draw_again();
    const Document* closed = session_.document(std::exchange(trace_to_close_, -1));
    if (!closed || !autosave_.may_leave()) return;
    close_trace(*closed, session_, views_, notices_);
}

std::vector<StartCard> App::start_cards() {
    std::vector<StartCard> cards;
    if (engine_) {
        cards.push_back({"Run the demo",
                         "Run a dozen policies on a prompt of about 2,000 tokens with the bundled model.", "Run it",
                         [this] { engine_->run_demo(); }});
        cards.push_back(
            {"Try your own prompt",
             "Enter a text and a question, then choose policies and budgets. Use the bundled model or your own.",
             "Write a prompt (Ctrl+R)", [this] { views_.show_alone(*find_view_kind("run")); }});
    }
    cards.push_back(
        {"Open a trace",
         "Open a trace of a run, from this app, the command line or a script. You can also drop files here.",
         "Browse… (Ctrl+O)", [this] { ask_for_trace(dialog_, opener_); }});
    if (engine_) {
        cards.push_back({"Choose a model",
                         "Load a GGUF file or a Hugging Face directory, then write a prompt and choose policies.",
                         "Browse…", [this] { ask_for_model(dialog_, opener_, views_); }});
    }
    return cards;
}

void App::draw_start() {
    recent_.update(ImGui::GetTime());
    RecentActions actions;
    actions.open_trace = [this](const std::filesystem::path& path) { open_trace(path); };
    if (engine_) {
        actions.go_on = [this](const std::filesystem::path& path) { engine_->go_on(path); };
        actions.load_model = [this](const std::filesystem::path& path) {
            opener_.open_model(path);
            views_.show_alone(*find_view_kind("run"));
        };
    }
    draw_start_cards(start_cards(), recent_, actions, appearance_.theme(), window_.fonts);
}

}  // namespace kvscope::gui
