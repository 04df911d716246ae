#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "app/gui/drawing/theme.h"
#include "app/gui/shell/event_times.h"
#include "app/gui/shell/input_queue.h"

struct GLFWwindow;

namespace kvscope::gui {

/// There is no display to open a window on, or its driver has no OpenGL 3.3.
struct NoDisplay : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct WindowOptions {
    int width = 1600;
    int height = 1000;
    bool visible = true;
    bool vsync = true;
    /// Pixels are made only of frames of which a picture is taken: for tests, most of whose time a software renderer
    /// would spend on pixels that nothing looks at.
    bool only_pictures = false;
};

/// Pixels of a frame, row 0 at the top.
struct Screenshot {
    int width = 0;
    int height = 0;
    std::vector<uint8_t> rgb;  ///< (height, width, 3)
};

/// The system's window with its OpenGL context, Dear ImGui and ImPlot in it. Draws only when something happened: input,
/// `wake`, or a frame that asked for another.
class Window {
 public:
    /// @throws NoDisplay
    explicit Window(const WindowOptions& options);
    ~Window();
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

    /// Whether a window could be opened here, as far as the environment tells.
    static bool display_is_there();

    /// Calls `frame` between Dear ImGui's NewFrame and Render until it returns false or the window is closed and
    /// `may_close` agrees; while the window is minimised, `unseen_frame` in its place, with nothing to draw.
    void run(const std::function<bool()>& frame, const std::function<void()>& unseen_frame,
             const std::function<bool()>& may_close);

    /// One frame, whether or not anything happened; false as soon as `frame` says so. Where more input waits than one
    /// pass takes, `frame` is called for each part of it in turn, and what the last call draws is shown.
    bool draw_frame(const std::function<bool()>& frame);

    /// How long the window may sleep before its next frame, where nothing happens; 0: not at all; below 0: for ever.
    double seconds_to_sleep() const;

    /// The input that has come since the last call happened when the system says that its last key or button did, else
    /// now: whether two clicks are a double click depends on these times, not on when a frame takes them.
    void note_input_time() { input_.note_time(event_at_.value_or(clock())); }
    /// Seconds since some time. A test sets another one.
    std::function<double()> clock;

    /// From any thread: draw soon.
    static void wake();
    /// The next frame follows without waiting for input: while something moves.
    void draw_again() {
        frames_left_ = 3;
        is_asked_again_ = true;
    }

    /// A frame follows after so many seconds at the latest, whether or not anything happens.
    void draw_within(double seconds);

    /// One frame, and its pixels.
    Screenshot capture(const std::function<bool()>& frame);
    /// Hands over the pixels of the frame that is being drawn, when it is drawn.
    void take_picture(std::function<void(const Screenshot&)> taken) { taken_ = std::move(taken); }
    uint64_t n_frames() const { return n_frames_; }
    float content_scale() const;
    /// Once a frame will do: the system is told where it changes.
    void set_title(const std::string& title);
    void close();
    /// "OpenGL 3.3 (Core Profile) Mesa 22.3.6, llvmpipe"
    const std::string& renderer() const { return renderer_; }

    std::function<void(const std::vector<std::filesystem::path>&)> on_drop;

    Fonts fonts;

 private:
    /// From NewFrame to the end of `frame`, with the next part of the input or without. @returns what `frame` does
    bool pass(const std::function<bool()>& frame, bool takes_input = true);
    /// Passes that are not shown, for all input but its last part. @returns what `frame` returned last
    bool take_input(const std::function<bool()>& frame);
    void show_frame();
    /// The system's next event, before Dear ImGui takes it.
    void note_event(SystemEvent kind, int code);
    void note_events();
    /// Where the mouse rests on something that has a tooltip, a frame is due when that is to appear.
    void await_tooltip();

    GLFWwindow* window_ = nullptr;
    std::string renderer_;
    std::string title_ = "kvscope";
    int frames_left_ = 3;
    double wanted_at_ = -1;  ///< time of the next frame at the latest; negative: no matter
    uint64_t n_frames_ = 0;
    InputQueue input_;
    std::optional<double> event_at_;  ///< time of the last event that the next frame takes; nullopt: none is known
    /// Time before the last reading of events. A pass without input has this time, so that no pass is later than an
    /// event that is still unread.
    double polled_at_ = 0;
    double passed_at_ = -1;  ///< time of the last pass; negative: there was none
    bool is_asked_again_ = false;
    int passes_to_settle_ = 0;  ///< until the next input
    int n_settled_ = 0;
    const bool only_pictures_;
    Screenshot* capture_to_ = nullptr;
    std::function<void(const Screenshot&)> taken_;
};

/// A part of a picture, clipped to it.
Screenshot cut_out(const Screenshot& screenshot, int left, int top, int width, int height);

/// Whole or not at all, in place of what is there.
/// @throws figures::OutputFailed, std::runtime_error where there is no such picture
void write_png(const Screenshot& screenshot, const std::filesystem::path& path);

}  // namespace kvscope::gui
