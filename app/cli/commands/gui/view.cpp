#include "app/gui/view/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "app/cli/command.h"
#include "app/cli/option_validators.h"
#include "app/cli/stop_signal.h"
#include "app/cli/terminal.h"
#include "app/gui/session/engine_session.h"
#include "app/gui/shell/app.h"
#include "app/gui/window/crash_log.h"
#include "app/gui/window/end_signal.h"
#ifdef KVSCOPE_WITH_ENGINE
#include "app/cli/engine/model_options.h"
#include "app/cli/engine/run_in_terminal.h"
#endif

namespace kvscope::cli::view_file {
namespace {

struct Arguments {
    gui::AppOptions app;
#ifdef KVSCOPE_WITH_ENGINE
    ModelOptions model;
#endif
    std::string size;
    std::string screenshot;
    bool light = false;
    double ui_scale = 0;
};

/// Parses "1600x1000". @throws std::invalid_argument
void set_size(const std::string& text, gui::WindowOptions& window) {
    if (text.empty()) return;
    constexpr int most = 16384;  // largest texture side of most graphics cards
    const char* const end = text.data() + text.size();
    const auto width = std::from_chars(text.data(), end, window.width);
    const bool has_height = width.ec == std::errc() && width.ptr != end && *width.ptr == 'x';
    const auto height = has_height ? std::from_chars(width.ptr + 1, end, window.height) : width;
    if (!has_height || height.ec != std::errc() || height.ptr != end || window.width < 320 || window.height < 240 ||
        window.width > most || window.height > most)
        throw std::invalid_argument(
            fmt::format("--size needs WIDTHxHEIGHT from 320x240 to {0}x{0}, as in 1600x1000; found {1}", most, text));
}

int view(const Arguments& arguments) {
    gui::WindowOptions options;
    const auto remembered = gui::load_settings(gui::settings_file());
    options.width = remembered.width;
    options.height = remembered.height;
    set_size(arguments.size, options);
    if (!gui::Window::display_is_there()) throw gui::NoDisplay("no display found");
    const bool for_picture = !arguments.screenshot.empty();
    options.visible = !for_picture;
    options.vsync = !for_picture;
    gui::AppOptions app_options = arguments.app;
    app_options.remember = !for_picture;
    if (const auto saved = remembered.layouts.find(app_options.layout); saved != remembered.layouts.end()) {
        app_options.saved_layout = saved->second;
        app_options.layout.clear();
    }
    gui::install_crash_log();
    gui::Window window(options);
    gui::App app(window, app_options);
    if (arguments.light) app.set_light(true);
    if (arguments.ui_scale > 0) app.set_scale(static_cast<float>(arguments.ui_scale));
    window.on_drop = [&](const auto& paths) { app.open_files(paths); };
    const auto frame = [&] { return app.frame(); };
    if (for_picture) {
        const auto settle = [&] {
            for (int i = 0; i < 6; ++i) {
                window.draw_frame(frame);
                app.tasks().wait();
            }
        };
        settle();
        while (app.engine() && app.engine()->status().busy()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            window.draw_frame(frame);
        }
        settle();
        gui::write_png(window.capture(frame), arguments.screenshot);
        return app.n_errors() == 0 ? 0 : 1;
    }
    std::atomic<bool> is_ordered = false;  // whether a signal closes the app, also with unsaved work
    const gui::EndSignal end([&] {
        is_ordered = true;
        window.close();
        gui::Window::wake();
    });
    window.run(
        frame, [&] { app.unseen_frame(); }, [&] { return app.may_close(is_ordered) || is_ordered; });
    if (end.signal() != 0) note_stop_signal(end.signal());
    return 0;
}

/// Opens the app. Without a display, runs a requested demo in the terminal or throws NoDisplay with advice.
int view_or_say_why(const Arguments& arguments) {
    try {
        return view(arguments);
    } catch (const gui::NoDisplay& error) {
#ifdef KVSCOPE_WITH_ENGINE
        if (arguments.app.run_demo && arguments.screenshot.empty()) {
            print_to_stderr(fmt::format("kvscope: {}: running the demo in the terminal, with output in kvscope-demo/",
                                        error.what()));
            return run_demo_in_terminal("kvscope-demo", false);
        }
#endif
        throw gui::NoDisplay(
            fmt::format("{}: start kvscope with a display, or use a command that needs no display, such as kvscope "
                        "inspect or kvscope export",
                        error.what()));
    }
}

std::function<int()> declare(CLI::App& app) {
    const auto arguments = std::make_shared<Arguments>();
    app.add_option("trace", arguments->app.traces, "Traces to open, side by side")->type_name("TRACE.h5");
    app.add_option("--mark", arguments->app.mark, "Text to outline in every view");
    app.add_option("--select", arguments->app.select,
                   "Initial selection, as in token=964,layer=21,run=snapkv @ 256; also head=1, token=3-9, step=5");
    auto* layout =
        app.add_option("--layout", arguments->app.layout,
                       "Layout: explore, compare, report, or a layout saved in the app (default: the last one)")
            ->transform(CLI::Validator(
                [](std::string& name) {
                    std::vector<std::string> names = gui::App::layout_names();
                    for (const auto& [saved, layout] : gui::load_settings(gui::settings_file()).layouts)
                        names.push_back(saved);
                    return OneOf(names)(name);
                },
                ""));
    suggest(layout, gui::App::layout_names());
    app.add_option("--view", arguments->app.view, "Name of the only view to open")
        ->transform(OneOf(defined_names(gui::view_kinds())))
        ->excludes("--layout");
    app.add_option("--size", arguments->size, "Size of the app's window, as in 1600x1000");
    app.add_flag("--light", arguments->light, "Use the light theme");
    app.add_option("--ui-scale", arguments->ui_scale, "Text scale (default: 1)")->check(CLI::Range(0.5, 4.0));
    app.add_option("--screenshot", arguments->screenshot,
                   "PNG file for a picture of the app's window, after which the app closes")
        ->type_name("FILE.png")
        ->check(NewFile())
        ->check(CLI::Validator(
            [](std::string& name) -> std::string {
                return std::filesystem::path(name).extension() == ".png"
                           ? ""
                           : name + ": the picture is written as PNG: give a name that ends in .png";
            },
            ""));
#ifdef KVSCOPE_WITH_ENGINE
    app.add_flag("--demo", arguments->app.run_demo, "Open the demo's trace, or run the demo if the trace is missing");
#endif
#ifdef KVSCOPE_WITH_ENGINE
    arguments->model.declare_threads(app);
    auto template_options = arguments->model.declare_chat_template(app);
    const auto* special = arguments->model.declare_special(app);
    return [arguments, template_options, special] {
        arguments->app.n_threads = arguments->model.threads();
        const bool is_said = std::any_of(template_options.begin(), template_options.end(),
                                         [](const CLI::Option* option) { return option->count() > 0; });
        if (is_said) arguments->app.use_template = arguments->model.use_template();
        if (special->count() > 0) arguments->app.parse_special = arguments->model.parse_special();
        return view_or_say_why(*arguments);
    };
#else
    return [arguments] { return view_or_say_why(*arguments); };
#endif
}

}  // namespace
}  // namespace kvscope::cli::view_file

namespace kvscope::cli {

Command view_command() {
    using namespace view_file;
    Command command{"view", "Open the app, with or without traces",
                    "  kvscope view demo.h5\n  kvscope view mine.h5 theirs.h5 --layout compare --mark Paris", declare};
    command.by_default = true;
    return command;
}

}  // namespace kvscope::cli
