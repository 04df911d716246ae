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

#include "app/gui/drawing/sketch.h"
#include "app/gui/drawing/theme.h"
#include "app/gui/session/figure_request.h"
#include "app/gui/session/lifetime.h"
#include "app/gui/session/session.h"

namespace kvscope::gui {

struct Action;
class Actions;
class EngineSession;
class FileDialog;
class View;

/// What a view may ask of the window around it.
struct ViewHost {
    FileDialog& files;
    std::function<void(const std::string&, bool is_error)> notice;
    /// A further view of a kind, with the state that View::save wrote.
    std::function<void(const std::string& kind, const nlohmann::json& state)> open_view;
    /// The view's part of the window, as it looks when menus are gone, as an image on the clipboard.
    std::function<void(const View&)> copy_as_seen;
    /// Loads a model, the default where the path is empty, and remembers among the recent ones what could be loaded.
    std::function<void(const std::filesystem::path&)> load_model;
    const std::vector<std::string>& recent_models;
    /// Closes an open trace after this frame. @param document its id
    std::function<void(int document)> close_trace = {};
    /// Brings a view of a kind to the front, or opens one.
    std::function<void(const std::string& kind)> show_view = {};
    /// Asks for another label of a run.
    std::function<void(const RunKey&)> rename_run = {};
    /// The view that has the keyboard alone in the window; where one is, all as they were.
    std::function<void()> toggle_maximised = {};
    bool is_maximised = false;
};

/// What a view draws with.
struct Context {
    Session& session;
    const Theme& theme;
    const Fonts& fonts;
    Actions& actions;
    ViewHost& host;
    EngineSession* engine = nullptr;  ///< nullptr in a build without the engine
    float scale = 1;                  ///< pixels of the design's grid
};

/// One dockable window. The base owns nothing that is drawn; App owns the windows, their places and their titles. State
/// that a person set belongs into `save`, selection into Session.
class View {
 public:
    virtual ~View() = default;

    /// Between ImGui::Begin and End. Says in one line what is missing where there is nothing to show.
    virtual void draw(Context& context) = 0;

    /// What is shown, for export and for copying numbers; nullopt where there is nothing.
    virtual std::optional<FigureRequest> figure(const Session&) const { return std::nullopt; }

    /// The table that a view without a figure shows, for export.
    virtual std::optional<analysis::Table> table() const { return std::nullopt; }

    /// Mouse and keys of this view: what is done, what happens. Shown by `?`.
    virtual std::vector<std::pair<std::string, std::string>> help() const { return {}; }

    /// Everything into view: key F.
    virtual void fit() {}
    /// What the view is there to do, where it does something: Ctrl+R while it has the keyboard.
    virtual void start() {}

    /// A file that was dropped on the window, or given on the command line. @returns whether it is this view's to read;
    /// what is wrong with it is told when the view draws next
    virtual bool take_file(const std::filesystem::path&) { return false; }
    /// What the palette offers while this view is open; it may be called when the view is closed: `lifetime` guards it.
    /// @param notice as ViewHost has it
    virtual void add_to_palette(std::vector<Action>&, const std::function<void(const std::string&, bool)>& /*notice*/) {
    }

    /// What its buttons do, as they are labelled: the palette has each of them while the view is open. In draw(), each
    /// is a command_button(), or asked for by takes_call().
    virtual std::vector<std::string> commands() const { return {}; }
    /// One of them was chosen in the palette: done as soon as the view draws next.
    void call(const std::string& command) { called_ = command; }
    /// Behind draw(): a command that was called and cannot be given now is told.
    void end_call(const ViewHost& host);

    /// Whether a person types into it what must not be lost: closed, it is put away, and comes back as it was.
    virtual bool holds_text() const { return false; }

    virtual void save(nlohmann::json&) const {}
    virtual void load(const nlohmann::json&) {}

    /// It leaves the screen with all that is typed into it: its dialogs close, as if it had been closed.
    void put_away() { lifetime.begin_anew(); }

 protected:
    /// A button that gives a command. @param label with what follows ## for Dear ImGui alone
    /// @returns whether it was pressed, or called while it is not disabled
    bool command_button(const char* label);
    /// Whether a command was called that can be given now; once for each call.
    bool takes_call(std::string_view command);

    /// For what is kept beyond the frame: dialogs' answers, entries of the palette.
    Lifetime lifetime;

 private:
    std::string called_;
};

/// Where a view opens in a new layout.
enum class Dock { left, center, right, bottom };

/// What a view is about. The picker of views has one group each, in this order.
enum class Topic { runs, tokens, heads, results, files };

/// Each file in app/gui/views/ defines one, by a function called after the file: `ViewKind retention_view()` in
/// retention.cpp. The build lists them.
struct ViewKind {
    std::string name;     ///< "retention": in saved layouts
    std::string title;    ///< "Retention"
    std::string summary;  ///< one line: what it shows, from which measure
    Dock dock = Dock::center;
    Topic topic = Topic::tokens;
    std::unique_ptr<View> (*create)() = nullptr;
    Sketch sketch{};  ///< what it looks like; empty: it has no picture in the picker
};

/// All kinds, by file name.
const std::vector<ViewKind>& view_kinds();
const ViewKind* find_view_kind(const std::string& name);

/// "Nothing to show: …" centred in the rest of the window.
void draw_nothing(const Context& context, const std::string& why);

/// Of a trace that has no prompt to show: it is still to come, or there is none.
std::string why_no_prompt(const Document& document);
/// A card with what went wrong.
void draw_error(const Context& context, const std::string& what);

}  // namespace kvscope::gui
