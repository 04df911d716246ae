#pragma once

#include <imgui.h>
#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "app/gui/shell/app.h"
#include "app/gui/shell/window.h"

namespace kvscope::gui::testing {

/// The one window of the test program, with Dear ImGui Test Engine in it; nullptr where there is no display.
Window* test_window();

/// An application in the test window, driven by labels as a person would with mouse and keyboard.
class DrivenApp {
 public:
    /// @param remember reads and writes the settings, which the test has put elsewhere
    explicit DrivenApp(AppOptions options, bool remember = false);

    App& app() { return app_; }
    Session& session() { return app_.session(); }

    /// Runs the steps beside the frames and draws until they have ended. Fails the Catch2 test where a step does.
    void drive(const std::function<void(ImGuiTestContext&)>& steps);
    /// The line of the palette that comes first for what is typed.
    void start_by_palette(const std::string& typed);
    /// Draws frames until nothing is computed any more.
    void settle();
    /// Draws until the condition holds. @returns false where it does not within the frames
    bool draw_until(const std::function<bool()>& condition, int frames);
    Screenshot picture();
    /// What a frame says in words, of all views that are in front.
    std::string shown_text();
    /// What views throw while they are drawn fails the test, but for the one that makes a view throw.
    void allow_view_failures() { are_failures_allowed_ = true; }
    /// Whether the last frame asked for the end.
    bool has_ended() const { return has_ended_; }

    /// Refers to the part of the view Run that contains model and prompt: a column of its own where the view is wide.
    static void refer_to_prompt_of_run(ImGuiTestContext& c);

    static std::string window_of(const std::string& view) { return "//" + view + "-1"; }

 private:
    void draw();
    /// Fails the test where views have thrown since the last look.
    void check_views();

    App app_;
    size_t n_failures_seen_ = 0;
    bool are_failures_allowed_ = false;
    bool has_ended_ = false;
};

}  // namespace kvscope::gui::testing
