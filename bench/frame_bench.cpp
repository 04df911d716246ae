// Measures how fast the app draws a trace: the first picture, panned and zoomed maps, idle frames, and views that
// follow the what-if slider; for a trace with only results, the ranking of samples. Needs a display, which bench/window
// provides.

#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <imgui.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "app/gui/session/engine_session.h"
#include "app/gui/shell/app.h"
#include "app/gui/view_data/live_what_if.h"
#include "app/gui/view_data/ranked_rows.h"
#include "app/gui/window/window.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Options {
    std::filesystem::path trace;
    std::string view = "retention";
    std::string layout;
    int width = 1920;
    int height = 1080;
    int frames = 300;
    bool what_if = false;
};

double percentile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

/// Returns the number of frames that the idle app draws in `seconds`.
uint64_t idle_frames(kvscope::gui::Window& window, kvscope::gui::App& app, double seconds) {
    std::thread clock([&] {
        std::this_thread::sleep_for(std::chrono::duration<double>(1 + seconds));
        window.close();
        kvscope::gui::Window::wake();
    });
    const auto start = Clock::now();
    uint64_t settled_at = 0;
    bool settled = false;
    window.run(
        [&] {
            if (!settled && seconds_since(start) > 1) {
                settled = true;
            }
            if (!settled) settled_at = window.n_frames() + 1;
            return app.frame();
        },
        [&] { app.unseen_frame(); }, [] { return true; });
    clock.join();
    return window.n_frames() - settled_at;
}

/// Returns, for several slider positions, the milliseconds until all views are redrawn.
std::vector<double> drag_budget(kvscope::gui::Window& window, kvscope::gui::App& app,
                                kvscope::gui::LiveWhatIf& what_if) {
    const auto frame = [&] { return app.frame(); };
    const auto draw_all = [&] {
        bool is_settled = false;
        while (!is_settled) {
            const bool was_done = app.tasks().n_pending() == 0;
            what_if.update(app.session(), app.engine());
            glfwPollEvents();
            window.draw_frame(frame);
            is_settled = was_done && app.tasks().n_pending() == 0;
        }
    };
    draw_all();
    if (!what_if.has_source()) throw std::runtime_error("this run has no what-if: " + what_if.refusal());
    std::vector<double> times;
    for (int64_t budget = 100; budget < 500; budget += 20) {
        what_if.update(app.session(), app.engine());
        what_if.budget() = budget;
        const auto begin = Clock::now();
        what_if.follow_widgets(app.session());
        draw_all();
        times.push_back(1000 * seconds_since(begin));
    }
    what_if.discard(app.session());
    draw_all();
    return times;
}

void drag_what_ifs(kvscope::gui::Window& window, kvscope::gui::App& app) {
    const auto* document = app.session().focus();
    const auto drag_all = [&](const char* from) {
        std::set<std::string> policies;
        for (const auto& key : app.session().all_runs()) {
            const auto run = app.session().attributes(key);
            if (run.is_full() || !policies.insert(run.policy).second) continue;
            app.session().selection.select_run(key);
            kvscope::gui::LiveWhatIf what_if;
            const auto times = drag_budget(window, app, what_if);
            fmt::print("what-if {}, {}: median {:.0f} ms until all views are redrawn, 90 % below {:.0f} ms\n",
                       run.policy, from, percentile(times, 0.5), percentile(times, 0.9));
        }
    };
    drag_all("from the trace");
    if (!app.engine()) return;
    app.engine()->repeat_prefill(document->id(), 0, {});
    const auto has_prefill = [&] { return app.engine()->prefill(document->id(), 0) != nullptr; };
    while (!has_prefill()) {
        window.draw_frame([&] { return app.frame(); });
        if (!has_prefill() && !app.notices().empty()) throw std::runtime_error(app.notices().back());
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    drag_all("prefill in memory");
}

/// Measures the ranking of a task's samples, which follows the first picture of a trace that has only results.
void rank_samples(kvscope::gui::Window& window, kvscope::gui::App& app) {
    using namespace kvscope::gui;
    const auto* document = app.session().focus();
    const auto start = Clock::now();
    app.session().wanted_samples = WantedSamples{document->id(), {}};
    do {
        window.draw_frame([&] { return app.frame(); });
    } while (app.tasks().n_pending() > 0);
    window.draw_frame([&] { return app.frame(); });
    fmt::print("samples drawn in Rankings after {:.2f} s\n", seconds_since(start));
    auto rows = std::make_shared<RankedRows>();
    rows->made =
        kvscope::analysis::make_ranking(kvscope::analysis::ranking_definition("samples"), *document->reader(), {});
    const auto& columns = rows->made.table.columns;
    for (size_t column = 0; column < columns.size(); ++column) {
        const auto begin = Clock::now();
        const size_t n = filter_and_sort_rows(rows, {column, true, ""}).rows.size();
        fmt::print("sorting {} rows by {}: {:.0f} ms\n", n, columns[column].name, 1000 * seconds_since(begin));
    }
}

void run(const Options& options) {
    const auto start = Clock::now();
    kvscope::gui::Window window({options.width, options.height, true, false});
    kvscope::gui::AppOptions app_options;
    app_options.remember = false;
    app_options.traces = {options.trace};
    app_options.layout = options.layout.empty() ? "explore" : options.layout;
    if (options.layout.empty()) app_options.view = options.view;
    kvscope::gui::App app(window, app_options);
    const auto frame = [&] { return app.frame(); };
    window.draw_frame(frame);
    const double first_frame = seconds_since(start);
    window.run([&] { return app.frame() && app.tasks().n_pending() > 0; }, [&] { app.unseen_frame(); },
               [] { return true; });
    window.draw_frame(frame);
    const double first_picture = seconds_since(start);

    const auto* document = app.session().focus();
    if (!document) throw std::runtime_error(options.trace.string() + " could not be opened");
    if (document->reader()->n_prompts() == 0) {
        fmt::print("first frame after {:.2f} s, first complete picture after {:.2f} s\n", first_frame, first_picture);
        if (options.view == "rankings") rank_samples(window, app);
        return;
    }
    const auto n = static_cast<double>(document->reader()->prompt(0).visible_tokens());
    fmt::print("{}: {} tokens, {} layers, {} runs; {}\n", options.trace.filename().string(), n,
               document->reader()->model().n_layers, document->reader()->n_runs(0), window.renderer());
    fmt::print("first frame after {:.2f} s, first complete picture after {:.2f} s\n", first_frame, first_picture);

    if (options.what_if) return drag_what_ifs(window, app);
    std::vector<double> times;
    for (int i = 0; i < options.frames; ++i) {
        // Zooms between the whole prompt and 100 tokens and moves along the prompt.
        const double phase = 2 * 3.14159265 * i / options.frames;
        const double span = n * std::pow(100 / n, 0.5 - 0.5 * std::cos(2 * phase));
        const double centre = n * (0.5 + 0.4 * std::sin(phase));
        app.session().token_axis.min = std::clamp(centre - span / 2, 0.0, n - span);
        app.session().token_axis.max = app.session().token_axis.min + span;
        const auto begin = Clock::now();
        glfwPollEvents();
        window.draw_frame(frame);
        times.push_back(seconds_since(begin));
    }
    double sum = 0;
    for (const double t : times) sum += t;
    fmt::print("panning and zooming at {}x{}: {:.1f} frames/s (median {:.1f} ms, 95 % below {:.1f} ms)\n",
               options.width, options.height, static_cast<double>(times.size()) / sum, 1000 * percentile(times, 0.5),
               1000 * percentile(times, 0.95));
    fmt::print("idle: {} frames in 3 s\n", idle_frames(window, app, 3));
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("Measures how fast the app draws a trace");
    app.add_option("trace", options.trace)->required();
    app.add_option("--view", options.view, "Name of the only view to draw")->capture_default_str();
    app.add_option("--layout", options.layout, "Name of a layout to draw instead of a single view");
    app.add_option("--width", options.width)->capture_default_str();
    app.add_option("--height", options.height)->capture_default_str();
    app.add_option("--frames", options.frames)->capture_default_str();
    app.add_flag("--what-if", options.what_if,
                 "Move the slider of the what-if budget instead of panning and zooming maps");
    CLI11_PARSE(app, argc, argv);
    try {
        run(options);
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
    return 0;
}
