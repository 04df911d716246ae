#pragma once

#include <imgui.h>
#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "app/gui/shell/app.h"
#include "app/gui/window/window.h"

namespace kvscope::gui::testing {

/// The only window of the test program, with Dear ImGui Test Engine; nullptr without a display.
[[nodiscard]] Window* test_window();

/// The app in the test window, driven by labels, mouse and keyboard.
class DrivenApp {
 public:
    /// @param remember reads and writes the settings, whose folder the test has set
    explicit DrivenApp(AppOptions options, bool remember = false);

    [[nodiscard]] App& app() { return app_; }
    [[nodiscard]] Session& session() { return app_.session(); }

    /// Runs the steps while frames are drawn, until the steps end. A failed step fails the Catch2 test.
    void drive(const std::function<void(ImGuiTestContext&)>& steps);
    /// Runs the first action in the palette for this text.
    void start_by_palette(const std::string& typed);
    /// Draws frames until all jobs are done.
    void settle();
    /// Draws frames until the condition holds. Returns false if it does not hold in time.
    bool draw_until(const std::function<bool()>& condition, int frames);
    Screenshot picture();
    /// All text that the visible views draw in a frame.
    [[nodiscard]] std::string shown_text();
    /// Allows exceptions from views, which otherwise fail the test.
    void allow_view_failures() { are_failures_allowed_ = true; }
    /// Whether the last frame asked to quit.
    [[nodiscard]] bool has_ended() const { return has_ended_; }

    /// Sets the reference to the part of the Run view with model and prompt, which is a separate column in a wide view.
    static void refer_to_prompt_of_run(ImGuiTestContext& c);

    [[nodiscard]] static std::string window_of(const std::string& view) { return "//" + view + "-1"; }

 private:
    void draw();
    /// Fails the test if views have thrown since the last check.
    void check_views();

    App app_;
    size_t n_failures_seen_ = 0;
    bool are_failures_allowed_ = false;
    bool has_ended_ = false;
};

}  // namespace kvscope::gui::testing
