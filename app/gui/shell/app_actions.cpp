#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/reproduce.h"
#include "app/gui/figure/export_dialog.h"
#include "app/gui/session/engine_session.h"
#include "app/gui/shell/app.h"
#include "app/gui/shell/layouts.h"
#include "app/gui/view/file_dialog.h"
#include "app/gui/view/image_clipboard.h"

namespace kvscope::gui {

void App::ask_for_trace() {
    files_->ask(
        {FileDialog::Kind::open, "Open a trace", {".h5", ".hdf5", ".part", ".kvscope"}, {}, [this](const auto& path) {
             open_files({path});
         }});
}

void App::ask_for_model() {
    files_->ask({FileDialog::Kind::open_folder_or_file,
                 "Choose a model: a GGUF file or a folder with config.json",
                 {".gguf"},
                 {},
                 [this](const auto& path) {
                     open_files({path});
                     start_dismissed_ = true;
                 }});
}

void App::ask_for_workspace() {
    FileDialog::Question question;
    question.kind = FileDialog::Kind::save;
    question.title = "Save traces, layout and selection in one file";
    question.extensions = {".kvscope"};
    question.suggestion = session_.focus()->path().stem().string() + ".kvscope";
    question.answer = [this](const std::filesystem::path& named) {
        std::filesystem::path path = named;
        if (path.extension() != ".kvscope") path += ".kvscope";  // by which it is told from a trace
        std::error_code error;
        if (path != named && std::filesystem::exists(path, error))
            return notice(path.string() + " exists already: choose it, or another name", true);
        try {
            save_workspace(path);
            notice(path.string() + " written: traces, layout and selection");
        } catch (const std::exception& error) {
            notice(error.what(), true);
        }
    };
    files_->ask(std::move(question));
}

void App::export_focused() {
    const OpenView* open = focused_view();
    const auto request = open ? open->view->figure(session_) : std::nullopt;
    const auto table = open && !request ? open->view->table() : std::nullopt;
    const auto say = [this](const std::string& text, bool is_error) { notice(text, is_error); };
    if (request)
        ExportDialog::ask(session_, *request, *files_, say);
    else if (table)
        ExportDialog::ask(session_, *table, *files_, say);
    else
        notice("this view has nothing to export; click into one that shows a figure or a table", true);
}

void App::copy_focused_figure() {
    const OpenView* open = focused_view();
    const auto request = open ? open->view->figure(session_) : std::nullopt;
    try {
        if (!request) throw std::runtime_error("this view shows no figure; copy it as seen, or click into another");
        ExportDialog::copy_image(session_, *request,
                                 [this](const std::string& text, bool is_error) { notice(text, is_error); });
    } catch (const std::exception& error) {
        notice(error.what(), true);
    }
}

void App::copy_as_seen(const View& view) {
    for (const auto& open : views_) {
        if (open->view.get() == &view) picture_of_ = open->id();
    }
    frames_to_picture_ = 2;
    window_.draw_again();
}

/// Within the window of the view whose picture is wanted.
void App::take_picture() {
    if (frames_to_picture_-- > 0) return window_.draw_again();
    picture_of_.clear();
    const ImVec2 origin = ImGui::GetMainViewport()->Pos;
    const ImVec2 pixels = ImGui::GetIO().DisplayFramebufferScale;
    const auto whole = [](float value) { return static_cast<int>(std::lround(value)); };
    const ImVec2 at = ImGui::GetWindowPos();
    const ImVec2 size = ImGui::GetWindowSize();
    window_.take_picture([this, left = whole((at.x - origin.x) * pixels.x), top = whole((at.y - origin.y) * pixels.y),
                          width = whole(size.x * pixels.x), height = whole(size.y * pixels.y)](const Screenshot& all) {
        tasks_.once(
            [all, left, top, width, height] {
                const TemporaryPng png;
                write_png(cut_out(all, left, top, width, height), png.path());
                copy_png(png.path());
                return std::string("view copied as an image");
            },
            [this](const std::string& text, bool is_error) { notice(text, is_error); });
    });
}

void App::copy_command() {
    try {
        const RunAt run = session_.at(session_.cursor().run);
        const std::string command = analysis::reproduce_command(*run.reader, run.prompt, run.run);
        ImGui::SetClipboardText(command.c_str());
        notice("copied: " + command);
    } catch (const std::exception& error) {
        notice(error.what(), true);
    }
}

void App::add_actions() {
    const auto has_trace = [this] { return !session_.documents().empty(); };
    const auto add = [this](std::string menu, std::string name, ImGuiKeyChord key, std::function<void()> run,
                            std::function<bool()> enabled = {}, bool separator = false) -> void {
        actions_.add({std::move(name), std::move(menu), key, std::move(run), std::move(enabled), {}, separator});
    };
    add("File", "Open a trace…", ImGuiMod_Ctrl | ImGuiKey_O, [this] { ask_for_trace(); });
    add(
        "File", "Add a trace beside it…", ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_O, [this] { ask_for_trace(); },
        has_trace);
    add(
        "File", "Reload", ImGuiKey_F5,
        [this] {
            for (const auto& document : session_.documents()) {
                try {
                    session_.open(document->path());
                } catch (const std::exception& error) {
                    notice(error.what(), true);
                }
            }
        },
        has_trace);
    add(
        "File", "Close this trace", ImGuiMod_Ctrl | ImGuiKey_W,
        [this] {
            if (may_leave()) session_.close(session_.focus()->id());
        },
        has_trace);
    add(
        "File", "Save a workspace…", ImGuiMod_Ctrl | ImGuiKey_S, [this] { ask_for_workspace(); }, has_trace, true);
    add(
        "File", "Export this view…", ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_E, [this] { export_focused(); },
        has_trace, true);
    add(
        "File", "Quit", ImGuiMod_Ctrl | ImGuiKey_Q, [this] { quit_ = may_close(); }, {}, true);

    add(
        "Edit", "Undo", ImGuiMod_Ctrl | ImGuiKey_Z, [this] { undo(); }, [this] { return undo_.size() > 1; });
    add(
        "Edit", "Redo", ImGuiMod_Ctrl | ImGuiKey_Y, [this] { redo(); }, [this] { return !redo_.empty(); });
    add(
        "Edit", "Selection back", ImGuiMod_Alt | ImGuiKey_LeftArrow, [this] { session_.selection.back(); },
        [this] { return session_.selection.can_go_back(); }, true);
    add(
        "Edit", "Selection forward", ImGuiMod_Alt | ImGuiKey_RightArrow, [this] { session_.selection.forward(); },
        [this] { return session_.selection.can_go_forward(); });
    add("Edit", "End the flicker, let go of the selection, cancel", ImGuiKey_Escape, [this] {
        if (std::exchange(session_.flicker, std::nullopt)) return;
        const Cursor before = session_.cursor();
        session_.let_go();
        if (engine_ && engine_->status().busy() && before == session_.cursor()) engine_->cancel();
    });
    add(
        "Edit", "Copy this figure as image", 0, [this] { copy_focused_figure(); }, has_trace, true);
    add("Edit", "Copy this view as seen", ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_C, [this] {
        if (const OpenView* open = focused_view()) copy_as_seen(*open->view);
    });
    add(
        "Edit", "Copy the command that reproduces this run", 0, [this] { copy_command(); },
        [this] { return session_.exists(session_.cursor().run); });
    const auto move_layer = [this](int by) {
        if (const Document* focus = session_.focus(); focus && focus->reader()->has_model()) {
            const int last = static_cast<int>(focus->reader()->model().n_layers) - 1;
            session_.select_layer(std::clamp(session_.cursor().layer + by, 0, last));
        }
    };
    const auto move_token = [this](int by) {
        if (const Document* focus = session_.focus(); focus && focus->prompt < focus->reader()->n_prompts()) {
            const int64_t last = focus->reader()->prompt(focus->prompt).visible_tokens() - 1;
            session_.select_token(std::clamp<int64_t>(session_.cursor().first_token + by, 0, last));
        }
    };
    add(
        "Edit", "Layer before", ImGuiKey_LeftBracket, [=] { move_layer(-1); }, has_trace, true);
    add(
        "Edit", "Layer after", ImGuiKey_RightBracket, [=] { move_layer(1); }, has_trace);
    add(
        "Edit", "Token before", ImGuiKey_Comma, [=] { move_token(-1); }, has_trace);
    add(
        "Edit", "Token after", ImGuiKey_Period, [=] { move_token(1); }, has_trace);

    const auto flicker = [this] {
        const auto [a, b] = session_.compared();
        session_.flicker = session_.flicker == a ? b : a;
    };
    const auto can_flicker = [this] {
        const auto [a, b] = session_.compared();
        return a.valid() && b.valid() && a != b;
    };
    add("View", "Flicker A / B", ImGuiKey_Space, flicker, can_flicker);
    add("View", "Difference A − B", ImGuiKey_D, [this] { show_view(*find_view_kind("difference")); });
    add("View", "Everything into view", ImGuiKey_F, [this] {
        if (OpenView* open = focused_view()) open->view->fit();
    });
    const auto toggle = [this](const RunKey& run) { session_.set_visible(run, !session_.is_visible(run)); };
    for (int number = 1; number <= n_run_keys; ++number) {
        const int first = number - (number - 1) % 9;
        actions_.add({fmt::format("Show or hide run {}", number),
                      "",
                      run_key(number),
                      [this, number, toggle] {
                          const auto runs = session_.all_runs();
                          if (static_cast<size_t>(number) <= runs.size()) toggle(runs[static_cast<size_t>(number) - 1]);
                      },
                      has_trace,
                      {},
                      false,
                      fmt::format("{} … 9", key_text(run_key(first))),
                      fmt::format("Show or hide runs {} to {} of Runs", first, first + 8)});
    }
    actions_.add({"Show all runs",
                  "View",
                  ImGuiKey_0,
                  [this] {
                      for (const RunKey& key : session_.all_runs()) session_.set_visible(key, true);
                  },
                  has_trace,
                  {},
                  false});
    for (const ViewKind& kind : view_kinds())
        actions_.add({"Show " + kind.title, "", 0, [this, &kind] { show_view(kind); }, {}, {}, false});
    bool is_first = true;
    for (const ViewKind& kind : view_kinds()) {
        add(
            "View", "New view: " + kind.title, 0, [this, &kind] { open_view(kind); }, {}, is_first);
        is_first = false;
    }

    for (const Layout& layout : layouts())
        add("Layout", layout.title, 0, [this, name = layout.name] { apply_layout(name); });
    actions_.add({"Light theme",
                  "Layout",
                  0,
                  [this] { set_light(!settings_.light); },
                  {},
                  [this] { return settings_.light; },
                  true});
    const auto scaled = [this](float factor) { set_scale(ImGui::GetStyle().FontScaleMain * factor); };
    add("Layout", "Larger", ImGuiMod_Ctrl | ImGuiKey_Equal, [=] { scaled(1.1f); });
    add("Layout", "Smaller", ImGuiMod_Ctrl | ImGuiKey_Minus, [=] { scaled(1 / 1.1f); });
    add("Layout", "Usual size", ImGuiMod_Ctrl | ImGuiKey_0, [this] { set_scale(0); });

    add("Help", "Commands…", ImGuiMod_Ctrl | ImGuiKey_K, [this] { actions_.open_palette(); });
    actions_.add({"Commands",
                  "",
                  ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P,
                  [this] { actions_.open_palette(); },
                  {},
                  {},
                  false});
    add("Help", "Mouse and keys", ImGuiMod_Shift | ImGuiKey_Slash, [this] { help_.open_keys(); });
    add("Help", "About kvscope", 0, [this] { help_.open_about(); });
    if (engine_) {
        // Pressed once more, in the view itself, it runs.
        add("Run", "Policies on a prompt…", ImGuiMod_Ctrl | ImGuiKey_R, [this] {
            start_dismissed_ = true;
            for (const auto& open : views_) {
                if (open->kind->name != "run") continue;
                if (open.get() == focused_view()) return open->view->start();
                // Behind the start cards a whole layout still waits to come to the front.
                for (const auto& other : views_) other->focus = other->focus && other->kind->dock != Dock::left;
                open->focus = true;
                focus_in_the_end_ = open->title();
                return;
            }
            if (const ViewKind* kind = find_view_kind("run")) open_view(*kind);
        });
        add(
            "Run", "Run the demo", 0, [this] { engine_->run_demo(); }, [this] { return !engine_->status().busy(); });
        add("Run", "Choose a model…", 0, [this] { ask_for_model(); });
        add(
            "Run", "Cancel", 0, [this] { engine_->cancel(); }, [this] { return engine_->status().busy(); });
    }
    actions_.add_to_palette = [this, toggle](std::vector<Action>& extra) {
        const auto runs = session_.all_runs();
        for (const RunKey& key : runs) {
            extra.push_back({"Go to run " + session_.look(key).label,
                             "",
                             0,
                             [this, key] { session_.select_run(key); },
                             {},
                             {},
                             false});
        }
        int number = 0;
        for (const RunKey& key : runs) {
            const char* verb = session_.is_visible(key) ? "Hide" : "Show";
            extra.push_back({fmt::format("{} run {}", verb, session_.look(key).label),
                             "",
                             run_key(++number),
                             [key, toggle] { toggle(key); },
                             {},
                             {},
                             false});
        }
        for (const auto& open : views_)
            open->view->add_to_palette(extra, [this](const std::string& text, bool error) { notice(text, error); });
        for (const auto& path : settings_.recent_traces)
            extra.push_back({"Open " + path, "Recent", 0, [this, path] { open_trace(path); }, {}, {}, false});
    };
}

}  // namespace kvscope::gui
