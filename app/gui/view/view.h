#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/gui/drawing/theme.h"
#include "app/gui/drawing/view_sketch.h"
#include "app/gui/session/callback_guard.h"
#include "app/gui/session/session.h"
#include "app/gui/view_data/figure_request.h"

namespace kvscope::gui {

struct Action;
class Actions;
class EngineSession;
class FileDialog;
class View;

/// Services of the app that a view can use.
struct ViewHost {
    FileDialog& files;
    Notice notice;
    std::function<void(const std::string& kind, const nlohmann::json& state)> open_view;
    /// Copies the view as an image to the clipboard. The image is taken after all menus have closed.
    std::function<void(const View&)> copy_as_seen;
    /// Loads a model, or the default model for an empty path. On success, adds the model to the recent models.
    std::function<void(const std::filesystem::path&)> load_model;
    const std::vector<std::string>& recent_models;
    std::function<void(int document)> close_trace = {};
    std::function<void(const std::string& kind)> show_view = {};
    std::function<void(const RunKey&)> rename_run = {};
    /// Maximizes the focused view, or restores all views if one is maximized.
    std::function<void()> toggle_maximised = {};
    bool is_maximised = false;
};

struct Context {
    Session& session;
    const Theme& theme;
    const Fonts& fonts;
    Actions& actions;
    ViewHost& host;
    EngineSession* engine = nullptr;  ///< nullptr in a build without the engine
    float scale = 1;                  ///< pixels per unit of the design's grid
};

/// Base class of a dockable view. save() stores the settings of one view; the selection is in Session.
class View {
 public:
    virtual ~View() = default;

    /// Draws the view between ImGui::Begin and End. Without data, draws one line that says what is missing.
    virtual void draw(Context& context) = 0;

    [[nodiscard]] virtual std::optional<FigureRequest> figure(const Session&) const { return std::nullopt; }

    [[nodiscard]] virtual std::optional<analysis::Table> table() const { return std::nullopt; }

    /// Returns the view's mouse and key help as pairs of input and effect. `?` shows the help.
    [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> help() const { return {}; }

    /// Resets the zoom so that everything is visible (key F).
    virtual void fit() {}
    /// Starts the view's main command, if any (Ctrl+R while it has the keyboard).
    virtual void start() {}

    /// Accepts files that were dropped or named on the command line. Returns false if the view cannot read files.
    [[nodiscard]] virtual bool take_files(const std::vector<std::filesystem::path>&) { return false; }
    /// Adds actions to the palette while the view is open. An action may run after the view has closed, so `lifetime_`
    /// must guard the action.
    virtual void add_to_palette(std::vector<Action>&, const Notice& /*notice*/) {}

    /// Returns the labels of the commands for the palette. draw() handles each with command_button() or takes_call().
    [[nodiscard]] virtual std::vector<std::string> commands() const { return {}; }
    /// Requests a command, which the next draw() executes.
    void request_command(const std::string& command) { called_ = command; }
    /// Reports a requested command that is not available. Call after draw().
    void end_call(const ViewHost& host);

    /// Whether the view holds text that must not be lost. A closed view with text is kept for reopening.
    [[nodiscard]] virtual bool holds_text() const { return false; }

    virtual void save(nlohmann::json&) const {}
    virtual void load(const nlohmann::json&) {}

    /// Closes the view's dialogs. Call when a closed view is kept for reopening.
    void put_away() { lifetime_.begin_anew(); }

 protected:
    /// Draws a command's button. Returns true if it was pressed, or if request_command() requested the enabled command.
    [[nodiscard]] bool command_button(const char* label);
    /// Returns true once if this command was requested. Call only while the command is available.
    [[nodiscard]] bool takes_call(std::string_view command);

    Lifetime lifetime_;

 private:
    std::string called_;
};

enum class Dock { left, center, right, bottom };

/// Topics that group the kinds of view in the picker, in the order of the picker.
enum class Topic { runs, tokens, heads, results, files };

/// Describes a kind of view. Each file in app/gui/views/ defines one with a function named after the file, e.g.
/// `ViewKind retention_view()` in retention.cpp. The build generates the list.
struct ViewKind {
    std::string name;     ///< name in saved layouts, e.g. "retention"
    std::string title;    ///< title on the tab, e.g. "Retention"
    std::string summary;  ///< one line that says what the view shows and by which measure
    Dock dock = Dock::center;
    Topic topic = Topic::tokens;
    std::unique_ptr<View> (*create)() = nullptr;  ///< see make_view()
    Sketch sketch{};                              ///< picture in the picker, or empty
};

template <class SomeView>
[[nodiscard]] std::unique_ptr<View> make_view() {
    return std::make_unique<SomeView>();
}

[[nodiscard]] const std::vector<ViewKind>& view_kinds();
[[nodiscard]] const ViewKind* find_view_kind(const std::string& name);

/// Draws "Nothing to show: …" in the center of the remaining space.
void draw_nothing(const Context& context, const std::string& why);

/// Returns the beginning of a sentence that says how to fill a view: "Open a trace (Ctrl+O) or run the demo".
[[nodiscard]] std::string open_trace_or_demo();

/// Returns why a trace shows no prompt, as a sentence: the prompt is not written yet, or the trace has none.
[[nodiscard]] std::string why_no_prompt(const Document& document);
void draw_error(const Context& context, const std::string& what);

}  // namespace kvscope::gui
