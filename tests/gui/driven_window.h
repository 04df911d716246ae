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
    /// Draws frames until nothing is computed any more.
    void settle();
    /// Draws until the condition holds. @returns false where it does not within the frames
    bool draw_until(const std::function<bool()>& condition, int frames);
    Screenshot picture();
    /// Whether the last frame asked for the end.
    bool has_ended() const { return has_ended_; }

    static std::string window_of(const std::string& view) { return "//" + view + "-1"; }

 private:
    void draw();

    App app_;
    bool has_ended_ = false;
};

}  // namespace kvscope::gui::testing
