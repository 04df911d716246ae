#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/drawing/theme.h"
#include "app/gui/window/event_times.h"
#include "app/gui/window/input_queue.h"

struct GLFWwindow;

namespace kvscope::gui {

/// Thrown if there is no display or its driver lacks OpenGL 3.3.
struct NoDisplay : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct WindowOptions {
    int width = 1600;
    int height = 1000;
    bool visible = true;
    bool vsync = true;
    /// Whether only captured frames are rendered. Tests use it because software rendering is slow.
    bool only_pictures = false;
};

/// Pixels of a frame; row 0 is at the top.
struct Screenshot {
    int width = 0;
    int height = 0;
    std::vector<uint8_t> rgb;  ///< RGB values, (height, width, 3)
};

/// The app's window with its OpenGL context, Dear ImGui and ImPlot. Draws only after input, `wake` or a request for
/// another frame.
class Window {
 public:
    /// @throws NoDisplay
    explicit Window(const WindowOptions& options);
    ~Window();
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

    [[nodiscard]] static bool display_is_there();

    /// Draws frames until `frame` returns false, or until the user closes the window and `may_close` returns true.
    /// Calls `unseen_frame` instead while the window is minimized.
    void run(const std::function<bool()>& frame, const std::function<void()>& unseen_frame,
             const std::function<bool()>& may_close);

    /// Draws one frame. If the waiting input needs several passes, calls `frame` for each pass and shows the last
    /// result. Returns false if `frame` returned false.
    bool draw_frame(const std::function<bool()>& frame);

    /// Returns the seconds until the next frame if nothing happens: 0 to draw immediately, negative for no limit.
    [[nodiscard]] double seconds_to_sleep() const;

    /// Gives the new input the system's time of the last event or, if that is unknown, the current time. Dear ImGui
    /// detects double clicks by these times.
    void note_input_time() { input_.note_time(event_at_.value_or(clock())); }
    /// Current time in seconds. Tests replace it.
    std::function<double()> clock;

    /// Requests a frame. Can be called from any thread.
    static void wake();
    /// Requests another frame without waiting for input, e.g. for an animation.
    void draw_again() {
        frames_left_ = 3;
        is_asked_again_ = true;
    }

    /// Requests a frame within this time, with or without input.
    void draw_within(double seconds);

    [[nodiscard]] Screenshot capture(const std::function<bool()>& frame);
    /// Passes the pixels of the current frame to `taken` when the frame is complete.
    void take_picture(std::function<void(const Screenshot&)> taken) { taken_ = std::move(taken); }
    [[nodiscard]] uint64_t n_frames() const { return n_frames_; }
    [[nodiscard]] float content_scale() const;
    void set_title(const std::string& title);
    void close();
    [[nodiscard]] const std::string& renderer() const { return renderer_; }

    std::function<void(const std::vector<std::filesystem::path>&)> on_drop;

    Fonts fonts;

 private:
    /// Calls `frame` between NewFrame and Render. With `takes_input`, Dear ImGui receives the next group of input.
    [[nodiscard]] bool pass(const std::function<bool()>& frame, bool takes_input = true);
    bool take_input(const std::function<bool()>& frame);
    void show_frame();
    void note_event(SystemEvent kind, int code);
    void note_events();
    void await_tooltip();

    GLFWwindow* window_ = nullptr;
    std::string renderer_;
    std::string title_ = "kvscope";
    int frames_left_ = 3;
    double wanted_at_ = -1;  ///< latest time of the next frame; negative: none
    uint64_t n_frames_ = 0;
    InputQueue input_;
    std::optional<double> event_at_;  ///< time of the last event that the next frame handles; nullopt: unknown
    /// Time before the last poll. Passes without input use this time, because events may have arrived since the poll.
    double polled_at_ = 0;
    double passed_at_ = -1;  ///< time of the last pass; negative: none
    bool is_asked_again_ = false;
    int passes_to_settle_ = 0;  ///< remaining passes until the next input
    int n_settled_ = 0;
    const bool only_pictures_;
    Screenshot* capture_to_ = nullptr;
    std::function<void(const Screenshot&)> taken_;
};

/// Returns the part of the rectangle that lies inside the screenshot.
[[nodiscard]] Screenshot crop_screenshot(const Screenshot& screenshot, int left, int top, int width, int height);

/// Replaces a PNG file atomically. @throws FileNotWritten, or std::runtime_error if the screenshot is empty
void write_png(const Screenshot& screenshot, const std::filesystem::path& path);

}  // namespace kvscope::gui
