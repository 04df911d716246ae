#include "app/gui/window/window.h"

#include <GLFW/glfw3.h>
#include <cairo.h>
#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>
#include <imgui_internal.h>
#include <implot.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "app/figures/cairo_surface.h"
#include "common/whole_file.h"

#define GLAD_GL_IMPLEMENTATION
#include "app/gui/drawing/gl.h"
#include "app/gui/drawing/pan_limits.h"
#include "app/gui/drawing/texture.h"

namespace kvscope::gui {
namespace {

bool is_set(const char* variable) {
    const char* value = std::getenv(variable);
    return value && *value;
}

std::string last_glfw_error() {
    const char* text = nullptr;
    glfwGetError(&text);
    return text ? text : "unknown reason";
}

void dropped(GLFWwindow* window, int count, const char** paths) {
    auto* self = static_cast<Window*>(glfwGetWindowUserPointer(window));
    if (self->on_drop) self->on_drop({paths, paths + count});
    self->draw_again();
}

/// Sets the mouse buttons in plots: drag pans, Ctrl-drag zooms into a box, and the right button opens the view's menu.
void set_plot_mouse() {
    ImPlotInputMap& map = ImPlot::GetInputMap();
    map.Pan = ImGuiMouseButton_Left;
    map.PanMod = ImGuiMod_None;
    map.Select = ImGuiMouseButton_Left;
    map.SelectMod = ImGuiMod_Ctrl;
    map.SelectCancel = ImGuiMouseButton_Right;
    map.Fit = ImGuiMouseButton_Left;  // fits the plot at a double click
    map.Menu = -1;
    map.OverrideMod = ImGuiMod_None;
    map.ZoomRate =
        static_cast<float>((1 - wheel_zoom) / (2 * wheel_zoom - 1));  // ImPlot's zoom rate for the factor wheel_zoom
}

Screenshot read_back(int width, int height) {
    Screenshot shot{width, height, {}};
    const size_t row_bytes = static_cast<size_t>(width) * 3;
    std::vector<uint8_t> below(row_bytes * static_cast<size_t>(height));
    glPixelStorei(GL_PACK_ALIGNMENT, 1);
    glReadBuffer(GL_BACK);
    glReadPixels(0, 0, width, height, GL_RGB, GL_UNSIGNED_BYTE, below.data());
    shot.rgb.resize(below.size());
    for (size_t row = 0; row < static_cast<size_t>(height); ++row) {
        const uint8_t* from = below.data() + (static_cast<size_t>(height) - 1 - row) * row_bytes;
        std::copy_n(from, row_bytes, shot.rgb.data() + row * row_bytes);
    }
    return shot;
}

}  // namespace

bool Window::display_is_there() { return is_set("DISPLAY") || is_set("WAYLAND_DISPLAY"); }

Window::Window(const WindowOptions& options) : clock(glfwGetTime), only_pictures_(options.only_pictures) {
    // Without this hint, GLFW tries Wayland first and prints an error if there is no Wayland display.
    if (is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY")) glfwInitHint(GLFW_PLATFORM, GLFW_PLATFORM_X11);
    if (!glfwInit()) throw NoDisplay("cannot open a window: " + last_glfw_error());
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
    glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
    glfwWindowHint(GLFW_OPENGL_FORWARD_COMPAT, GLFW_TRUE);
    glfwWindowHint(GLFW_SAMPLES, 0);  // Mesa's software renderer draws nothing with multisampling
    glfwWindowHint(GLFW_VISIBLE, options.visible ? GLFW_TRUE : GLFW_FALSE);
    glfwWindowHintString(GLFW_X11_CLASS_NAME, "kvscope");
    window_ = glfwCreateWindow(options.width, options.height, title_.c_str(), nullptr, nullptr);
    if (!window_) {
        const std::string reason = last_glfw_error();
        glfwTerminate();
        throw NoDisplay("cannot open a window with OpenGL 3.3: " + reason);
    }
    glfwMakeContextCurrent(window_);
    glfwSwapInterval(options.vsync ? 1 : 0);
    gladLoadGL(glfwGetProcAddress);
    const auto text = [](GLenum name) {
        const GLubyte* value = glGetString(name);
        return std::string(value ? reinterpret_cast<const char*>(value) : "?");
    };
    renderer_ = "OpenGL " + text(GL_VERSION) + ", " + text(GL_RENDERER);

    IMGUI_CHECKVERSION();
    ImGui::CreateContext();
    ImPlot::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.ConfigFlags |= ImGuiConfigFlags_DockingEnable | ImGuiConfigFlags_NavEnableKeyboard;
    io.ConfigWindowsMoveFromTitleBarOnly = true;
    io.ConfigErrorRecoveryEnableAssert = false;
    io.ConfigInputTextCursorBlink = false;  // a blinking cursor would need frames without input
    io.IniFilename = nullptr;               // App saves the layouts
    set_plot_mouse();
    glfwSetWindowUserPointer(window_, this);
    glfwSetDropCallback(window_, dropped);
    note_events();
    ImGui_ImplGlfw_InitForOpenGL(window_, true);  // keeps callbacks that were installed before
    ImGui_ImplOpenGL3_Init("#version 330 core");
    fonts = load_fonts();
}

Window::~Window() {
    delete_textures_of_drawn_frame();
    ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
    ImPlot::DestroyContext();
    ImGui::DestroyContext();
    glfwDestroyWindow(window_);
    glfwTerminate();
}

void Window::note_event(SystemEvent kind, int code) {
    const auto at = take_event_time(kind, code);
    if (!event_at_) event_at_ = at;  // earlier mouse moves get the time of this event
    note_input_time();
    if (at) event_at_ = at;
}

void Window::note_events() {
    static const auto of = [](GLFWwindow* window) { return static_cast<Window*>(glfwGetWindowUserPointer(window)); };
    start_recording_event_times(clock);
    glfwSetKeyCallback(window_, [](GLFWwindow* window, int, int scancode, int action, int) {
        of(window)->note_event(action == GLFW_RELEASE ? SystemEvent::key_release : SystemEvent::key_press, scancode);
    });
    glfwSetMouseButtonCallback(window_, [](GLFWwindow* window, int button, int action, int) {
        constexpr int n_wheel_buttons = 4;  // X11 reports wheel directions as buttons
        constexpr std::array numbers = {1, 3, 2};
        const int number = button < static_cast<int>(numbers.size()) ? numbers[static_cast<size_t>(button)]
                                                                     : button + 1 + n_wheel_buttons;
        of(window)->note_event(action == GLFW_RELEASE ? SystemEvent::button_release : SystemEvent::button_press,
                               number);
    });
    glfwSetScrollCallback(window_, [](GLFWwindow* window, double x, double y) {
        const int number = y > 0 ? 4 : y < 0 ? 5 : x > 0 ? 6 : 7;
        of(window)->note_event(SystemEvent::button_press, number);
    });
}

double Window::seconds_to_sleep() const {
    if (frames_left_ > 0) return 0;
    return wanted_at_ < 0 ? -1 : std::max(wanted_at_ - clock(), 0.001);
}

bool Window::pass(const std::function<bool()>& frame, bool takes_input) {
    const auto input_at = input_.begin_pass(takes_input);
    const double at = input_at ? std::max(*input_at, passed_at_) : takes_input ? polled_at_ : passed_at_;
    ImGuiIO& io = ImGui::GetIO();
    io.DeltaTime = passed_at_ < 0 ? 1.0f / 60 : std::max(static_cast<float>(at - passed_at_), 1e-6f);
    passed_at_ = at;
    ImGui::NewFrame();
    input_.end_pass();
    // Only the item under the mouse gets a tooltip. A tooltip for the item with the keyboard would always cover it.
    ImGui::GetCurrentContext()->NavHighlightItemUnderNav = false;
    constexpr int least_to_settle = 2;  // a new item receives the keyboard in the second frame
    constexpr int most_to_settle = 8;
    if (input_at) {
        passes_to_settle_ = input_.needs_settling() ? least_to_settle : 0;
        n_settled_ = 0;
    } else {
        passes_to_settle_ = std::max(passes_to_settle_ - 1, 0);
        ++n_settled_;
    }
    is_asked_again_ = false;
    const bool goes_on = frame();
    if (is_asked_again_ && n_settled_ < most_to_settle) passes_to_settle_ = std::max(passes_to_settle_, 1);
    return goes_on;
}

bool Window::take_input(const std::function<bool()>& frame) {
    constexpr double longest = 0.3;  // seconds until a frame is shown
    const double end = clock() + longest;
    for (;;) {
        const bool has_to_settle = passes_to_settle_ > 0 && InputQueue::is_waiting();
        if (!has_to_settle && !InputQueue::exceeds_one_pass()) return true;
        if (clock() >= end) return true;
        const bool goes_on = pass(frame, !has_to_settle);
        ImGui::EndFrame();
        if (!goes_on) return false;
    }
}

bool Window::draw_frame(const std::function<bool()>& frame) {
    frames_left_ = std::max(frames_left_ - 1, 0);
    polled_at_ = clock();
    glfwPollEvents();
    ImGui_ImplOpenGL3_NewFrame();
    ImGui_ImplGlfw_NewFrame();
    input_.note_time(event_at_.value_or(polled_at_));
    event_at_.reset();
    if (!take_input(frame)) return false;
    const bool goes_on = pass(frame, passes_to_settle_ == 0 || !InputQueue::is_waiting());
    show_frame();
    ++n_frames_;
    await_tooltip();
    return goes_on;
}

void Window::show_frame() {
    ImGui::Render();
    int width = 0;
    int height = 0;
    glfwGetFramebufferSize(window_, &width, &height);
    const bool has_pixels = !only_pictures_ || capture_to_ || taken_;
    if (!has_pixels) glEnable(GL_RASTERIZER_DISCARD);
    glViewport(0, 0, width, height);
    const ImVec4& ground = ImGui::GetStyle().Colors[ImGuiCol_WindowBg];
    glClearColor(ground.x, ground.y, ground.z, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    if (capture_to_) *capture_to_ = read_back(width, height);
    if (const auto taken = std::exchange(taken_, nullptr)) taken(read_back(width, height));
    delete_textures_of_drawn_frame();
    if (has_pixels)
        glfwSwapBuffers(window_);
    else
        glDisable(GL_RASTERIZER_DISCARD);
}

void Window::run(const std::function<bool()>& frame, const std::function<void()>& unseen_frame,
                 const std::function<bool()>& may_close) {
    for (;;) {
        if (const double seconds = seconds_to_sleep(); seconds != 0) {
            wanted_at_ = -1;
            seconds < 0 ? glfwWaitEvents() : glfwWaitEventsTimeout(seconds);
            frames_left_ = 5;  // press and release take two frames, and a third measures new items
        }
        if (glfwWindowShouldClose(window_)) {
            if (may_close()) return;
            glfwSetWindowShouldClose(window_, GLFW_FALSE);
        }
        if (glfwGetWindowAttrib(window_, GLFW_ICONIFIED)) {
            frames_left_ = 0;
            unseen_frame();
            continue;
        }
        if (!draw_frame(frame)) return;
        if (!ImGui::GetCurrentContext()->InputEventsQueue.empty()) draw_again();
    }
}

void Window::await_tooltip() {
    const ImGuiContext& now = *ImGui::GetCurrentContext();
    if (now.HoverItemDelayId == 0) return;
    const float left = std::max(now.Style.HoverDelayNormal - now.HoverItemDelayTimer,
                                now.Style.HoverStationaryDelay - now.MouseStationaryTimer);
    if (left > 0) draw_within(static_cast<double>(left));
}

void Window::draw_within(double seconds) {
    const double at = clock() + seconds;
    wanted_at_ = wanted_at_ < 0 ? at : std::min(wanted_at_, at);
}

void Window::wake() { glfwPostEmptyEvent(); }

Screenshot Window::capture(const std::function<bool()>& frame) {
    Screenshot shot;
    capture_to_ = &shot;
    draw_frame(frame);
    capture_to_ = nullptr;
    return shot;
}

float Window::content_scale() const {
    float x = 1;
    float y = 1;
    glfwGetWindowContentScale(window_, &x, &y);
    return x;
}

void Window::set_title(const std::string& title) {
    if (std::exchange(title_, title) != title) glfwSetWindowTitle(window_, title.c_str());
}

void Window::close() { glfwSetWindowShouldClose(window_, GLFW_TRUE); }

Screenshot crop_screenshot(const Screenshot& screenshot, int left, int top, int width, int height) {
    left = std::clamp(left, 0, screenshot.width);
    top = std::clamp(top, 0, screenshot.height);
    Screenshot part{std::clamp(width, 0, screenshot.width - left), std::clamp(height, 0, screenshot.height - top), {}};
    for (int row = top; row < top + part.height; ++row) {
        const auto from = screenshot.rgb.begin() + 3 * (static_cast<ptrdiff_t>(row) * screenshot.width + left);
        part.rgb.insert(part.rgb.end(), from, from + 3 * static_cast<ptrdiff_t>(part.width));
    }
    return part;
}

void write_png(const Screenshot& shot, const std::filesystem::path& path) {
    const figures::Surface surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, shot.width, shot.height));
    unsigned char* data = cairo_image_surface_get_data(surface.get());
    const int stride = cairo_image_surface_get_stride(surface.get());
    for (int y = 0; data && y < shot.height; ++y) {
        for (int x = 0; x < shot.width; ++x) {
            const uint8_t* from =
                shot.rgb.data() +
                (static_cast<size_t>(y) * static_cast<size_t>(shot.width) + static_cast<size_t>(x)) * 3;
            unsigned char* to = data + static_cast<ptrdiff_t>(y) * stride + static_cast<ptrdiff_t>(x) * 4;
            to[0] = from[2];
            to[1] = from[1];
            to[2] = from[0];
        }
    }
    cairo_surface_mark_dirty(surface.get());
    std::string bytes;
    const cairo_status_t status = cairo_surface_write_to_png_stream(surface.get(), figures::append_bytes, &bytes);
    if (status != CAIRO_STATUS_SUCCESS)
        throw std::runtime_error(path.string() + " cannot be written: " + cairo_status_to_string(status));
    write_whole_file(path, bytes, true);
}

}  // namespace kvscope::gui
